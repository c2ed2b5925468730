"""Methods about one block, or about a place in it, named by the block's number or hash.

Each is a pair that differs in how the block is named only. What is shown of the block is given
by the module that makes the pair; a block that is not there is answered as that module says.
"""

from collections.abc import Awaitable, Callable
from typing import Final

from msgspec import Raw

from foreblock.errors import NotHere
from foreblock.ledger.reading.blocks import BlockId, ByHash, ReadableBlock
from foreblock.ledger.reading.view import LedgerView
from foreblock.methods.block_param import BlockName, read_block
from foreblock.methods.params import Params, hash32, quantity, reader
from foreblock.methods.shapes import write_quantity
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Steps


class NumberParams(Params):
    """The arguments of a method that names a block."""

    block: BlockName


class HashParams(Params):
    """The same for a block that is named by its hash."""

    block_hash: str


class NumberAndIndexParams(Params):
    """The arguments of a method that names a block and a place in it."""

    block: BlockName
    index: str


class HashAndIndexParams(Params):
    """The same for a block that is named by its hash."""

    block_hash: str
    index: str


_read_number = reader(NumberParams)
_read_hash = reader(HashParams)
_read_number_and_index = reader(NumberAndIndexParams)
_read_hash_and_index = reader(HashAndIndexParams)


class Counting:
    """The number of something in a block, or null where there is no such block."""

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


class ShowingPlace:
    """What is at a place of a block, or `absent` where there is no such block."""

    def __init__(
        self,
        scheduler: Scheduler,
        show: Callable[[LedgerView, ReadableBlock, int], Steps[bytes]],
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
        return self._scheduler.read(self._show(view, block, place))
