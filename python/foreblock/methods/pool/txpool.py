"""txpool_status, txpool_content, txpool_contentFrom, txpool_inspect, base_transactionStatus.

Transactions in no committed flashblock: `pending` are those that can run, `queued` those that
wait for a nonce. The forms are geth's; the order of accounts is the pool's. The writer provides
these responses, which belong to no snapshot.

A sealed view shows nothing above `latest`, so the transactions of flashblocks (`Unsealed`) are
in the pool, too, until their block is sealed.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import Final, TypeVar

import msgspec
from msgspec import Raw, Struct

from foreblock.bus.messages import MOST_POOL_BYTES
from foreblock.errors import PoolTooLarge, TransactionDropped
from foreblock.ledger.reading.blocks import PRECONFIRMED, ReadableBlock
from foreblock.ledger.reading.transaction_lookup import (
    count_transactions,
    find_transaction,
    find_unsealed,
)
from foreblock.ledger.reading.view import LedgerView
from foreblock.ledger.rules.transaction_rules import checksum_address, is_from_user
from foreblock.ledger.storage.mirror_rows import why_dropped
from foreblock.methods.blocks.receipts import ReceiptCache, read_hash
from foreblock.methods.params import Params, address, reader, take_none
from foreblock.methods.sequencing import (
    InPool,
    WaitingPool,
    decode_waiting,
    waiting_nonce,
    waiting_text,
)
from foreblock.scheduling.reply import Text, in_pieces
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Steps
from foreblock.scheduling.thresholds import THRESHOLDS
from foreblock.types import Transaction


class Unsealed(Struct, frozen=True):
    """A pre-confirmed transaction."""

    raw: bytes
    sender: bytes
    can_run: bool = True


class UnsealedTransactions:
    """The transactions above `latest`, of the blocks that a view has."""

    def __init__(self, cache: ReceiptCache) -> None:
        self._cache = cache

    def number(self, view: LedgerView) -> Steps[int]:
        """Return their number, without the system transactions at the start of a block."""
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
                transaction = self._at(view, block, place)
                if transaction is None or not is_from_user(transaction):
                    continue
                found.append(Unsealed(transaction.raw, transaction.sender))
                size += len(transaction.raw)
                if size > MOST_POOL_BYTES:
                    raise PoolTooLarge(size, MOST_POOL_BYTES)
                if len(found) % THRESHOLDS.rendered_waiting == 0:
                    yield None
        return tuple(found)

    def _first(self, view: LedgerView, block: ReadableBlock) -> Steps[int]:
        """The place of the first that somebody sent, or beyond the last."""
        place = 0
        while True:
            transaction = self._at(view, block, place)
            if transaction is None or is_from_user(transaction):
                return place
            place += 1
            yield None

    def _at(self, view: LedgerView, block: ReadableBlock, place: int) -> Transaction | None:
        found = self._cache.stored(view, block).transaction(view.stored, place)
        return None if found is None else found[0]


def _blocks(view: LedgerView) -> list[ReadableBlock]:
    """The unsealed blocks, the newest first."""
    found: list[ReadableBlock] = []
    block = view.pending
    while block is not None and block.number > view.latest.number:
        found.append(block)
        block = view.below(block)
    return found


T = TypeVar("T")

# From a transaction to its JSON text.
Write = Callable[[Transaction], bytes]
Spell = Callable[[bytes], str]

KNOWN: Final = b'{"status":"Known"}'
UNKNOWN: Final = b'{"status":"Unknown"}'


class SenderParams(Params):
    """The arguments of txpool_contentFrom."""

    address: str


_read_sender = reader(SenderParams)


class PoolMethods:
    """Methods that show the pool."""

    def __init__(
        self, pool: WaitingPool, scheduler: Scheduler, unsealed: UnsealedTransactions
    ) -> None:
        self._pool = pool
        self._scheduler = scheduler
        self._unsealed = unsealed

    def status(self, view: LedgerView, raw: Raw) -> Awaitable[bytes]:
        """The number of transactions that can run, and of those that wait for a nonce."""
        take_none(raw)
        return self._count(view)

    def content(self, view: LedgerView, raw: Raw) -> Awaitable[Text]:
        """All transactions that wait, by sender and nonce."""
        take_none(raw)
        return self._show_all(view, waiting_text, _spelling(view))

    def content_from(self, view: LedgerView, raw: Raw) -> Awaitable[Text]:
        """The transactions of one sender that wait, by nonce."""
        return self._show_sender(view, address(_read_sender(raw).address, 0))

    def inspect(self, view: LedgerView, raw: Raw) -> Awaitable[Text]:
        """All transactions that wait, each in a line for people."""
        take_none(raw)
        spell = _spelling(view)
        return self._show_all(view, partial(_in_a_line, spell=spell), spell)

    def transaction_status(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """The status of a transaction that the sequencer has and no sealed block does."""
        wanted = read_hash(raw)
        if find_unsealed(view, wanted) is not None:
            return KNOWN
        why = why_dropped(view.stored, wanted)
        if why is not None and find_transaction(view, wanted) is None:
            raise TransactionDropped(why)
        return self._search_pool(wanted)

    async def _search_pool(self, transaction_hash: bytes) -> bytes:
        return UNKNOWN if await self._pool.find(transaction_hash) is None else KNOWN

    async def _count(self, view: LedgerView) -> bytes:
        pending, queued = await self._pool.numbers()
        pending += await self._above(view, self._unsealed.number, 0)
        return b'{"pending":"0x%x","queued":"0x%x"}' % (pending, queued)

    async def _show_all(self, view: LedgerView, write: Write, spell: Spell) -> Text:
        waiting = await self._pool.all()
        above = await self._preconfirmed(view)
        return await self._read(_by_sender(_once(above, waiting), write, spell))

    async def _show_sender(self, view: LedgerView, sender: bytes) -> Text:
        waiting = await self._pool.of_sender(sender)
        above = [each for each in await self._preconfirmed(view) if each.sender == sender]
        return await self._read(_of_one(_once(above, waiting)))

    async def _preconfirmed(self, view: LedgerView) -> Sequence[InPool]:
        return await self._above(view, self._unsealed.all, ())

    async def _above(
        self, view: LedgerView, read: Callable[[LedgerView], Steps[T]], nothing: T
    ) -> T:
        """Return the transactions of unsealed blocks, if those are not shown as blocks.

        On a view that is newer than the pool's answer: what has left the pool is in it.
        """
        if view.visibility.preconfirmed:
            return nothing
        newer = view.renewed(PRECONFIRMED)
        try:
            return await self._read(read(newer))
        finally:
            newer.close()

    async def _read(self, steps: Steps[T]) -> T:
        found = self._scheduler.read(steps)
        return await found if isinstance(found, Awaitable) else found


def _once(above: Sequence[InPool], waiting: Sequence[InPool]) -> Sequence[InPool]:
    """Those of flashblocks, then those of the pool that have not come into one meanwhile."""
    known = {each.raw for each in above}
    return [*above, *(each for each in waiting if each.raw not in known)] if above else waiting


def _spelling(view: LedgerView) -> Spell:
    """Return the spelling of addresses: anvil's on a chain like it, otherwise geth's."""
    dev = view.dev_state
    is_like_anvil = dev is not None and dev.shows_sealed
    return (lambda address: f"0x{address.hex()}") if is_like_anvil else checksum_address


def _by_sender(waiting: Sequence[InPool], write: Write, spell: Spell) -> Steps[Text]:
    """Two objects of objects of texts, made in steps."""
    kinds: dict[bool, dict[bytes, list[bytes]]] = {True: {}, False: {}}
    for some in _portions(waiting, lambda each: len(each.raw)):
        for each, transaction in zip(some, decode_waiting(some), strict=True):
            kinds[each.can_run].setdefault(each.sender, []).append(_entry(transaction, write))
        yield None
    pieces: list[bytes] = []
    for name, senders in ((b'{"pending":{', kinds[True]), (b'},"queued":{', kinds[False])):
        pieces.append(name)
        for number, (sender, entries) in enumerate(senders.items()):
            comma = b"," if number else b""
            pieces.append(b'%b"%b":{' % (comma, spell(sender).encode()))
            yield from _joined(entries, pieces)
            pieces.append(b"}")
    return in_pieces([*pieces, b"}}"])


def _joined(entries: Sequence[bytes], pieces: list[bytes]) -> Steps[None]:
    """Append the entries with commas between them, some joined in each step."""
    for number, some in enumerate(_portions(entries, len)):
        if number:
            pieces.append(b",")
        pieces.append(b",".join(some))
        yield None


def _of_one(waiting: Sequence[InPool]) -> Steps[Text]:
    """Write the transactions of one sender, without its address."""
    kinds: dict[bool, list[bytes]] = {True: [], False: []}
    for some in _portions(waiting, lambda each: len(each.raw)):
        for each, transaction in zip(some, decode_waiting(some), strict=True):
            kinds[each.can_run].append(_entry(transaction, waiting_text))
        yield None
    pieces = [b'{"pending":{']
    yield from _joined(kinds[True], pieces)
    pieces.append(b'},"queued":{')
    yield from _joined(kinds[False], pieces)
    return in_pieces([*pieces, b"}}"])


def _portions(items: Sequence[T], size: Callable[[T], int]) -> Iterator[Sequence[T]]:
    """The transactions of one step, bounded by number and bytes."""
    some: list[T] = []
    held = 0
    for each in items:
        if len(some) >= THRESHOLDS.rendered_waiting or held >= THRESHOLDS.rendered_waiting_bytes:
            yield some
            some, held = [], 0
        some.append(each)
        held += size(each)
    if some:
        yield some


def _entry(transaction: Transaction, write: Write) -> bytes:
    return b'"%d":%b' % (waiting_nonce(transaction), write(transaction))


def _in_a_line(transaction: Transaction, spell: Spell) -> bytes:
    to = "contract creation" if transaction.to is None else spell(transaction.to)
    price = transaction.effective_gas_price(None)
    line = f"{to}: {transaction.value} wei + {transaction.gas_limit} gas × {price} wei"  # noqa: RUF001, geth's sign
    return msgspec.json.encode(line)
