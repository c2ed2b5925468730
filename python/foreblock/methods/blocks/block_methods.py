"""eth_getBlockBy…, eth_getUncle…, and pairs of methods that name a block by number or by hash.

The methods of a pair (`CountInBlock`, `ItemByIndex`) differ only in how the block is named. The
module that makes the pair decides what is shown of the block, and the response for an unknown
block.

A block after the merge has no uncles, and neither has a block of an OP chain. An uncle is shown
as a block without its transactions, which no node keeps.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from msgspec import Raw

from foreblock.errors import NotHere
from foreblock.ledger.reading.blocks import BlockId, ByHash, ReadableBlock
from foreblock.ledger.reading.stored_block import read_stored
from foreblock.ledger.reading.view import LedgerView
from foreblock.ledger.rules.check import EMPTY_OMMERS_HASH
from foreblock.methods.blocks.block_text import BlockTexts, without_identity
from foreblock.methods.params import BlockName, Params, hash32, quantity, read_block, reader
from foreblock.methods.shapes import write_quantity
from foreblock.scheduling.reply import Text
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Mapped, Steps
from foreblock.settings import Settings
from foreblock.types import Block, Header


class BlockByNumberParams(Params):
    """The arguments of eth_getBlockByNumber."""

    block: BlockName
    full_transactions: bool


class BlockByHashParams(Params):
    """The arguments of eth_getBlockByHash."""

    hash: str
    full_transactions: bool


read_by_number = reader(BlockByNumberParams)
read_by_hash = reader(BlockByHashParams)


class BlockMethods:
    """Methods that show a block."""

    def __init__(self, settings: Settings, scheduler: Scheduler) -> None:
        self._texts = BlockTexts(scheduler)
        self._nameless = settings.pending_identity == "null"

    def get_block_by_number(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """The block, or null if there is no such block."""
        params = read_by_number(raw)
        named = read_block(params.block, 0)
        text = self._show(view, named, full=params.full_transactions)
        if self._nameless and named == "pending" and view.pending is not None:
            text = _nameless(text)
        if isinstance(text, bytes) and isinstance(named, str):
            view.remember_block(named, text, full=params.full_transactions)
        return text

    def get_block_by_hash(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """The sealed or partial block, or null if there is no such block."""
        params = read_by_hash(raw)
        return self._show(view, ByHash(hash32(params.hash, 0)), full=params.full_transactions)

    def _show(self, view: LedgerView, named: BlockId, *, full: bool) -> bytes | Awaitable[Text]:
        try:
            block = view.resolve(named)
        except NotHere:
            return b"null"
        return self._texts.show(view, block, full=full)


def _nameless(text: bytes | Awaitable[Text]) -> bytes | Awaitable[Text]:
    if not isinstance(text, bytes):
        return Mapped(text, without_identity)
    found = without_identity(text)
    assert isinstance(found, bytes), "a text in one piece stays so"
    return found


class NumberParams(Params):
    """The arguments of a method that names a block."""

    block: BlockName


class HashParams(Params):
    """The arguments of a method that names a block by its hash."""

    block_hash: str


class NumberAndIndexParams(Params):
    """The arguments of a method that names a block and a place in it."""

    block: BlockName
    index: str


class HashAndIndexParams(Params):
    """The arguments of a method that names a block by its hash, and an index in it."""

    block_hash: str
    index: str


_read_number = reader(NumberParams)
_read_hash = reader(HashParams)
_read_number_and_index = reader(NumberAndIndexParams)
_read_hash_and_index = reader(HashAndIndexParams)


class CountInBlock:
    """The number of something in a block, or null if there is no such block."""

    def __init__(
        self, scheduler: Scheduler, count: Callable[[LedgerView, ReadableBlock], int]
    ) -> None:
        self._scheduler: Final = scheduler
        self._count: Final = count

    def by_number(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """For a block that is named by its number."""
        return self._answer(view, read_block(_read_number(raw).block, 0))

    def by_hash(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """For a block that is named by its hash."""
        return self._answer(view, ByHash(hash32(_read_hash(raw).block_hash, 0)))

    def _answer(self, view: LedgerView, named: BlockId) -> bytes | Awaitable[bytes]:
        try:
            block = view.resolve(named)
        except NotHere:
            return b"null"
        return self._scheduler.read(self._counted(view, block))

    def _counted(self, view: LedgerView, block: ReadableBlock) -> Steps[bytes]:
        """A few small reads in one step."""
        yield from ()
        return write_quantity(self._count(view, block))


class ItemByIndex:
    """The item at an index of a block, or `absent` if there is no such block."""

    def __init__(
        self,
        scheduler: Scheduler,
        show: Callable[[LedgerView, ReadableBlock, int], bytes],
        absent: bytes = b"null",
    ) -> None:
        self._scheduler: Final = scheduler
        self._show: Final = show
        self._absent: Final = absent

    def by_number(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """For a block that is named by its number."""
        params = _read_number_and_index(raw)
        return self._answer(view, read_block(params.block, 0), params.index)

    def by_hash(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """For a block that is named by its hash."""
        params = _read_hash_and_index(raw)
        return self._answer(view, ByHash(hash32(params.block_hash, 0)), params.index)

    def _answer(self, view: LedgerView, named: BlockId, index: str) -> bytes | Awaitable[bytes]:
        place = quantity(index, 64, 1)
        try:
            block = view.resolve(named)
        except NotHere:
            return self._absent
        return self._scheduler.read_item(partial(self._show, view, block, place))


class UncleMethods:
    """Methods that show uncles."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.by_index = ItemByIndex(scheduler, _show)
        self.counting = CountInBlock(scheduler, _count)


def _uncles(view: LedgerView, block: ReadableBlock) -> tuple[Header, ...]:
    """The uncles of a block; a body is only read where it has some."""
    if block.header.ommers_hash == EMPTY_OMMERS_HASH:
        return ()
    return read_stored(view, block).uncles


def _count(view: LedgerView, block: ReadableBlock) -> int:
    return len(_uncles(view, block))


def _show(view: LedgerView, block: ReadableBlock, place: int) -> bytes:
    uncles = _uncles(view, block)
    if place >= len(uncles):
        return b"null"
    header = uncles[place]
    size = len(Block(header, (), (), None).encode())
    return b'{%b,"uncles":[]}' % header.members(size)
