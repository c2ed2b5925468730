"""Brotli, as public feeds use it: one stream a message, no length before it.

Whoever sends a message chooses how far it expands, so it is expanded in pieces and given up
at the limit: what a bomb costs is the limit, not what it would have become.
"""

from typing import Final

import brotli  # type: ignore[import-untyped]

# The library grows its output in steps from this size on, so one step may be twice as large.
_PIECE_BYTES: Final = 64 * 1024


def compress(data: bytes, quality: int) -> bytes:
    """The data as one brotli stream."""
    compressed: bytes = brotli.compress(data, quality=quality)
    return compressed


def decompress(data: bytes, limit: int) -> bytes:
    """What a brotli stream holds; a `ValueError` if it is none, or holds more than `limit`."""
    decompressor = brotli.Decompressor()
    pieces: list[bytes] = []
    size = 0
    while not decompressor.is_finished():
        piece = _next_piece(decompressor, b"" if pieces else data)
        size += len(piece)
        if size > limit:
            raise ValueError(f"expands to more than {limit} bytes")
        if not piece and not decompressor.is_finished():
            raise ValueError("the brotli stream ends too early")
        pieces.append(piece)
    return b"".join(pieces)


def _next_piece(decompressor: "brotli.Decompressor", data: bytes) -> bytes:
    try:
        piece: bytes = decompressor.process(data, output_buffer_limit=_PIECE_BYTES)
    except brotli.error as why:
        raise ValueError("neither a JSON object nor a brotli stream") from why
    return piece
