"""Snapshots: the store of one node, sent to another over HTTP, verified, and put in its place.

The sender is in `server` and `sending`, the receiver in `bootstrap` and `fetching`, the format in
`packing`.
"""
