"""What one request reads: a view of one commit, and the blocks, receipts and states on it."""
