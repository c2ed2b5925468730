"""Scheduling of a worker's time: one scheduler for all its networks (start with `scheduler`)."""
