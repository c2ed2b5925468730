"""The two indexes of a store, in sections: blocks by log address and topic, and by touched address.

Sections of 16 blocks are merged into sections of 256, and those into sections of 4,096: a query
over a million blocks reads about 270 of them, and each entry is written three times, to adjacent
pages. An index maps terms to blocks, under a key of its own: `L` for logs, `T` for addresses.

    rows             key                                          value
    index            its key (1)                                  the ends of the three sizes,
                                                                  smallest first (8 each), and
                                                                  the hash of the block before
                                                                  the first end (32)
    section          its key ‖ size, 0 to 2 (1) ‖ first block (8) entries in chunks: term (8) and
                     ‖ first entry (10)                           offset of the block (2)
    touched          a ‖ number (8)                               hash of the block (32) ‖ how it
                                                                  was made (1) ‖ entries: address
                                                                  (20), transaction (4); sorted

Sections of the largest size cover the blocks up to their end, those of the middle size the blocks
from there to their own end, and so on; later blocks are not indexed. Rows beyond the ends are
leftovers without meaning. A rewind lowers the ends in its own commit (`rewound`). The hash proves
that no program version without indexes has rewound the chain: if it differs, nothing counts as
indexed.

The terms of logs are those of a block's receipts. Blocks after the end of the index are found by
the blooms of their headers.

The index of addresses is optional. A transaction touches its sender, its recipient or the contract
that it creates, and the callers and callees of all its calls. The row `touched` of a block lists
the transactions that touch an address. Its hash makes it self-validating: the row of an abandoned
branch is ignored, and overwritten when its height is indexed again.
`ledger/tracing/address_indexing` writes these rows.

A turn of the writer reads the terms of sealed blocks for a bounded time and writes the complete
sections, then merges sections into a larger one, then deletes the merged ones: at most one durable
transaction, which no commit waits for. It takes no commit number, since no response depends on
the extent of the index.

Small sections are written when their blocks are sealed. They are merged once a rewind to below
their end has become unlikely, because such a rewind invalidates the whole section. Blocks without
terms are recorded rarely: an idle chain writes nothing here for minutes.

Gathered terms are kept with the hashes of their blocks, and a merger with its sections; each turn
first compares them with the store. After a crash both start again.
"""

import struct
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from msgspec import Struct, field

from foreblock._engine import Store, View, log_section, log_terms, merge_log_sections, touched_terms
from foreblock.errors import StoreDamaged
from foreblock.ledger.rules.check import EMPTY_ROOT
from foreblock.ledger.storage.chain_head import (
    body_keys,
    portions_of_sealed,
    read_first_block,
    read_header,
)

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
    return Section(*_SECTION.unpack_from(key))


class Indexed(Struct, frozen=True):
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
        """The key and the value of its row."""
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
        """True if the store has it, if only its first row."""
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
        """The row of the index after a rewind to this block; None if it stays as it is.

        A section that ended above the block is abandoned whole, and all smaller ones after it.
        """
        indexed = self.read(view)
        if indexed.end <= block + 1:
            return None
        size = max(size for size, end in enumerate(indexed.ends) if block + 1 < end)
        lowered = (block + 1) // SIZES[size] * SIZES[size]
        small, middle, large = (min(end, lowered) for end in indexed.ends)
        return self.at(view, (small, middle, large)).row


# The terms of a sealed block; none while they are not known.
TermsOf = Callable[[View, int], bytes | None]

TURN_S: Final = 0.01
GATHERED_BLOCKS: Final = 4096  # in memory at most
NOTED_BLOCKS: Final = 256  # without terms, that are noted together
# Blocks above a section of each size before its parts are merged into it.
MERGE_DISTANCE: Final = (0, 64, 1024)
MERGED_ENTRIES: Final = 4096  # of each part, in a turn
DELETED_ROWS: Final = 64  # in a turn

_ALL: Final = 1 << 20  # more rows than a small section can have


class _Gathered(Struct):
    """Terms of blocks from the end of the index on."""

    first: int = 0
    terms: list[bytes] = field(default_factory=list)
    last_hash: bytes = b""

    @property
    def stop(self) -> int:
        return self.first + len(self.terms)

    def is_of(self, view: View, indexed: Indexed) -> bool:
        """True if it continues where the index ends, on the chain of the view."""
        if self.first != indexed.end:
            return False
        return not self.terms or _hash(view, self.stop - 1) == self.last_hash


class _Merger(Struct):
    """A section that is being merged, and the entry from which the next turn continues."""

    section: Section
    start: bytes = FIRST_ENTRY


class _Written(Struct, frozen=True):
    """The rows of a turn."""

    put: list[tuple[bytes, bytes]]
    deleted: list[bytes]


