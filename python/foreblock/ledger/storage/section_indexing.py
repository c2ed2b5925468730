"""Write an index in sections behind the head, in turns that no commit waits for.

A turn reads the terms of sealed blocks for a bounded time and writes the sections that are
whole, then merges sections into a larger one, then deletes those that were merged: one durable
transaction at most. It draws no number, since no answer depends on how far the index is.

Small sections are written as soon as their blocks are sealed; they are merged when a rewind to
below their end has become unlikely, because such a rewind gives up the whole section. Blocks
without terms are noted only now and then: an idle chain writes nothing here for minutes.

What is gathered is kept with the hashes of its blocks, and a merger with the sections that it
began with; each turn compares them with the store first. After a crash both start again.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from foreblock._engine import Store, View, log_section, merge_log_sections
from foreblock.ledger.storage.first_block import read_first_block
from foreblock.ledger.storage.section_index import (
    FIRST_ENTRY,
    SIZES,
    Indexed,
    Section,
    SectionIndex,
    section_of_key,
)

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


@dataclass(slots=True)
class _Gathered:
    """Terms of blocks from the end of the index on."""

    first: int = 0
    terms: list[bytes] = field(default_factory=list)
    last_hash: bytes = b""

    @property
    def stop(self) -> int:
        return self.first + len(self.terms)

    def is_of(self, view: View, indexed: Indexed) -> bool:
        """Whether it goes on where the index ends, on the chain of the view."""
        if self.first != indexed.end:
            return False
        return not self.terms or _hash(view, self.stop - 1) == self.last_hash


@dataclass(slots=True)
class _Merger:
    """A section that is being merged, and the entry from which the next turn goes on."""

    section: Section
    start: bytes = FIRST_ENTRY


@dataclass(frozen=True, slots=True)
class _Written:
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
        """Take a turn, if one is due up to this block; gives whether there may be more."""
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
        """Take turns until nothing is due."""
        while self.turn(latest):
            pass

    def _gather(self, view: View, latest: int) -> bool:
        """Read terms of further blocks; gives whether there are more."""
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
            deleted += _keys(view, section.prefix, _ALL)
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
            leftovers = _keys(view, section.prefix, DELETED_ROWS)
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
            found = view.rows(self._index.size_prefix(size), DELETED_ROWS)
            merged = [key for key, _ in found if section_of_key(key).first < indexed.ends[size + 1]]
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


def _keys(view: View, prefix: bytes, limit: int) -> list[bytes]:
    return [key for key, _ in view.rows(prefix, limit)]
