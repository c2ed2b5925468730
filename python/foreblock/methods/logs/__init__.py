"""Logs of blocks."""
