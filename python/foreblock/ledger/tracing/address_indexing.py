"""Write the index of transactions by address behind the head.

Sealed blocks are run again to find the addresses that they touch. That takes longer than a turn
may, so a thread does it, some blocks at a time; a turn then stores their rows, and writes the
sections that these complete (`section_index`). No commit waits for either.

If a block's parent state is no longer kept, only its transactions and receipts are known: senders,
recipients and created contracts, but no calls inside. The row says so (`section_index`).

Each row is valid by the hash in it, so after a crash or a rewind the valid rows are found again,
and only the others are made again. A store gets its index when this class is first created for it,
from its first block on.
"""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, wait
from typing import Final, NamedTuple, Self

from foreblock._engine import Store, Tracer, View, touched_row
from foreblock.errors import ForeblockError, PrunedState, StoreError
from foreblock.ledger.reading.blocks import ReadableBlock
from foreblock.ledger.reading.stored_block import read_stored, some_receipts
from foreblock.ledger.reading.view import Ledger, LedgerView
from foreblock.ledger.storage.chain_head import read_first_block
from foreblock.ledger.storage.partial_rows import Position
from foreblock.ledger.storage.section_index import (
    ADDRESSES,
    OF_CALLS,
    OF_TRANSACTIONS,
    SectionIndexing,
    terms_of,
    touched_key,
)
from foreblock.ledger.tracing import traces
from foreblock.ledger.tracing.traces import read_replay
from foreblock.primitives import HASH_BYTES
from foreblock.scheduling.steps import Work

ADDRESS_BYTES: Final = 20
ENTRY_BYTES: Final = ADDRESS_BYTES + 4
# Bytes of entries; a block has 2,600 gas for each address that a transaction touches.
BOUNDS: Final = traces.TraceBounds(1 << 28)


class Touched(NamedTuple):
    """Entries of a block, and how they were found."""

    entries: bytes
    made: int

    @classmethod
    def of_row(cls, row: bytes) -> Self:
        """Read the row of a block."""
        return cls(row[HASH_BYTES + 1 :], row[HASH_BYTES])

    def transaction_indexes(self, address: bytes) -> list[int]:
        """The places of the transactions that touch an address, in order."""
        found: list[int] = []
        start = self.entries.find(address)
        while start >= 0:
            if start % ENTRY_BYTES == 0:
                place = self.entries[start + ADDRESS_BYTES : start + ENTRY_BYTES]
                found.append(int.from_bytes(place))
            start = self.entries.find(address, start + 1)
        return sorted(found)


def touched_by(view: LedgerView, block: ReadableBlock) -> Work:
    """Work that finds the addresses a block touches; the view stays open meanwhile."""
    try:
        trace = traces.block(read_replay(view, block), Tracer("touched"), BOUNDS)
    except PrunedState:
        return lambda **_limits: _by_transactions(view, block)

    def find(*, timeout_us: int | None = None, step_us: int | None = None) -> Touched:
        text = trace(timeout_us=timeout_us, step_us=step_us)
        return Touched(b"".join(iter(text.take, None)), OF_CALLS)

    return find


def touched_unbounded(view: LedgerView, block: ReadableBlock) -> Touched:
    """The addresses that a block touches, found at once; a failed replay is not an error."""
    try:
        found: Touched = touched_by(view, block)()
    except StoreError:
        raise
    except ForeblockError:
        return _by_transactions(view, block)
    return found


def _by_transactions(view: LedgerView, block: ReadableBlock) -> Touched:
    return Touched(b"".join(_entries(view, block)), OF_TRANSACTIONS)


def _entries(view: LedgerView, block: ReadableBlock) -> Iterator[bytes]:
    position = Position()
    for portion in read_stored(view, block).portions():
        for placed in some_receipts(portion, 0, len(portion), position):
            transaction, place = placed.transaction, position.transactions
            touched = {transaction.sender, transaction.to or placed.created}
            yield from (each + place.to_bytes(4) for each in touched if each is not None)
            position = placed.end


JOB_S: Final = 0.1  # after which no further block is begun
JOB_BYTES: Final = 4 << 20  # the same, of rows


class _Rows(NamedTuple):
    """The rows that a job has made, and the first block of the next job."""

    rows: list[tuple[bytes, bytes]]
    stop: int


class AddressIndexing:
    """The writer of the index of one store."""

    def __init__(
        self,
        store: Store,
        thread: Executor | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`thread` runs jobs; without one they are run in place."""
        self._store: Final = store
        self._thread: Final = thread
        self._clock: Final = clock
        self._ledger: Final = Ledger(store, announce=False)
        self._sections: Final = SectionIndexing(store, ADDRESSES, terms_of, clock)
        self._has_more_sections = True
        self._next = 0  # the first block that may have no row
        self._job: Future[_Rows] | None = None
        with store.view() as view:
            first = [] if ADDRESSES.exists(view) else [ADDRESSES.read(view).row]
        if first:
            store.put_rows(first, [])

    def turn(self, latest: int) -> bool:
        """Take a turn, if one is due up to this block; returns whether there may be more."""
        if self._job is not None:
            if not self._job.done():
                return False
            self._store_rows(self._job.result())
            return True
        if self._has_more_sections:
            self._has_more_sections = self._sections.turn(latest)
            return True
        return self._begin()

    def catch_up(self, latest: int) -> None:
        """Run turns until none is due, without a thread."""
        while self.turn(latest):
            pass

    def close(self) -> None:
        """Wait for the job and drop its result; the next turn repeats it."""
        if self._job is not None:
            wait([self._job])
            self._job = None

    def _begin(self) -> bool:
        """Begin a job, if blocks lack rows; returns whether it is done already."""
        with self._store.view() as view:
            self._next = self._first_without_row(view)
            latest = view.heads.latest
        assert latest is not None, "a chain never loses its first block"
        if self._next > latest[0]:
            return False
        if self._thread is None:
            self._store_rows(self._make_rows(self._next))
            return True
        self._job = self._thread.submit(self._make_rows, self._next)
        return False

    def _first_without_row(self, view: View) -> int:
        """Where to continue; a rewind may have led below the last job."""
        end = max(ADDRESSES.read(view).end, read_first_block(view).whole)
        if self._next <= end or terms_of(view, self._next - 1) is None:
            return end
        return self._next

    def _make_rows(self, first: int) -> _Rows:
        """Make rows of sealed blocks from one on, for some time."""
        until, made, size = self._clock() + JOB_S, list[tuple[bytes, bytes]](), 0
        view = self._ledger.view()
        try:
            number = first
            while number <= view.latest.number and size < JOB_BYTES:
                if terms_of(view.stored, number) is None:
                    row = _row(view, number)
                    made.append((touched_key(number), row))
                    size += len(row)
                number += 1
                if self._clock() >= until:
                    break
            return _Rows(made, number)
        finally:
            view.close()

    def _store_rows(self, made: _Rows) -> None:
        if made.rows:
            self._store.put_rows(made.rows, [])
        self._job, self._next = None, made.stop
        self._has_more_sections = True


def _row(view: LedgerView, number: int) -> bytes:
    block = view.resolve(number)
    entries, made = touched_unbounded(view, block)
    return touched_row(block.hash, made, entries)
