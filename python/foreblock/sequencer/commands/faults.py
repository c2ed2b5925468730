"""Commands that cause one fault of a chain with flashblocks, at the moment that a test chooses."""

from typing import Any

from foreblock.bus.commands import CloseFlashblock, DropTail, Equivocate, RestartBlock, SetFaults
from foreblock.errors import InvalidArgument, RefusedCommand
from foreblock.sequencer.commands.execution import executes
from foreblock.sequencer.faults.feed import conflicting_flashblock
from foreblock.sequencer.sequencer import Sequencer
from foreblock.types import Flashblock

Position = dict[str, Any]


@executes(CloseFlashblock)
def close_flashblock(_: CloseFlashblock, sequencer: Sequencer) -> Position:
    """Close the open index with what can run; returns its position and hash."""
    return _position(sequencer.builder.close_index())


@executes(RestartBlock)
def restart_block(_: RestartBlock, sequencer: Sequencer) -> None:
    """Abandon the block in progress and begin it again; its transactions wait again."""
    sequencer.restart_block()
    sequencer.run_immediate()


@executes(DropTail)
def drop_tail(_: DropTail, sequencer: Sequencer) -> None:
    """Seal the block in progress without its last index, whose transactions wait again."""
    block = sequencer.builder.block
    if len(block.partials) < 2:
        raise RefusedCommand(
            f"block {block.number} has no flashblock after its first that could be left out"
        )
    sequencer.drop_tail()
    sequencer.run_immediate()


@executes(Equivocate)
def equivocate(_: Equivocate, sequencer: Sequencer) -> Position:
    """Announce another flashblock in place of the last one; returns its position and hash."""
    builder = sequencer.builder
    if not builder.block.index:
        builder.close_index(fill=False)
    other = conflicting_flashblock(builder.writer, builder.block, sequencer.mining.chain.seed)
    builder.sink.publish(other)
    return _position(other)


@executes(SetFaults)
def set_faults(command: SetFaults, sequencer: Sequencer) -> None:
    """Inject these faults from now on, and no others."""
    try:
        sequencer.faults.set(command.faults)
    except InvalidArgument as why:
        raise RefusedCommand(str(why)) from None
    sequencer.mining.change(faults=command.faults)
    sequencer.changes.mark()


def _position(flashblock: Flashblock) -> Position:
    return {
        "block": flashblock.block_number,
        "index": flashblock.index,
        "hash": flashblock.diff.block_hash,
    }
