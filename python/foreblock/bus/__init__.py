"""Between workers and writer, over a Unix socket: transactions to the writer, hints to workers.

Reads never wait for it. A worker that misses hints only loses a little time.
"""
