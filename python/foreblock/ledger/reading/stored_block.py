"""A stored block as methods show it: its portions, transactions and receipts.

A body is stored in portions: one for a block that was imported whole, one per flashblock for a
pre-confirmed block and for the block sealed from it. A portion is read on first use, so a caller
that cached a rendering of it skips the read. A portion outlives its view.

Transactions are kept as they were signed. Recovering a sender takes tens of microseconds, so
callers decode a few transactions at a time if a store of an older version lacks the senders.
Single transactions and receipts are read by the engine (`transaction_lookup`).

A receipt as consensus keeps it has the gas of all transactions up to its own, and no index for its
logs. Both follow from the start of its portion and from the receipts before it in the portion;
those are skipped over, not decoded.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from msgspec import Struct

from foreblock._engine import (
    Block,
    Header,
    Receipt,
    StoredItems,
    Transaction,
    decode_receipt,
    decode_transactions,
)
from foreblock.errors import StoreDamaged
from foreblock.ledger.reading.blocks import ReadableBlock
from foreblock.ledger.reading.transaction_lookup import PortionRows, portion_rows
from foreblock.ledger.reading.view import LedgerView
from foreblock.ledger.rules.forks import EthereumFork
from foreblock.ledger.rules.transaction_rules import DEPOSIT, created_address
from foreblock.ledger.storage import rows
from foreblock.ledger.storage.partial_rows import Position, split_senders
from foreblock.primitives import rlp_list_prefix
from foreblock.types import Withdrawal


class Portion(Struct, frozen=True):
    """Transactions that are stored together, with their receipts."""

    items: StoredItems  # the transactions, as in their trie
    receipts: StoredItems  # as in their trie
    senders: bytes | None  # 20 bytes each, where they are stored
    homestead: bool  # whether signatures follow EIP-2

    def __len__(self) -> int:
        return len(self.items)

    @property
    def raws(self) -> list[bytes]:
        return self.items.take(0, len(self.items))

    @property
    def stored_bytes(self) -> int:
        """About how much memory it takes."""
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


class UnreadPortion(Struct, frozen=True):
    """A portion that can be read while its view is open."""

    number: int | None  # of the partial whose flashblock it is; None if it is a whole body
    read: Callable[[], Portion]


class BlockParts(Struct, frozen=True):
    """A block with everything that is in it, its body in portions."""

    header: Header
    uncles: tuple[Header, ...]
    withdrawals: tuple[Withdrawal, ...] | None
    parts: tuple[UnreadPortion, ...]

    def portions(self) -> list[Portion]:
        """All of them, in their order."""
        return [part.read() for part in self.parts]

    def size(self, transactions: int) -> int:
        """The length of the block's encoding, given that of its transactions."""
        size = len(self.header.encode()) + _list_size(transactions) + len(self.end())
        return _list_size(size)

    def end(self) -> bytes:
        """The encoding of the block after its list of transactions: uncles and withdrawals."""
        empty, header = Block(self.header, (), self.uncles, self.withdrawals), self.header.encode()
        _, _, rest = empty.encode().partition(header)
        return rest[1:]


def read_stored(view: LedgerView, block: ReadableBlock) -> BlockParts:
    """The block with its body, from a view that has it."""
    numbers = view.partials_of(block)
    if not numbers:
        return _read_whole(view, block)
    # OP chains have neither uncles nor withdrawals, and from Canyon on an empty list of these.
    withdrawals = None if block.header.withdrawals_root is None else ()
    parts = [
        UnreadPortion(number, partial(read_portion, view, block, number)) for number in numbers
    ]
    return BlockParts(block.header, (), withdrawals, tuple(parts))


def _read_whole(view: LedgerView, block: ReadableBlock) -> BlockParts:
    stored = portion_rows(block, None)
    body = view.row(stored.transactions, block)
    portion = _portion(view, block, stored, body)
    uncles, withdrawals = rows.decode_body_end(body[portion.items.end :])
    return BlockParts(block.header, uncles, withdrawals, (UnreadPortion(None, lambda: portion),))


def read_portion(view: LedgerView, block: ReadableBlock, number: int) -> Portion:
    """The portion of one flashblock of a block."""
    stored = portion_rows(block, number)
    return _portion(view, block, stored, view.row(stored.transactions, block))


def portion_of(
    block: ReadableBlock, transactions: Sequence[bytes], receipts: Sequence[bytes]
) -> Portion:
    """The whole body of a block that is not in the store, as in its tries."""
    return Portion(
        items=StoredItems(rows.encode_items(transactions)),
        receipts=StoredItems(rows.encode_items(receipts)),
        senders=None,
        homestead=block.rules.ethereum >= EthereumFork.HOMESTEAD,
    )


def _portion(view: LedgerView, block: ReadableBlock, stored: PortionRows, body: bytes) -> Portion:
    may_lack = stored.is_whole
    senders = view.stored.row(stored.senders) if may_lack else view.row(stored.senders, block)
    portion = Portion(
        items=StoredItems(body),
        receipts=StoredItems(view.row(stored.receipts, block)),
        senders=senders,
        homestead=block.rules.ethereum >= EthereumFork.HOMESTEAD,
    )
    if len(portion.items) != len(portion.receipts):
        raise StoreDamaged(f"block {block.number} lacks receipts")
    return portion


def _list_size(length: int) -> int:
    return len(rlp_list_prefix(length)) + length


class PlacedReceipt(Struct, frozen=True):
    """A transaction with its receipt, and the counts before it in its block."""

    transaction: Transaction
    receipt: Receipt
    before: Position

    @property
    def gas_used(self) -> int:
        """The gas of this transaction alone."""
        return self.receipt.cumulative_gas_used - self.before.gas

    @property
    def end(self) -> Position:
        """The position of the next one."""
        return Position(
            self.before.transactions + 1,
            self.receipt.cumulative_gas_used,
            self.before.logs + len(self.receipt.logs),
        )

    @property
    def created(self) -> bytes | None:
        """The address of the contract it creates; unknown for a deposit before Canyon."""
        transaction, nonce = self.transaction, self.transaction.nonce
        if transaction.to is not None:
            return None
        if transaction.type == DEPOSIT:
            if self.receipt.deposit_nonce is None:
                return None
            nonce = self.receipt.deposit_nonce
        return created_address(transaction.sender, nonce)


def some_receipts(
    portion: Portion, start: int, stop: int, before: Position
) -> Iterator[PlacedReceipt]:
    """Receipts of a portion; `before` are the counts before the first one."""
    transactions = portion.transactions(start, stop)
    for transaction, encoded in zip(transactions, portion.receipts.take(start, stop), strict=True):
        placed = PlacedReceipt(transaction, decode_receipt(encoded), before)
        yield placed
        before = placed.end
