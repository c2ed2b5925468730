"""Transactions of blocks, by hash or by position, and the raw forms of blocks and their parts.

A transaction is found by its hash, by its sender and nonce, or by a block and its index. A
transaction that is only in the pool is not shown, unless the view is sealed: an ordinary node
shows all that wait for a sealed block, with null for the block.

Raw forms are the bytes that are hashed: of a header and a block its RLP, of a transaction and a
receipt its encoding in the trie (EIP-2718). They let one service be the source of another. An
unknown block is an error, and an unknown transaction is `0x`, as in geth.
"""

from binascii import hexlify
from collections.abc import Awaitable
from contextlib import suppress
from functools import partial

from msgspec import Raw

from foreblock.errors import PoolUnavailable
from foreblock.ledger.reading.blocks import PRECONFIRMED, ReadableBlock
from foreblock.ledger.reading.stored_block import read_stored
from foreblock.ledger.reading.transaction_lookup import (
    count_transactions,
    find_transaction,
    find_unsealed,
)
from foreblock.ledger.reading.view import LedgerView
from foreblock.ledger.tracing.address_search import find_sent
from foreblock.methods import shapes
from foreblock.methods.blocks.block_methods import CountInBlock, ItemByIndex
from foreblock.methods.blocks.receipts import ReceiptCache, read_hash
from foreblock.methods.params import BlockName, Params, address, find_block, quantity, reader
from foreblock.methods.sequencing import (
    WaitingPool,
    decode_waiting,
    waiting_nonce,
    waiting_text,
)
from foreblock.methods.shapes import write_data
from foreblock.primitives import rlp_list_prefix
from foreblock.scheduling.reply import Text, in_pieces
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Mapped, Pace, Steps
from foreblock.scheduling.thresholds import THRESHOLDS


class SentParams(Params):
    """The arguments of eth_getTransactionBySenderAndNonce."""

    sender: str
    nonce: str


_read_sent = reader(SentParams)


