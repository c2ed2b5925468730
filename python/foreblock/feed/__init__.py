"""Flashblocks on the wire: their format, and the WebSocket that carries them."""
