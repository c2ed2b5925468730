"""Commands about blocks and time: when blocks are sealed, and their base."""

from dataclasses import replace
from typing import Final

from foreblock.bus.commands import (
    IncreaseTime,
    Mine,
    NextBlock,
    SetFlashblockInterval,
    SetMining,
    SetNextTimestamp,
    SetTime,
    SetTimestampInterval,
)
from foreblock.errors import RefusedCommand
from foreblock.sequencer.commands.execution import executes
from foreblock.sequencer.sequencer import Sequencer

MOST_BLOCKS: Final = 100_000  # of one command
LATEST_TIME: Final = 10**12  # the year 33658; above it, numbers of seconds do not fit everywhere
LEAST_GAS: Final = 2_000_000  # of a block: twice what its first transaction may use
PORTION: Final = 1_000  # blocks of one commit


@executes(Mine)
def mine(command: Mine, sequencer: Sequencer) -> int:
    """Seal blocks; returns the number of the last."""
    if command.blocks > MOST_BLOCKS:
        raise RefusedCommand(f"{command.blocks} blocks are too many, the most is {MOST_BLOCKS}")
    if command.timestamp is not None:
        _check_time(sequencer, command.timestamp)
        sequencer.mining.follow_time(command.timestamp)
    if command.interval is not None:
        _check_range(sequencer.builder.parent.timestamp + command.blocks * command.interval)
    left, timestamp = command.blocks, command.timestamp
    while left:
        portion = min(left, PORTION)
        sequencer.mine(portion, timestamp, command.interval)
        left, timestamp = left - portion, None
        if command.interval is not None:
            sequencer.mining.catch_up_with(sequencer.builder.parent)
            if left:
                timestamp = sequencer.builder.parent.timestamp + max(command.interval, 1)
    return sequencer.builder.parent.number


@executes(SetMining)
def set_mining(command: SetMining, sequencer: Sequencer) -> None:
    """Change what seals blocks, from the block in progress on."""
    block_time = command.block_time or sequencer.mining.state.block_time
    sequencer.mining.change(
        mining=command.mining,
        also_clock=command.also_clock,
        block_time=block_time,
        interval_ms=min(sequencer.mining.state.interval_ms, round(block_time * 1000)),
    )
    _reschedule(sequencer)


@executes(SetFlashblockInterval)
def set_flashblock_interval(command: SetFlashblockInterval, sequencer: Sequencer) -> None:
    """Change how often indices are closed; 0 closes them on demand."""
    longest = round(sequencer.mining.state.block_time * 1000)
    if command.milliseconds and not 10 <= command.milliseconds <= longest:
        raise RefusedCommand(f"the interval is 0, or 10 to {longest} ms")
    sequencer.mining.change(interval_ms=command.milliseconds)
    _reschedule(sequencer)


@executes(IncreaseTime)
def increase_time(command: IncreaseTime, sequencer: Sequencer) -> int:
    """Move time further ahead; returns the total distance.

    Blocks that were mined at once may be ahead of it: it continues from the latest.
    """
    offset = sequencer.mining.state.offset
    behind = sequencer.builder.parent.timestamp - (sequencer.mining.machine_time + offset)
    offset += max(behind, 0) + command.seconds
    _check_range(sequencer.mining.machine_time + offset)
    sequencer.mining.change(offset=offset, keeps_time=False)
    sequencer.changes.retime()
    return offset


@executes(SetTime)
def set_time(command: SetTime, sequencer: Sequencer) -> int:
    """Set the time; returns by how much it changed."""
    _check_range(command.timestamp)
    before = sequencer.mining.state.offset
    sequencer.mining.follow_time(command.timestamp)
    sequencer.mining.change(keeps_time=False)
    sequencer.changes.begin_at(None)
    return sequencer.mining.state.offset - before


@executes(SetNextTimestamp)
def set_next_timestamp(command: SetNextTimestamp, sequencer: Sequencer) -> None:
    """Set the timestamp of the block in progress; time continues from there.

    With a clock it is sealed at that time, one block time from now.
    """
    _check_time(sequencer, command.timestamp)
    state = sequencer.mining.state
    ahead = int(state.block_time) if state.mining == "clock" else 0
    sequencer.mining.follow_time(command.timestamp - ahead)
    sequencer.mining.change(keeps_time=True)
    sequencer.changes.begin_at(command.timestamp)


@executes(SetTimestampInterval)
def set_timestamp_interval(command: SetTimestampInterval, sequencer: Sequencer) -> bool:
    """Fix the distance of timestamps, from this block on; returns True if one was set."""
    _check_range(sequencer.builder.parent.timestamp + (command.seconds or 0))
    was_set = sequencer.mining.state.timestamp_interval is not None
    sequencer.mining.change(timestamp_interval=command.seconds, keeps_time=False)
    sequencer.changes.begin_at(None)
    return was_set


@executes(NextBlock)
def next_block(command: NextBlock, sequencer: Sequencer) -> None:
    """Change what the block in progress, and those that follow, begin with."""
    if command.gas_limit is not None and command.gas_limit < LEAST_GAS:
        raise RefusedCommand(f"a block needs at least {LEAST_GAS} gas")
    lasting = {
        name: value
        for name in ("coinbase", "gas_limit", "minimum_base_fee")
        if (value := getattr(command, name)) is not None
    }
    sequencer.mining.change(**lasting)
    base = sequencer.builder.base
    if command.base_fee is not None:
        base = replace(base, base_fee_per_gas=command.base_fee)
    if command.prev_randao is not None:
        base = replace(base, prev_randao=command.prev_randao)
    if command.coinbase is not None:
        base = replace(base, fee_recipient=command.coinbase)
    if command.gas_limit is not None:
        base = replace(base, gas_limit=command.gas_limit)
    if command.minimum_base_fee is not None:
        # The extra data of a block has it for the next one.
        extra_data = sequencer.mining.next_base(sequencer.builder.parent).extra_data
        base = replace(base, extra_data=extra_data)
    if base != sequencer.builder.base:
        sequencer.changes.begin_with(base)
    else:
        sequencer.changes.mark()


def _reschedule(sequencer: Sequencer) -> None:
    sequencer.builder.reschedule()
    sequencer.changes.mark()


def _check_time(sequencer: Sequencer, timestamp: int) -> None:
    """Blocks have rising timestamps; the words are anvil's."""
    _check_range(timestamp)
    last = sequencer.builder.parent.timestamp
    if timestamp <= last:
        raise RefusedCommand(
            f"Timestamp error: {timestamp} is lower than or equal to previous block's timestamp "
            f"{last}"
        )


def _check_range(timestamp: int) -> None:
    if timestamp > LATEST_TIME:
        raise RefusedCommand(f"Timestamp error: {timestamp} is above {LATEST_TIME}")
