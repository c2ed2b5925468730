"""What a snapshot says of itself before its first byte of data. No I/O.

    at   size  field
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
says; the row `log` in the file decides where to go on. LMDB's file is that of a machine: page
size and byte order have to be the same here.
"""

import mmap
import struct
import sys
from dataclasses import dataclass
from typing import Final

from foreblock.errors import DamagedSnapshot, UnfitSnapshot

MAGIC: Final = b"FBSN"
FORMAT: Final = 1
STORE_FORMAT: Final = 2  # the newest that this version reads
HEADER: Final = struct.Struct(">4sBBBBIIQQQ16s32sQ")
TRAILER: Final = struct.Struct(">Q32s")
LITTLE: Final = int(sys.byteorder == "little")
PAGE: Final = mmap.PAGESIZE  # what LMDB takes for its pages


@dataclass(frozen=True, slots=True)
class SnapshotHeader:
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
