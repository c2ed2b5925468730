"""Transactions of flashblocks as an ordinary node has them: they wait to be in a block.

Where nothing above `latest` is shown, a pre-confirmed transaction is found by its hash without a
block; so it is in the pool, too, until its block is sealed. It can run: it has.
"""

from dataclasses import dataclass

from foreblock.bus.pool_question import MOST_BYTES
from foreblock.errors import PoolTooLarge
from foreblock.ledger.reading.blocks import ReadableBlock
from foreblock.ledger.reading.placed_receipts import read_transaction
from foreblock.ledger.reading.transaction_lookup import count_transactions
from foreblock.ledger.reading.view import LedgerView
from foreblock.ledger.rules.unsigned_deposits import is_from_user
from foreblock.methods.blocks.block_places import BlockPlaces
from foreblock.scheduling.steps import Steps
from foreblock.scheduling.thresholds import THRESHOLDS
from foreblock.types import Transaction


@dataclass(frozen=True, slots=True)
class Unsealed:
    """A pre-confirmed transaction."""

    raw: bytes
    sender: bytes
    can_run: bool = True


class UnsealedTransactions:
    """The transactions above `latest`, of the blocks that a view has."""

    def __init__(self, places: BlockPlaces) -> None:
        self._places = places

    def number(self, view: LedgerView) -> Steps[int]:
        """How many there are; those that a block begins with and nobody sent do not count."""
        found = 0
        for block in _blocks(view):
            found += count_transactions(view, block) - (yield from self._first(view, block))
        return found

    def all(self, view: LedgerView) -> Steps[tuple[Unsealed, ...]]:
        """All of them, by their places; raises `PoolTooLarge`."""
        found: list[Unsealed] = []
        size = 0
        for block in reversed(_blocks(view)):
            first = yield from self._first(view, block)
            for place in range(first, count_transactions(view, block)):
                transaction = yield from self._at(view, block, place)
                if transaction is None or not is_from_user(transaction):
                    continue
                found.append(Unsealed(transaction.raw, transaction.sender))
                size += len(transaction.raw)
                if size > MOST_BYTES:
                    raise PoolTooLarge(size, MOST_BYTES)
                if len(found) % THRESHOLDS.rendered_waiting == 0:
                    yield None
        return tuple(found)

    def _first(self, view: LedgerView, block: ReadableBlock) -> Steps[int]:
        """The place of the first that somebody sent, or beyond the last."""
        place = 0
        while True:
            transaction = yield from self._at(view, block, place)
            if transaction is None or is_from_user(transaction):
                return place
            place += 1
            yield None

    def _at(self, view: LedgerView, block: ReadableBlock, place: int) -> Steps[Transaction | None]:
        portion = yield from self._places.portion_at(view, block, place)
        return read_transaction(view, block, portion, place)


def _blocks(view: LedgerView) -> list[ReadableBlock]:
    """The unsealed blocks, the newest first."""
    found: list[ReadableBlock] = []
    block = view.pending
    while block is not None and block.number > view.latest.number:
        found.append(block)
        block = view.below(block)
    return found
