"""Blocks in progress: built index by index, and written to the store commit by commit."""
