"""Flashblocks on the wire: messages, server, client and recordings."""
