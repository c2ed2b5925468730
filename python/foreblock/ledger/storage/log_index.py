"""The index of logs: which blocks of a section have a log with an address or a topic.

Sections of 16 blocks are merged into sections of 256, and those into sections of 4,096: so a
query over a million blocks looks into some 270 of them, and each entry is written three times,
one beside the other. `log_indexing` writes them.

    rows             key                                          value
    index            L                                            the ends of the three sizes,
                                                                  smallest first (8 each), and
                                                                  the hash of the block before
                                                                  the first end (32)
    section          L ‖ size, 0 to 2 (1) ‖ first block (8)       entries in chunks: term (8) and
                     ‖ first entry (10)                           place of the block (2)

A section of the largest size covers blocks up to its end, one of the middle size those after it
up to its own end, and so on; blocks after the last end are found by the blooms of their headers.
Rows beyond the ends are leftovers and mean nothing. A rewind lowers the ends in its own commit
(`rewound`). The hash proves that no version of this program that knows no index has rewound the
chain: where it differs, nothing counts as indexed.
"""

import struct
from dataclasses import dataclass
from typing import Final, NamedTuple

from foreblock._engine import View
from foreblock.errors import StoreDamaged

INDEX_KEY: Final = b"L"
SIZES: Final = (16, 256, 4096)  # blocks in a section
FIRST_ENTRY: Final = bytes(10)

_ENDS: Final = struct.Struct(">QQQ32s")
_SECTION: Final = struct.Struct(">cBQ")
_NO_HASH: Final = bytes(32)

# Consecutive sections: the prefix and the size of each, the first block and the one after the
# last.
Run = tuple[tuple[bytes, int], tuple[int, int]]


class Section(NamedTuple):
    """Consecutive blocks that are indexed together."""

    size: int  # which of `SIZES`
    first: int

    @property
    def stop(self) -> int:
        """The block after the last."""
        return self.first + SIZES[self.size]

    @property
    def prefix(self) -> bytes:
        """The prefix of the keys of its rows."""
        return _SECTION.pack(INDEX_KEY, self.size, self.first)

    def rows(self, chunks: list[bytes]) -> list[tuple[bytes, bytes]]:
        """Some of its chunks, as keys and values."""
        prefix, entry = self.prefix, len(FIRST_ENTRY)
        return [(prefix + chunk[:entry], chunk) for chunk in chunks]

    def parts(self) -> list["Section"]:
        """The sections of the next smaller size in it."""
        size = self.size - 1
        return [Section(size, first) for first in range(self.first, self.stop, SIZES[size])]


def size_prefix(size: int) -> bytes:
    """The prefix of the keys of all sections of a size."""
    return INDEX_KEY + bytes((size,))


def section_of_key(key: bytes) -> Section:
    """The section of a row."""
    _, size, first = _SECTION.unpack_from(key)
    return Section(size, first)


@dataclass(frozen=True, slots=True)
class Indexed:
    """How far a chain is indexed: the block after the last section of each size."""

    ends: tuple[int, int, int] = (0, 0, 0)
    hash: bytes = _NO_HASH  # of the block before the first end

    @property
    def end(self) -> int:
        """The first block that is not indexed."""
        return self.ends[0]

    def encode(self) -> bytes:
        """The row."""
        return _ENDS.pack(*self.ends, self.hash)

    def runs(self, first: int, stop: int) -> list[Run]:
        """The sections that cover these blocks, as far as they are indexed; largest first."""
        found: list[Run] = []
        for size in reversed(range(len(SIZES))):
            end, blocks = self.ends[size], SIZES[size]
            if first < min(end, stop):
                sections = first // blocks * blocks, min(end, -(-stop // blocks) * blocks)
                found.append(((size_prefix(size), blocks), sections))
                first = end
        return found


NOTHING: Final = Indexed()


def read_indexed(view: View) -> Indexed:
    """How far the chain of a view is indexed; raises `StoreDamaged`."""
    row = view.row(INDEX_KEY)
    if row is None:
        return NOTHING
    if len(row) != _ENDS.size:
        raise StoreDamaged("the index of logs has a row of another length")
    *ends, block_hash = _ENDS.unpack(row)
    indexed = Indexed((ends[0], ends[1], ends[2]), block_hash)
    return indexed if indexed == at(view, indexed.ends) else NOTHING


def at(view: View, ends: tuple[int, int, int]) -> Indexed:
    """These ends on the chain of a view, which has the blocks before them."""
    sealed = view.sealed(ends[0] - 1) if ends[0] else None
    return Indexed(ends, _NO_HASH if sealed is None else sealed[0])


def rewound(view: View, block: int) -> bytes | None:
    """The row of the index after a rewind to this block; none where it stays as it is.

    A section that ended above the block is given up whole, and all smaller ones after it.
    """
    indexed = read_indexed(view)
    if indexed.end <= block + 1:
        return None
    size = max(size for size, end in enumerate(indexed.ends) if block + 1 < end)
    lowered = (block + 1) // SIZES[size] * SIZES[size]
    small, middle, large = (min(end, lowered) for end in indexed.ends)
    return at(view, (small, middle, large)).encode()
