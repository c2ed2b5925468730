"""JSON-RPC of other nodes: sealed blocks that a feed alone cannot provide.

A block requested by hash is that block or an error, so the endpoint is trusted only for which
blocks are canonical; execution verifies the rest.
"""