class SectionIndexing:
    """The writer of one index of a store."""

    def __init__(
        self,
        store: Store,
        index: SectionIndex,
        terms_of: TermsOf,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store: Final = store
        self._index: Final = index
        self._terms_of: Final = terms_of
        self._clock: Final = clock
        self._gathered = _Gathered()
        self._merger: _Merger | None = None
        self._has_more = True  # an earlier process may have left work

    def turn(self, latest: int) -> bool:
        """Take a turn, if one is due up to this block; returns whether there may be more."""
        if not self._has_more and latest + 1 < _following(self._gathered.stop):
            return False
        with self._store.view() as view:
            indexed = self._index.read(view)
            if not self._gathered.is_of(view, indexed):
                self._gathered, self._merger = _Gathered(indexed.end), None
            is_behind = self._gather(view, latest)
            written = (
                self._whole_sections(view, indexed)
                or self._merge(view, indexed, latest)
                or self._leftovers(view, indexed)
            )
        if written is not None:
            self._store.put_rows(written.put, written.deleted)
        self._has_more = is_behind or written is not None
        return self._has_more

    def catch_up(self, latest: int) -> None:
        """Run turns until none is due."""
        while self.turn(latest):
            pass

    def _gather(self, view: View, latest: int) -> bool:
        """Read terms of further blocks; returns whether there are more."""
        gathered, until = self._gathered, self._clock() + TURN_S
        first = read_first_block(view).whole
        while gathered.stop <= latest and len(gathered.terms) < GATHERED_BLOCKS:
            block = gathered.stop
            block_hash = _hash(view, block)
            if not block_hash and block >= first:
                return False  # the caller's latest block is not in this view yet
            terms = self._terms_of(view, block) if block >= first else b""
            if terms is None:
                return False
            gathered.terms.append(terms)
            gathered.last_hash = block_hash
            if self._clock() >= until:
                break
        return gathered.stop <= latest

    def _whole_sections(self, view: View, indexed: Indexed) -> _Written | None:
        """The sections whose blocks are gathered, if they are to be written now."""
        gathered, size = self._gathered, SIZES[0]
        whole = len(gathered.terms) // size * size
        if whole < NOTED_BLOCKS and not any(gathered.terms[:whole]):
            return None
        put: list[tuple[bytes, bytes]] = []
        deleted: list[bytes] = []
        for start in range(0, whole, size):
            section = Section(indexed.key, 0, gathered.first + start)
            deleted += view.keys(section.prefix, _ALL)
            put += section.rows(log_section(gathered.terms[start : start + size]))
        end = gathered.first + whole
        put.append(self._index.at(view, (end, *indexed.ends[1:])).row)
        gathered.first = end
        del gathered.terms[:whole]
        return _Written(put, deleted)

    def _merge(self, view: View, indexed: Indexed, latest: int) -> _Written | None:
        """The next rows of a section that is merged from smaller ones."""
        section = _mergeable(indexed, latest)
        if section is None:
            return None
        if self._merger is None or self._merger.section != section:
            leftovers = view.keys(section.prefix, DELETED_ROWS)
            if leftovers:
                return _Written([], leftovers)
            self._merger = _Merger(section)
        parts = [(part.prefix, part.first - section.first) for part in section.parts()]
        chunks, start = merge_log_sections(view, parts, self._merger.start, MERGED_ENTRIES)
        put = section.rows(chunks)
        if start is None:
            ends = list(indexed.ends)
            ends[section.size] = section.stop
            put.append(self._index.at(view, (ends[0], ends[1], ends[2])).row)
            self._merger = None
        else:
            self._merger.start = start
        return _Written(put, [])

    def _leftovers(self, view: View, indexed: Indexed) -> _Written | None:
        """Rows of sections that were merged into larger ones."""
        for size in range(len(SIZES) - 1):
            found = view.keys(self._index.size_prefix(size), DELETED_ROWS)
            merged = [key for key in found if section_of_key(key).first < indexed.ends[size + 1]]
            if merged:
                return _Written([], merged)
        return None


def _hash(view: View, block: int) -> bytes:
    """The hash of a sealed block; empty for one that is not here, or before the first."""
    sealed = view.sealed(block)
    return b"" if sealed is None else sealed[0]


def _following(block: int) -> int:
    """The first end of a small section after this block."""
    return block - block % SIZES[0] + SIZES[0]


def _mergeable(indexed: Indexed, latest: int) -> Section | None:
    """The next section to be merged; none while its parts are few or may be rewound."""
    for size in range(1, len(SIZES)):
        section = Section(indexed.key, size, indexed.ends[size])
        distance = MERGE_DISTANCE[size]
        if section.stop <= indexed.ends[size - 1] and section.stop + distance <= latest:
            return section
    return None


ADDRESSES: Final = SectionIndex(b"T")

# How a row was made.
OF_TRANSACTIONS: Final = 0  # the block's state was no longer kept: calls inside are not known
OF_CALLS: Final = 1


def touched_key(number: int) -> bytes:
    """The key of the row of a block."""
    return b"a" + number.to_bytes(8)


def terms_of(view: View, number: int) -> bytes | None:
    """The terms of the addresses that a sealed block touches; none while it has no row."""
    sealed = view.sealed(number)
    if sealed is None:
        return None
    terms = touched_terms(view, touched_key(number), sealed[0])
    if terms is None and read_header(view, number)[0].transactions_root == EMPTY_ROOT:
        return b""
    return terms


LOGS: Final = SectionIndex(b"L")


def read_indexed(view: View) -> Indexed:
    """How far the logs of a view are indexed."""
    return LOGS.read(view)


class LogIndexing(SectionIndexing):
    """The writer of the index of logs of one store."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(store, LOGS, _terms_of, clock)


def _terms_of(view: View, block: int) -> bytes:
    keys = [receipts for _, receipts in body_keys(block, portions_of_sealed(view, block))]
    return log_terms(view, keys)
