"""Commands for the accidents of a chain with flashblocks, each at the moment that a test chooses.

They are the faults that a chain may be given a rate of (`chaos.faults`), one at a time.
"""

from typing import Any

from foreblock.bus.commands import CloseFlashblock, DropTail, Equivocate, RestartBlock, SetFaults
from foreblock.errors import InvalidArgument, RefusedCommand
from foreblock.sequencer.dev.branching import BranchingSequencer
from foreblock.types import Flashblock

Place = dict[str, Any]


def close_flashblock(sequencer: BranchingSequencer, _: CloseFlashblock) -> Place:
    """Close the open index with what can run; gives its place and hash."""
    return _place(sequencer.close_index())


def restart_block(sequencer: BranchingSequencer, _: RestartBlock) -> None:
    """Give up the block in progress and begin it anew; its transactions wait again."""
    sequencer.restart_block()
    sequencer.settle()


def drop_tail(sequencer: BranchingSequencer, _: DropTail) -> None:
    """Seal the block in progress without its last index, whose transactions wait again."""
    block = sequencer.block
    if len(block.partials) < 2:
        raise RefusedCommand(
            f"block {block.number} has no flashblock after its first that could be left out"
        )
    sequencer.drop_tail()
    sequencer.settle()


def equivocate(sequencer: BranchingSequencer, _: Equivocate) -> Place:
    """Announce another flashblock for the place of the last one; gives its place and hash."""
    if not sequencer.block.index:
        sequencer.close_index(fill=False)
    return _place(sequencer.contradict_last())


def set_faults(sequencer: BranchingSequencer, command: SetFaults) -> None:
    """Let these faults happen from now on, and no others."""
    try:
        sequencer.set_faults(command.faults)
    except InvalidArgument as why:
        raise RefusedCommand(str(why)) from None
    sequencer.mark_changed()


def _place(flashblock: Flashblock) -> Place:
    return {
        "block": flashblock.block_number,
        "index": flashblock.index,
        "hash": flashblock.diff.block_hash,
    }
