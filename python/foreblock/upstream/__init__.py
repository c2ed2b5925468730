"""Sealed blocks from an endpoint, where a feed alone cannot tell them.

A block is asked for by its hash and is that block or an error, so nobody has to trust the
endpoint for more than what it says is canonical; execution verifies the rest.
"""
