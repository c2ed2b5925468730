"""A snapshot as bytes: packed where it is sent, unpacked and verified where it is taken. No I/O.

Both take pieces as they come, in memory of a few pieces. What was unpacked is to be believed
after `finish` only: until then it may be damaged, and the SHA-256 at the end is what decides.
A few bytes of zstd can stand for very many, so the unpacker takes few of them at a time.
"""

from collections.abc import Iterator
from hashlib import sha256
from typing import Final

import zstandard

from foreblock.errors import DamagedSnapshot
from foreblock.snapshot.header import HEADER, TRAILER, SnapshotHeader, decode_header

_LEVEL: Final = 1
_SLICE: Final = 4096  # packed bytes that are unpacked together: into 128 MiB at the very most


class Packer:
    """Packs one snapshot: the header first, then pieces of the file, then the end."""

    def __init__(self, header: SnapshotHeader) -> None:
        self.start: Final = header.encode()  # what is sent first
        self._hash: Final = sha256(self.start)
        self._packed: Final = zstandard.ZstdCompressor(level=_LEVEL).compressobj()
        self._length = 0

    def add(self, piece: bytes) -> bytes:
        """What is sent for a piece of the file; often nothing yet."""
        self._hash.update(piece)
        self._length += len(piece)
        return self._packed.compress(piece)

    def finish(self) -> bytes:
        """What is sent last."""
        self._hash.update(self._length.to_bytes(8))
        return self._packed.flush() + TRAILER.pack(self._length, self._hash.digest())


class Unpacker:
    """Unpacks one snapshot."""

    def __init__(self) -> None:
        self.header: SnapshotHeader | None = None  # when enough has come
        self.length = 0  # of the file, as far as it has come
        self._start = b""
        self._end = b""
        self._hash: Final = sha256()
        self._frame: Final = zstandard.ZstdDecompressor().decompressobj()

    def add(self, piece: bytes) -> Iterator[bytes]:
        """The next pieces of the file. Raises `DamagedSnapshot`, `UnfitSnapshot`."""
        if self.header is None:
            self._start += piece
            if len(self._start) < HEADER.size:
                return
            start, piece = self._start[: HEADER.size], self._start[HEADER.size :]
            self.header = decode_header(start)
            self._hash.update(start)
        for at in range(0, len(piece), _SLICE):
            some = piece[at : at + _SLICE]
            if self._frame.eof:
                self._keep_end(some)
            elif found := self._unpack(some):
                yield found

    def finish(self) -> None:
        """Raise `DamagedSnapshot` unless all has come, as it was sent."""
        if not self._frame.eof or len(self._end) != TRAILER.size:
            raise DamagedSnapshot(f"it ends after {self.length} bytes of the store")
        length, digest = TRAILER.unpack(self._end)
        if length != self.length:
            raise DamagedSnapshot(f"{self.length} bytes of the store, not {length}")
        self._hash.update(length.to_bytes(8))
        if digest != self._hash.digest():
            raise DamagedSnapshot("its SHA-256 is another one")

    def _unpack(self, piece: bytes) -> bytes:
        try:
            found = self._frame.decompress(piece)
        except zstandard.ZstdError as why:
            raise DamagedSnapshot(f"not a zstd frame: {why}") from None
        self._hash.update(found)
        self.length += len(found)
        if self._frame.eof:
            self._keep_end(self._frame.unused_data)
        return found

    def _keep_end(self, piece: bytes) -> None:
        self._end += piece
        if len(self._end) > TRAILER.size:
            raise DamagedSnapshot("something follows its end")
