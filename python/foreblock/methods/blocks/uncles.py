"""eth_getUncle…: uncles of mined blocks, and their number.

A block after the merge has none, and neither has a block of an OP chain. An uncle is shown as
the block that it was, without its transactions, which nobody keeps.
"""

from foreblock.ledger.reading.blocks import ReadableBlock
from foreblock.ledger.reading.stored_block import read_stored
from foreblock.ledger.reading.view import LedgerView
from foreblock.ledger.rules.empty_roots import EMPTY_OMMERS_HASH
from foreblock.methods.blocks.named_blocks import Counting, ShowingPlace
from foreblock.methods.shapes import header_members
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Steps
from foreblock.types import Block, Header


class UncleMethods:
    """Methods that show uncles."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.at_place = ShowingPlace(scheduler, _show)
        self.counting = Counting(scheduler, _count)


def _uncles(view: LedgerView, block: ReadableBlock) -> tuple[Header, ...]:
    """The uncles of a block; a body is only read where it has some."""
    if block.header.ommers_hash == EMPTY_OMMERS_HASH:
        return ()
    return read_stored(view, block).uncles


def _count(view: LedgerView, block: ReadableBlock) -> int:
    return len(_uncles(view, block))


def _show(view: LedgerView, block: ReadableBlock, place: int) -> Steps[bytes]:
    yield from ()
    uncles = _uncles(view, block)
    if place >= len(uncles):
        return b"null"
    header = uncles[place]
    size = len(Block(header, (), (), None).encode())
    return b'{%b,"uncles":[]}' % header_members(header, size)
