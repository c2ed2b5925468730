"""The bus between workers and the writer, over a Unix socket or within one process.

Reads of blocks and state never wait for it, except for state that a follower has to fetch.
"""