class TransactionMethods:
    """Methods that show transactions."""

    def __init__(self, cache: ReceiptCache, scheduler: Scheduler, pool: WaitingPool) -> None:
        self._cache = cache
        self._scheduler = scheduler
        self._pool = pool
        self.by_index = ItemByIndex(scheduler, self._show)
        self.counting = CountInBlock(scheduler, count_transactions)

    def get_by_hash(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """A transaction of the chain or of the pending block, or null."""
        wanted = read_hash(raw)
        found = self._scheduler.read_item(partial(self._find, view, wanted))
        if view.visibility.preconfirmed:
            return found
        following = partial(self._or_waiting, view, wanted)
        return following(found) if isinstance(found, bytes) else Mapped(found, following)

    def get_by_sender_and_nonce(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """The transaction that an account sent with a nonce, or null."""
        params = _read_sent(raw)
        sender, nonce = address(params.sender, 0), quantity(params.nonce, 64, 1)
        found = self._scheduler.run(partial(self._find_sent, view, sender, nonce), view.client)
        following = partial(self._or_of_sender, view, sender, nonce)
        return following(found) if isinstance(found, bytes) else Mapped(found, following)

    def _find_sent(self, view: LedgerView, sender: bytes, nonce: int, _pace: Pace) -> Steps[bytes]:
        wanted = yield from find_sent(view, sender, nonce)
        if wanted is None:
            return b"null"
        if found := find_transaction(view, wanted):
            return self._show(view, *found)
        unsealed = find_unsealed(view, wanted)
        return b"null" if unsealed is None else self._show(view, *unsealed, placed=False)

    def _or_of_sender(
        self, view: LedgerView, sender: bytes, nonce: int, found: bytes
    ) -> bytes | Awaitable[bytes]:
        """Return the transaction found in blocks, or else one of the pool if that is shown."""
        if found != b"null" or view.visibility.preconfirmed:
            return found
        return self._find_of_sender(sender, nonce)

    async def _find_of_sender(self, sender: bytes, nonce: int) -> bytes:
        with suppress(PoolUnavailable):
            for each in decode_waiting(await self._pool.of_sender(sender)):
                if waiting_nonce(each) == nonce:
                    return waiting_text(each)
        return b"null"

    def _find(self, view: LedgerView, transaction_hash: bytes) -> bytes:
        found = find_transaction(view, transaction_hash)
        return b"null" if found is None else self._show(view, *found)

    def _or_waiting(
        self, view: LedgerView, transaction_hash: bytes, found: bytes
    ) -> bytes | Awaitable[bytes]:
        """Return the transaction found in the sealed chain, or else one that waits for a block."""
        if found != b"null":
            return found
        unsealed = find_unsealed(view, transaction_hash)
        if unsealed is None:
            return self._find_in_pool(view, transaction_hash)
        return self._show(view, *unsealed, placed=False)

    async def _find_in_pool(self, view: LedgerView, transaction_hash: bytes) -> bytes:
        with suppress(PoolUnavailable):
            waiting = await self._pool.find(transaction_hash)
            if waiting is not None:
                return waiting_text(decode_waiting([waiting])[0])
        # It may have left the pool for a flashblock that this view does not have yet.
        newer = view.renewed(PRECONFIRMED)
        try:
            found = find_transaction(newer, transaction_hash)
            if found is None:
                return b"null"
            return self._show(newer, *found, placed=False)
        finally:
            newer.close()

    def _show(
        self, view: LedgerView, block: ReadableBlock, place: int, *, placed: bool = True
    ) -> bytes:
        found = self._cache.stored(view, block).transaction(view.stored, place)
        if found is None:
            return b"null"
        transaction, deposit = found
        if not placed:
            return waiting_text(transaction, deposit)
        fragment = transaction.fragment(block.header, place, deposit)
        return shapes.whole_transaction(block.hash, fragment)


NOTHING = b'"0x"'


class RawParams(Params):
    """The arguments of a method that names a block."""

    block: BlockName


_read_raw = reader(RawParams)


class RawMethods:
    """Methods that return bytes."""

    def __init__(self, cache: ReceiptCache, scheduler: Scheduler) -> None:
        self._cache = cache
        self._scheduler = scheduler
        self.by_index = ItemByIndex(scheduler, self._show, NOTHING)

    def get_header(self, view: LedgerView, raw: Raw) -> bytes:
        """The RLP of the header of a block."""
        return write_data(_named(view, raw).header.encode())

    def get_block(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """The RLP of a block."""
        block = _named(view, raw)
        return self._scheduler.coalesce((self, block.key), partial(_encode_block, view, block))

    def get_receipts(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """The encoded receipts of a block, in order."""
        block = _named(view, raw)
        key = (self, "receipts", block.key)
        return self._scheduler.coalesce(key, partial(_list_receipts, view, block))

    def get_transaction(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """An encoded transaction of the chain or of the pending block, or 0x."""
        return self._scheduler.read_item(partial(self._find, view, read_hash(raw)))

    def _find(self, view: LedgerView, transaction_hash: bytes) -> bytes:
        found = find_transaction(view, transaction_hash)
        return NOTHING if found is None else self._show(view, *found)

    def _show(self, view: LedgerView, block: ReadableBlock, place: int) -> bytes:
        found = self._cache.stored(view, block).transaction(view.stored, place)
        return NOTHING if found is None else write_data(found[0].raw)


def _named(view: LedgerView, raw: Raw) -> ReadableBlock:
    return find_block(view, _read_raw(raw).block, 0)


def _encode_block(view: LedgerView, block: ReadableBlock) -> Steps[Text]:
    """A block's encoding as text, joined from those of its transactions."""
    stored = read_stored(view, block)
    size = 0
    texts: list[bytes] = []
    for part in stored.parts:
        items = part.read().items
        size += items.encoded_size
        some = THRESHOLDS.encoded_transactions
        for start in range(0, len(items), some):
            texts.append(hexlify(items.encode(start, start + some)))
            yield None
    header, end = stored.header.encode(), stored.end()
    transactions = rlp_list_prefix(size)
    whole = rlp_list_prefix(len(header) + len(transactions) + size + len(end))
    beginning = hexlify(whole + header + transactions)
    return in_pieces([b'"0x' + beginning, *texts, hexlify(end) + b'"'])


def _list_receipts(view: LedgerView, block: ReadableBlock) -> Steps[Text]:
    pieces: list[bytes] = []
    for part in read_stored(view, block).parts:
        receipts = part.read().receipts
        some = THRESHOLDS.encoded_receipts
        for start in range(0, len(receipts), some):
            texts = map(write_data, receipts.take(start, start + some))
            pieces.append((b"," if pieces else b"[") + b",".join(texts))
            yield None
    return in_pieces([*pieces, b"]"]) if pieces else b"[]"
