"""Calls: what a caller asks for, the checks before it runs, overrides, and how it is run."""
