"""All of a block as it is stored, for those who show it.

A body is stored in portions. A block that came as a whole has one; one that was
pre-confirmed has one for each flashblock, and what was sealed of it shares them. Portions
are read when they are asked for, so that whoever has kept what they made of one need not
read it again.

Transactions are kept as they were signed. To know a sender takes tens of microseconds, so
they are decoded some at a time, as many as the reader has time for; only portions of
flashblocks know their senders.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from foreblock._engine import (
    Authorization,
    Block,
    Header,
    Transaction,
    Withdrawal,
    decode_transactions,
    keccak256,
)
from foreblock.ledger import partial_rows, rows
from foreblock.ledger.block_size import block_size, transaction_size
from foreblock.ledger.deposit_receipt import deposit_fields
from foreblock.ledger.forks import EthereumFork
from foreblock.ledger.preconfirmed_block import ReadableBlock
from foreblock.ledger.view import LedgerView

__all__ = [
    "Authorization",
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
    """Transactions that are stored together."""

    raws: tuple[bytes, ...]
    senders: Sequence[bytes] | None  # where they are stored
    receipts: tuple[bytes, ...]  # as in their trie
    homestead: bool  # whether signatures follow EIP-2

    @property
    def size(self) -> int:
        """The length of their encodings in a block, in bytes."""
        return sum(map(transaction_size, self.raws))

    def hashes(self) -> list[bytes]:
        """The hashes of all transactions."""
        return list(map(keccak256, self.raws))

    def transactions(self, start: int, stop: int) -> list[Transaction]:
        """Some of the transactions with their senders."""
        return decode_transactions(
            self.raws[start:stop],
            threads=1,
            homestead=self.homestead,
            senders=None if self.senders is None else self.senders[start:stop],
        )

    def deposit_fields(self, index: int) -> tuple[int, int] | None:
        """Nonce and receipt version of a transaction, if it is a deposit."""
        return deposit_fields(self.receipts[index])


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

    def encode(self) -> bytes:
        """The block as it is in a file of blocks."""
        raws = [raw for portion in self.portions() for raw in portion.raws]
        return Block(self.header, raws, self.uncles, self.withdrawals).encode()

    def size(self, transactions: int) -> int:
        """The length of the block's encoding, given that of its transactions."""
        return block_size(self.header, transactions, self.uncles, self.withdrawals)


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
    body = rows.decode_body(view.row(rows.body_key(block.number), block))
    receipts = rows.decode_items(view.row(rows.receipts_key(block.number), block))
    homestead = block.rules.ethereum >= EthereumFork.HOMESTEAD
    portion = Portion(body.transactions, None, receipts, homestead)
    part = Part(None, lambda: portion)
    return StoredBlock(block.header, body.uncles, body.withdrawals, (part,))


def _read_portion(view: LedgerView, block: ReadableBlock, number: int) -> Portion:
    place = (block.number, number)
    senders = view.row(partial_rows.senders_key(*place), block)
    return Portion(
        raws=rows.decode_items(view.row(partial_rows.transactions_key(*place), block)),
        senders=partial_rows.split_senders(senders),
        receipts=rows.decode_items(view.row(partial_rows.receipts_key(*place), block)),
        homestead=True,
    )
