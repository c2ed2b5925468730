"""A stretch of a chain in files: its feed, and the state that executing it needs."""
