"""A snapshot as bytes: packed by the sender, unpacked and verified by the receiver. No I/O.

    at   size  field of the header
    0    4     FBSN
    4    1     format of snapshots, 1
    5    1     byte order of the machine: 0 big, 1 little
    6    1     format of the store
    7    1     reserved, 0
    8    4     bytes of a page
    12   4     reserved, 0
    16   8     commit
    24   8     epoch
    32   8     sequence in the stream
    40   16    id of the store
    56   32    link
    88   8     bytes of data, about

Numbers are big-endian. After it comes one zstd frame with the store's file, then the trailer:

    0    8     bytes of the file
    8    32    SHA-256 of the header, the file and the number above

Commits go on while a copy is begun, so the file may be a few commits further than its header
says; the row `log` in the file decides where to continue. LMDB's file is that of a machine: page
size and byte order have to be the same here.

Packer and unpacker take pieces as they come, in memory of a few pieces. Unpacked bytes are
verified only after `finish`: until then they may be damaged, and the SHA-256 at the end decides. A
few bytes of zstd can stand for very many, so the unpacker takes few of them at a time.
"""

import mmap
import struct
import sys
from collections.abc import Iterator
from hashlib import sha256
from typing import Final

import zstandard
from msgspec import Struct

from foreblock.errors import DamagedSnapshot, UnfitSnapshot

MAGIC: Final = b"FBSN"
FORMAT: Final = 1
STORE_FORMAT: Final = 2  # the newest format that this version reads
HEADER: Final = struct.Struct(">4sBBBBIIQQQ16s32sQ")
TRAILER: Final = struct.Struct(">Q32s")
LITTLE: Final = int(sys.byteorder == "little")
PAGE: Final = mmap.PAGESIZE  # the page sizes of LMDB


class SnapshotHeader(Struct, frozen=True):
    """The store that is sent, as it was when the copy began."""

    commit: int
    epoch: int
    sequence: int
    store_id: bytes
    link: bytes
    length: int  # of the file, about
    store_format: int = STORE_FORMAT
    page: int = PAGE
    is_little: int = LITTLE

    def encode(self) -> bytes:
        """The header as it is sent."""
        return HEADER.pack(
            MAGIC,
            FORMAT,
            self.is_little,
            self.store_format,
            0,
            self.page,
            0,
            self.commit,
            self.epoch,
            self.sequence,
            self.store_id,
            self.link,
            self.length,
        )


def decode_header(data: bytes) -> SnapshotHeader:
    """Raises `DamagedSnapshot`, or `UnfitSnapshot` for a newer format."""
    if len(data) != HEADER.size:
        raise DamagedSnapshot(f"a header of {len(data)} bytes, not {HEADER.size}")
    magic, form, little, store, zero, page, zeros, *rest = HEADER.unpack(data)
    commit, epoch, sequence, store_id, link, length = rest
    if magic != MAGIC:
        raise DamagedSnapshot("it does not begin with FBSN")
    if form > FORMAT:
        raise UnfitSnapshot(f"its format is {form}, this version knows {FORMAT}: upgrade this node")
    if form < FORMAT or zero or zeros or little > 1:
        raise DamagedSnapshot("the header has values that are not used")
    return SnapshotHeader(commit, epoch, sequence, store_id, link, length, store, page, little)


def check_header(header: SnapshotHeader, needed: int = 0) -> None:
    """Raise `UnfitSnapshot` where a store cannot be used here, or is older than `needed`.

    `needed` is a commit: that after which the log begins.
    """
    if header.is_little != LITTLE:
        raise UnfitSnapshot("it is of a machine with another byte order")
    if header.page != PAGE:
        raise UnfitSnapshot(f"its pages have {header.page} bytes, those of this machine {PAGE}")
    if header.store_format > STORE_FORMAT:
        raise UnfitSnapshot(
            f"its store has format {header.store_format}, this version knows {STORE_FORMAT}:"
            " upgrade this node"
        )
    if header.commit < needed:
        raise UnfitSnapshot(f"it is at commit {header.commit}, the log begins after {needed}")


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
        """The bytes to send for a piece of the file; often none yet."""
        self._hash.update(piece)
        self._length += len(piece)
        return self._packed.compress(piece)

    def finish(self) -> bytes:
        """The last bytes to send."""
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
