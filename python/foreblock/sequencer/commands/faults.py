"""Commands for the accidents of a chain with flashblocks, each at the moment that a test chooses.

They are the faults that a chain may be given a rate of (`faults.plan`), one at a time.
"""

from typing import Any

from foreblock.bus.commands import CloseFlashblock, DropTail, Equivocate, RestartBlock, SetFaults
from foreblock.errors import InvalidArgument, RefusedCommand
from foreblock.sequencer.commands.execution import executes
from foreblock.sequencer.sequencer import Sequencer
from foreblock.types import Flashblock

Place = dict[str, Any]


@executes(CloseFlashblock)
def close_flashblock(_: CloseFlashblock, sequencer: Sequencer) -> Place:
    """Close the open index with what can run; gives its place and hash."""
    return _place(sequencer.builder.close_index())


@executes(RestartBlock)
def restart_block(_: RestartBlock, sequencer: Sequencer) -> None:
    """Give up the block in progress and begin it anew; its transactions wait again."""
    sequencer.restart_block()
    sequencer.settle()


@executes(DropTail)
def drop_tail(_: DropTail, sequencer: Sequencer) -> None:
    """Seal the block in progress without its last index, whose transactions wait again."""
    block = sequencer.builder.block
    if len(block.partials) < 2:
        raise RefusedCommand(
            f"block {block.number} has no flashblock after its first that could be left out"
        )
    sequencer.drop_tail()
    sequencer.settle()


@executes(Equivocate)
def equivocate(_: Equivocate, sequencer: Sequencer) -> Place:
    """Announce another flashblock for the place of the last one; gives its place and hash."""
    if not sequencer.builder.block.index:
        sequencer.builder.close_index(fill=False)
    other = sequencer.builder.conflicting_flashblock()
    sequencer.builder.sink.publish(other)
    return _place(other)


@executes(SetFaults)
def set_faults(command: SetFaults, sequencer: Sequencer) -> None:
    """Let these faults happen from now on, and no others."""
    try:
        sequencer.faults.set(command.faults)
    except InvalidArgument as why:
        raise RefusedCommand(str(why)) from None
    sequencer.mining.change(faults=command.faults)
    sequencer.changes.mark()


def _place(flashblock: Flashblock) -> Place:
    return {
        "block": flashblock.block_number,
        "index": flashblock.index,
        "hash": flashblock.diff.block_hash,
    }
