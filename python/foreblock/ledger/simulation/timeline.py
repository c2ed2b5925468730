"""When simulated blocks are: their numbers and times, and the blocks that fill gaps.

Settled before anything runs. Numbers and times only ever increase; a number may be left
out, which is filled with an empty block, and so that block's time counts as well. A base
block that is still in progress may itself be the first: its number and time come again.
"""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from foreblock.errors import RefusedSimulation, Rule
from foreblock.ledger.simulation.request import BlockRequest

LAST_TIME: Final = 2**64 - 1  # a header's time has 64 bits


class Place(Struct, frozen=True):
    """Where a block stands in time, and what it is asked to hold; nothing for a filler."""

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
) -> list[Place]:
    """The places of all blocks after the base block of this number and time.

    Where nothing is said, a block comes `step` seconds after the one before it. The last
    number may be at most `reach` above that of the base block. If that is `in_progress`,
    the first number may be its own.
    """
    base = number
    places: list[Place] = []
    for request in requests:
        wanted = number + 1 if request.block.number is None else request.block.number
        if in_progress and not places and wanted == base:
            asked = request.block.timestamp
            time = _after(time - 1, time if asked is None else asked)
            places.append(Place(number, time, request))
            continue
        if wanted <= number:
            why = f"block numbers must be in order: {wanted} <= {number}"
            raise RefusedSimulation(Rule.BLOCK_NUMBER, why)
        if wanted - base > reach:
            raise RefusedSimulation(Rule.LIMIT, "too many blocks")
        for filler in range(number + 1, wanted):
            time = _after(time, time + step)
            places.append(Place(filler, time, None))
        asked = request.block.timestamp
        time = _after(time, time + step if asked is None else asked)
        number = wanted
        places.append(Place(number, time, request))
    return places


def _after(before: int, time: int) -> int:
    if time <= before:
        why = f"block timestamps must be in order: {time} <= {before}"
        raise RefusedSimulation(Rule.BLOCK_TIME, why)
    if time > LAST_TIME:
        raise RefusedSimulation(Rule.BLOCK_TIME, f"block timestamps end at {LAST_TIME}")
    return time
