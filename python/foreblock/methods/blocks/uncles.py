"""eth_getUncle…: uncles of mined blocks, and their number.

A block after the merge has none, and neither has a block of an OP chain. An uncle is shown as
the block that it was, without its transactions, which nobody keeps.
"""

from collections.abc import Awaitable

from msgspec import Raw

from foreblock.errors import NotHere
from foreblock.ledger.reading.blocks import BlockId, ByHash, ReadableBlock
from foreblock.ledger.reading.stored_block import read_stored
from foreblock.ledger.reading.view import LedgerView
from foreblock.ledger.rules.empty_roots import EMPTY_OMMERS_HASH
from foreblock.methods.block_param import read_block
from foreblock.methods.blocks.transactions import (
    read_count_by_hash,
    read_count_by_number,
    read_hash_and_index,
    read_number_and_index,
)
from foreblock.methods.params import hash32, quantity
from foreblock.methods.shapes import header_members, write_quantity
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Steps
from foreblock.types import Block, Header

NULL = b"null"


class UncleMethods:
    """Methods that show uncles."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def get_by_number_and_index(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """An uncle of a block, or null where either is not there."""
        params = read_number_and_index(raw)
        return self._show_at(view, read_block(params.block, 0), params.index)

    def get_by_hash_and_index(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """The same for a block that is named by its hash."""
        params = read_hash_and_index(raw)
        return self._show_at(view, ByHash(hash32(params.block_hash, 0)), params.index)

    def get_count_by_number(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """The number of uncles of a block, or null where there is none."""
        return self._count(view, read_block(read_count_by_number(raw).block, 0))

    def get_count_by_hash(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """The same for a block that is named by its hash."""
        return self._count(view, ByHash(hash32(read_count_by_hash(raw).block_hash, 0)))

    def _show_at(self, view: LedgerView, named: BlockId, index: str) -> bytes | Awaitable[bytes]:
        place = quantity(index, 64, 1)
        try:
            block = view.resolve(named)
        except NotHere:
            return NULL
        return self._scheduler.read(_show(view, block, place))

    def _count(self, view: LedgerView, named: BlockId) -> bytes | Awaitable[bytes]:
        try:
            block = view.resolve(named)
        except NotHere:
            return NULL
        return self._scheduler.read(_counted(view, block))


def _uncles(view: LedgerView, block: ReadableBlock) -> tuple[Header, ...]:
    """The uncles of a block; a body is only read where it has some."""
    if block.header.ommers_hash == EMPTY_OMMERS_HASH:
        return ()
    return read_stored(view, block).uncles


def _counted(view: LedgerView, block: ReadableBlock) -> Steps[bytes]:
    yield from ()
    return write_quantity(len(_uncles(view, block)))


def _show(view: LedgerView, block: ReadableBlock, place: int) -> Steps[bytes]:
    yield from ()
    uncles = _uncles(view, block)
    if place >= len(uncles):
        return NULL
    header = uncles[place]
    size = len(Block(header, (), (), None).encode())
    return b'{%b,"uncles":[]}' % header_members(header, size)
