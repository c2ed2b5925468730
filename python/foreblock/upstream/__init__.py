"""JSON-RPC of other nodes: transport, budgets, and sealed blocks that a feed alone cannot provide.

A block requested by hash is that block or an error, so an endpoint is trusted only for which blocks
are canonical; execution verifies the rest.
"""
