"""HTTP, sockets and processes: request bodies to a handler, replies to sockets.

Nothing here knows JSON-RPC or Ethereum.
"""
