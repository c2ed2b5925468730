"""Commands about blocks and time: when blocks are sealed, and what they begin with."""

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
from foreblock.sequencer.dev.dev_sequencer import DevSequencer

MOST_BLOCKS: Final = 100_000  # of one command
LATEST_TIME: Final = 10**12  # the year 33658; above it, numbers of seconds do not fit everywhere
LEAST_GAS: Final = 2_000_000  # of a block: twice what its first transaction may use
PORTION: Final = 1_000  # blocks of one commit


def mine(sequencer: DevSequencer, command: Mine) -> int:
    """Seal blocks; gives the number of the last."""
    if command.blocks > MOST_BLOCKS:
        raise RefusedCommand(f"{command.blocks} blocks are too many, the most is {MOST_BLOCKS}")
    if command.timestamp is not None:
        _check_time(sequencer, command.timestamp)
        sequencer.follow_time(command.timestamp)
    if command.interval is not None:
        _check_range(sequencer.parent.timestamp + command.blocks * command.interval)
    left, timestamp = command.blocks, command.timestamp
    while left:
        portion = min(left, PORTION)
        sequencer.mine(portion, timestamp, command.interval)
        left, timestamp = left - portion, None
        if command.interval is not None:
            sequencer.catch_up_with_blocks()
            if left:
                timestamp = sequencer.parent.timestamp + max(command.interval, 1)
    return sequencer.parent.number


def set_mining(sequencer: DevSequencer, command: SetMining) -> None:
    """Change what seals blocks, from the block in progress on."""
    block_time = command.block_time or sequencer.state.block_time
    sequencer.change(
        mining=command.mining,
        also_clock=command.also_clock,
        block_time=block_time,
        interval_ms=min(sequencer.state.interval_ms, block_time * 1000),
    )
    sequencer.reschedule()


def set_flashblock_interval(sequencer: DevSequencer, command: SetFlashblockInterval) -> None:
    """Change how often indices are closed; 0 closes them on demand."""
    longest = sequencer.state.block_time * 1000
    if command.milliseconds and not 10 <= command.milliseconds <= longest:
        raise RefusedCommand(f"the interval is 0, or 10 to {longest} ms")
    sequencer.change(interval_ms=command.milliseconds)
    sequencer.reschedule()


def increase_time(sequencer: DevSequencer, command: IncreaseTime) -> int:
    """Let time run further ahead; gives by how much it is ahead in all.

    Blocks that were mined at once may be ahead of it: it goes on from the latest.
    """
    offset = sequencer.state.offset
    behind = sequencer.parent.timestamp - (sequencer.wall_seconds + offset)
    offset += max(behind, 0) + command.seconds
    _check_range(sequencer.wall_seconds + offset)
    sequencer.set_offset(offset)
    return offset


def set_time(sequencer: DevSequencer, command: SetTime) -> int:
    """Set the time; gives by how much it changed."""
    _check_range(command.timestamp)
    before = sequencer.state.offset
    sequencer.follow_time(command.timestamp)
    sequencer.change(keeps_time=False)
    sequencer.begin_at(None)
    return sequencer.state.offset - before


def set_next_timestamp(sequencer: DevSequencer, command: SetNextTimestamp) -> None:
    """Give the block in progress this timestamp, and let time go on from there.

    With a clock it is sealed at that time, one block time from now: the block is for what comes.
    """
    _check_time(sequencer, command.timestamp)
    state = sequencer.state
    ahead = state.block_time if state.mining == "clock" else 0
    sequencer.follow_time(command.timestamp - ahead)
    sequencer.change(keeps_time=True)
    sequencer.begin_at(command.timestamp)


def set_timestamp_interval(sequencer: DevSequencer, command: SetTimestampInterval) -> bool:
    """Fix the distance of timestamps, from the block in progress on; gives whether one was set."""
    _check_range(sequencer.parent.timestamp + (command.seconds or 0))
    was_set = sequencer.state.timestamp_interval is not None
    sequencer.change(timestamp_interval=command.seconds, keeps_time=False)
    sequencer.begin_at(None)
    return was_set


def next_block(sequencer: DevSequencer, command: NextBlock) -> None:
    """Change what the block in progress begins with, and what all do that follow."""
    if command.gas_limit is not None and command.gas_limit < LEAST_GAS:
        raise RefusedCommand(f"a block needs at least {LEAST_GAS} gas")
    lasting = {
        name: value
        for name in ("coinbase", "gas_limit", "minimum_base_fee")
        if (value := getattr(command, name)) is not None
    }
    sequencer.change(**lasting)
    base = sequencer.base
    if command.base_fee is not None:
        base = replace(base, base_fee_per_gas=command.base_fee)
    if command.prev_randao is not None:
        base = replace(base, prev_randao=command.prev_randao)
    if command.coinbase is not None:
        base = replace(base, fee_recipient=command.coinbase)
    if command.gas_limit is not None:
        base = replace(base, gas_limit=command.gas_limit)
    if command.minimum_base_fee is not None:
        base = replace(base, extra_data=sequencer.extra_data())  # where blocks say it to the next
    if base != sequencer.base:
        sequencer.begin_anew(base)
    else:
        sequencer.mark_changed()


def _check_time(sequencer: DevSequencer, timestamp: int) -> None:
    """Blocks have rising timestamps; the words are anvil's."""
    _check_range(timestamp)
    last = sequencer.parent.timestamp
    if timestamp <= last:
        raise RefusedCommand(
            f"Timestamp error: {timestamp} is lower than or equal to previous block's timestamp "
            f"{last}"
        )


def _check_range(timestamp: int) -> None:
    if timestamp > LATEST_TIME:
        raise RefusedCommand(f"Timestamp error: {timestamp} is above {LATEST_TIME}")
