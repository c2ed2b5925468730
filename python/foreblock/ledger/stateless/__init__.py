"""Blocks executed from a witness instead of a store, and the witnesses of stored blocks."""
