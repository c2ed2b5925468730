"""JSON-RPC 2.0: envelopes, dispatch, and the errors of the wire.

Nothing here knows HTTP or Ethereum: methods are given as a table of functions.
"""
