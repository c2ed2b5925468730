"""All of a block as it is stored, for those who show it.

A body is stored in portions. A block that came as a whole has one; one that was
pre-confirmed has one for each flashblock, and what was sealed of it shares them. Portions
are read when they are asked for, so that whoever has kept what they made of one need not
read it again. What was read needs its view no more.

Transactions are kept as they were signed. To know a sender takes tens of microseconds, so
they are shown some at a time, as many as the reader has time for; only portions of
flashblocks know their senders. Whoever wants a single one reads it by `portion_places`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from foreblock._engine import (
    Block,
    Header,
    StoredItems,
    Transaction,
    Withdrawal,
    decode_transactions,
)
from foreblock.errors import StoreDamaged
from foreblock.ledger.reading.portion_places import PortionRows, portion_rows
from foreblock.ledger.reading.preconfirmed_block import ReadableBlock
from foreblock.ledger.reading.view import LedgerView
from foreblock.ledger.rules.block_size import block_size
from foreblock.ledger.rules.forks import EthereumFork
from foreblock.ledger.storage import rows
from foreblock.ledger.storage.partial_rows import split_senders

__all__ = [
    "Header",
    "Part",
    "Portion",
    "StoredBlock",
    "Transaction",
    "Withdrawal",
    "read_stored",
]


@dataclass(frozen=True, slots=True)
class Portion:
    """Transactions that are stored together, with their receipts."""

    items: StoredItems  # the transactions, as in their trie
    receipts: StoredItems  # as in their trie
    senders: bytes | None  # 20 bytes each, where they are stored
    homestead: bool  # whether signatures follow EIP-2

    def __len__(self) -> int:
        return len(self.items)

    @property
    def raws(self) -> list[bytes]:
        """All transactions."""
        return self.items.take(0, len(self.items))

    @property
    def stored_bytes(self) -> int:
        """About how many bytes it takes to keep."""
        return self.items.end + self.receipts.end + 40 * len(self.items)

    def transactions(self, start: int, stop: int) -> list[Transaction]:
        """Some of the transactions with their senders."""
        senders = None if self.senders is None else self.senders[20 * start : 20 * stop]
        return decode_transactions(
            self.items.take(start, stop),
            threads=1,
            homestead=self.homestead,
            senders=None if senders is None else split_senders(senders),
        )

    def fragments(self, start: int, stop: int, first: int, header: Header) -> list[bytes]:
        """Some of the transactions as JSON, see `Transaction.fragment`.

        `first` is the place of the portion in the block of this header.
        """
        return self.items.fragments(
            self.receipts,
            start,
            stop,
            header=header,
            first=first,
            homestead=self.homestead,
            senders=self.senders,
        )


@dataclass(frozen=True, slots=True)
class Part:
    """A portion that can be read while its view is open."""

    number: int | None  # of the partial whose flashblock it is; none where it is a whole body
    read: Callable[[], Portion]


@dataclass(frozen=True, slots=True)
class StoredBlock:
    """A block with everything that is in it."""

    header: Header
    uncles: tuple[Header, ...]
    withdrawals: tuple[Withdrawal, ...] | None
    parts: tuple[Part, ...]

    def portions(self) -> list[Portion]:
        """All of them, in their order."""
        return [part.read() for part in self.parts]

    def size(self, transactions: int) -> int:
        """The length of the block's encoding, given that of its transactions."""
        return block_size(self.header, transactions, self.uncles, self.withdrawals)

    def end(self) -> bytes:
        """What follows the list of transactions in the block's encoding."""
        empty = Block(self.header, (), self.uncles, self.withdrawals).encode()
        return empty[empty.index(self.header.encode()) + self.header.size + 1 :]


def read_stored(view: LedgerView, block: ReadableBlock) -> StoredBlock:
    """Everything that a view has of a block."""
    numbers = view.made_of(block)
    if not numbers:
        return _read_whole(view, block)
    # OP chains have neither uncles nor withdrawals, and from Canyon on an empty list of these.
    withdrawals = None if block.header.withdrawals_root is None else ()
    parts = [Part(number, partial(_read_portion, view, block, number)) for number in numbers]
    return StoredBlock(block.header, (), withdrawals, tuple(parts))


def _read_whole(view: LedgerView, block: ReadableBlock) -> StoredBlock:
    stored = portion_rows(block, None)
    body = view.row(stored.transactions, block)
    portion = _portion(view, block, stored, body)
    uncles, withdrawals = rows.decode_body_end(body[portion.items.end :])
    return StoredBlock(block.header, uncles, withdrawals, (Part(None, lambda: portion),))


def _read_portion(view: LedgerView, block: ReadableBlock, number: int) -> Portion:
    stored = portion_rows(block, number)
    return _portion(view, block, stored, view.row(stored.transactions, block))


def _portion(view: LedgerView, block: ReadableBlock, stored: PortionRows, body: bytes) -> Portion:
    portion = Portion(
        items=StoredItems(body),
        receipts=StoredItems(view.row(stored.receipts, block)),
        senders=None if stored.senders is None else view.row(stored.senders, block),
        homestead=block.rules.ethereum >= EthereumFork.HOMESTEAD,
    )
    if len(portion.items) != len(portion.receipts):
        raise StoreDamaged(f"block {block.number} lacks receipts")
    return portion
