"""Reads for one request: a view of one commit, and the blocks, receipts and states on it."""
