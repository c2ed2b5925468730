"""Between the workers and the writer: transactions in, hints out, over a Unix socket.

No read ever waits for it. What comes from the writer unasked are hints, and a worker that
misses some has lost nothing but a little time.
"""
