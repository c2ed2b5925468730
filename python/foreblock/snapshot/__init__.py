"""Snapshots: the store of one node, sent to another over HTTP, verified, and put in its place.

Who sends is in `offers`, `server` and `sending`; who takes is in `bootstrap`, `fetching` and
`installing`. What the bytes are is in `header` and `packing`.
"""
