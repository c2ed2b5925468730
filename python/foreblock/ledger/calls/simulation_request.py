"""The request of a simulation: blocks and calls as values, limits, and the plan of its blocks.

The plan gives each block its number and time before anything runs. Both only ever increase;
a number may be skipped, and an empty block fills the gap, so its time counts as well. A base
block in progress may itself be the first: its number and time are then used again.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from foreblock._engine import Overrides, PlainCalls
from foreblock.errors import RefusedSimulation, Rule
from foreblock.ledger.calls.request import AS_IT_IS, BlockOverrides, Call

__all__ = [
    "FILLER",
    "BlockRequest",
    "CallRequest",
    "PlainCalls",
    "SimulationRequest",
    "plain_request",
]


class CallRequest(Struct, frozen=True):
    """A call of a simulated block; `gas` counts, that of `call` is ignored."""

    call: Call
    gas: int | None = None  # all that is left in the block
    nonce: int | None = None  # that of the state at that point


def plain_request(calls: PlainCalls, index: int) -> CallRequest:
    """A plain call as a general request."""
    sender, to, value, data, gas = calls[index]
    return CallRequest(Call(to, 0, sender, data, value), gas)


class BlockRequest(Struct, frozen=True):
    """A block to simulate; its calls are `PlainCalls` where all of them are plain."""

    calls: Sequence[CallRequest] | PlainCalls = ()
    overrides: Overrides | None = None
    block: BlockOverrides = AS_IT_IS


FILLER: Final = BlockRequest()  # an empty block that fills a gap in the numbers


class SimulationRequest(Struct, frozen=True):
    """Blocks to simulate one after the other."""

    blocks: Sequence[BlockRequest]
    validation: bool = False  # whether nonces and fees are judged as in a real block
    trace_transfers: bool = False  # whether transfers of ether are shown as logs
    state_roots: bool = True  # whether they are computed; else they are zero


class SimulationLimits(Struct, frozen=True):
    """The numbers of geth."""

    blocks: int = 256  # entries, and how far the last block may be from the base
    block_calls: int = 5_000
    calls: int = 10_000
    gas: int = 50_000_000  # of all calls together; calls are lowered to what is left of it
    output: int = 16 << 20  # bytes that all calls return; ours, for half of the gas buys 50 MB


LAST_TIME: Final = 2**64 - 1  # a header's time has 64 bits


class PlannedBlock(Struct, frozen=True):
    """Number and time of a block to simulate, and its request; none for a filler."""

    number: int
    time: int
    request: BlockRequest | None


def timeline(
    requests: Iterable[BlockRequest],
    number: int,
    time: int,
    step: int,
    reach: int,
    *,
    in_progress: bool = False,
) -> list[PlannedBlock]:
    """Plan all blocks after the base block of this number and time.

    Without a time of its own, a block comes `step` seconds after the one before it. The last
    number may be at most `reach` above the base block. If that is `in_progress`, the first
    block may have its number.
    """
    base = number
    plan: list[PlannedBlock] = []
    for request in requests:
        wanted = number + 1 if request.block.number is None else request.block.number
        if in_progress and not plan and wanted == base:
            asked = request.block.timestamp
            time = _after(time - 1, time if asked is None else asked)
            plan.append(PlannedBlock(number, time, request))
            continue
        if wanted <= number:
            why = f"block numbers must be in order: {wanted} <= {number}"
            raise RefusedSimulation(Rule.BLOCK_NUMBER, why)
        if wanted - base > reach:
            raise RefusedSimulation(Rule.LIMIT, "too many blocks")
        for filler in range(number + 1, wanted):
            time = _after(time, time + step)
            plan.append(PlannedBlock(filler, time, None))
        asked = request.block.timestamp
        time = _after(time, time + step if asked is None else asked)
        number = wanted
        plan.append(PlannedBlock(number, time, request))
    return plan


def _after(before: int, time: int) -> int:
    if time <= before:
        why = f"block timestamps must be in order: {time} <= {before}"
        raise RefusedSimulation(Rule.BLOCK_TIME, why)
    if time > LAST_TIME:
        raise RefusedSimulation(Rule.BLOCK_TIME, f"block timestamps end at {LAST_TIME}")
    return time
