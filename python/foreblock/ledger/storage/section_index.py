"""An index of blocks by terms, in sections: which blocks of a section have a term.

Sections of 16 blocks are merged into sections of 256, and those into sections of 4,096: so a
query over a million blocks looks into some 270 of them, and each entry is written three times,
one beside the other. `section_indexing` writes them. A store has two such indices, each under a
key of its own: `log_index` and `address_index` say what their terms are.

    rows             key                                          value
    index            its key (1)                                  the ends of the three sizes,
                                                                  smallest first (8 each), and
                                                                  the hash of the block before
                                                                  the first end (32)
    section          its key ‖ size, 0 to 2 (1) ‖ first block (8) entries in chunks: term (8) and
                     ‖ first entry (10)                           place of the block (2)

A section of the largest size covers blocks up to its end, one of the middle size those after it
up to its own end, and so on; blocks after the last end are found in other ways.
Rows beyond the ends are leftovers and mean nothing. A rewind lowers the ends in its own commit
(`rewound`). The hash proves that no version of this program that knows no index has rewound the
chain: where it differs, nothing counts as indexed.
"""

import struct
from dataclasses import dataclass
from typing import Final, NamedTuple

from foreblock._engine import View
from foreblock.errors import StoreDamaged
from foreblock.ledger.storage.first_block import read_first_block

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

    key: bytes  # of the index
    size: int  # which of `SIZES`
    first: int

    @property
    def stop(self) -> int:
        """The block after the last."""
        return self.first + SIZES[self.size]

    @property
    def prefix(self) -> bytes:
        """The prefix of the keys of its rows."""
        return _SECTION.pack(*self)

    def rows(self, chunks: list[bytes]) -> list[tuple[bytes, bytes]]:
        """Some of its chunks, as keys and values."""
        prefix, entry = self.prefix, len(FIRST_ENTRY)
        return [(prefix + chunk[:entry], chunk) for chunk in chunks]

    def parts(self) -> list["Section"]:
        """The sections of the next smaller size in it."""
        size = self.size - 1
        starts = range(self.first, self.stop, SIZES[size])
        return [Section(self.key, size, first) for first in starts]


def section_of_key(key: bytes) -> Section:
    """The section of a row."""
    return Section(*_SECTION.unpack_from(key))


@dataclass(frozen=True, slots=True)
class Indexed:
    """How far a chain is indexed: the block after the last section of each size."""

    key: bytes  # of the index
    ends: tuple[int, int, int] = (0, 0, 0)
    hash: bytes = _NO_HASH  # of the block before the first end

    @property
    def end(self) -> int:
        """The first block that is not indexed."""
        return self.ends[0]

    @property
    def row(self) -> tuple[bytes, bytes]:
        """The row that says so: its key and its value."""
        return self.key, _ENDS.pack(*self.ends, self.hash)

    def runs(self, first: int, stop: int) -> list[Run]:
        """The sections that cover these blocks, as far as they are indexed; largest first."""
        found: list[Run] = []
        for size in reversed(range(len(SIZES))):
            end, blocks = self.ends[size], SIZES[size]
            if first < min(end, stop):
                sections = first // blocks * blocks, min(end, -(-stop // blocks) * blocks)
                found.append(((self.key + bytes((size,)), blocks), sections))
                first = end
        return found


class SectionIndex(NamedTuple):
    """One index of a store."""

    key: bytes  # one letter

    def exists(self, view: View) -> bool:
        """Whether the store has it, if only its first row."""
        return view.row(self.key) is not None

    def read(self, view: View) -> Indexed:
        """How far the chain of a view is indexed; raises `StoreDamaged`."""
        row = view.row(self.key)
        if row is None:
            return self._beginning(view)
        if len(row) != _ENDS.size:
            raise StoreDamaged("an index in sections has a row of another length")
        *ends, block_hash = _ENDS.unpack(row)
        indexed = Indexed(self.key, (ends[0], ends[1], ends[2]), block_hash)
        return indexed if indexed == self.at(view, indexed.ends) else self._beginning(view)

    def at(self, view: View, ends: tuple[int, int, int]) -> Indexed:
        """These ends on the chain of a view, which has the blocks before them."""
        sealed = view.sealed(ends[0] - 1) if ends[0] else None
        return Indexed(self.key, ends, _NO_HASH if sealed is None else sealed[0])

    def _beginning(self, view: View) -> Indexed:
        """Nothing is indexed: sections begin with that of the first block."""
        first = read_first_block(view).whole
        small, middle, large = (first // blocks * blocks for blocks in SIZES)
        return Indexed(self.key, (small, middle, large))

    def size_prefix(self, size: int) -> bytes:
        """The prefix of the keys of all sections of a size."""
        return self.key + bytes((size,))

    def rewound(self, view: View, block: int) -> tuple[bytes, bytes] | None:
        """The row of the index after a rewind to this block; none where it stays as it is.

        A section that ended above the block is given up whole, and all smaller ones after it.
        """
        indexed = self.read(view)
        if indexed.end <= block + 1:
            return None
        size = max(size for size, end in enumerate(indexed.ends) if block + 1 < end)
        lowered = (block + 1) // SIZES[size] * SIZES[size]
        small, middle, large = (min(end, lowered) for end in indexed.ends)
        return self.at(view, (small, middle, large)).row
