"""HTTP, sockets and processes. Bytes go to a handler and bytes come back.

Nothing here knows JSON-RPC or Ethereum.
"""
