"""The addresses that the transactions of a block touch, as entries of its row.

They are found by running the block again. Where its parent's state is no longer kept, they are
what its transactions and receipts say: senders, recipients and created contracts. Then calls
inside the transactions are not known, and the row says so (`block_indexes`).
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from foreblock._engine import Tracer
from foreblock.errors import ForeblockError, PrunedState, StoreError
from foreblock.ledger.reading.blocks import ReadableBlock
from foreblock.ledger.reading.placed_receipts import some_receipts
from foreblock.ledger.reading.stored_block import read_stored
from foreblock.ledger.reading.view import LedgerView
from foreblock.ledger.storage.block_indexes import OF_CALLS, OF_TRANSACTIONS
from foreblock.ledger.storage.partial_rows import Position
from foreblock.ledger.tracing import traces
from foreblock.ledger.tracing.replay import read_replay
from foreblock.scheduling.steps import Work

ADDRESS_BYTES: Final = 20
ENTRY_BYTES: Final = ADDRESS_BYTES + 4
# Bytes of entries; a block has 2,600 gas for each address that a transaction touches.
BOUNDS: Final = traces.TraceBounds(1 << 28)


class Touched(NamedTuple):
    """Entries of a block, and how they were found."""

    entries: bytes
    made: int

    def places(self, address: bytes) -> list[int]:
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
    """Work that finds what a block touches; the view stays open meanwhile."""
    try:
        trace = traces.block(read_replay(view, block), Tracer.touched(), BOUNDS)
    except PrunedState:
        return lambda **_limits: _by_transactions(view, block)

    def find(*, timeout_us: int | None = None, step_us: int | None = None) -> Touched:
        text = trace(timeout_us=timeout_us, step_us=step_us)
        return Touched(b"".join(iter(text.take, None)), OF_CALLS)

    return find


def touched_unbounded(view: LedgerView, block: ReadableBlock) -> Touched:
    """What a block touches, found at once; a block that cannot be run again is no failure."""
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
