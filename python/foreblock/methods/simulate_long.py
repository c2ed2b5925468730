"""The params of eth_simulateV1 where they are too long to be decoded at once.

Gives what the decoder would have given, as `Steps`. Blocks stay undecoded, and of too many
no more are looked at than are allowed.
"""

from typing import Final

from msgspec import Raw

from foreblock.long_json import is_long
from foreblock.methods.block_param import BlockParam
from foreblock.methods.long_params import read_arguments, read_items, read_members
from foreblock.methods.params import complete, decode
from foreblock.methods.simulate_params import BlockwiseParams, SimulationPayload
from foreblock.scheduling.steps import Pace, Steps

SWITCHES: Final = ("traceTransfers", "validation", "returnFullTransactions")
BLOCKS: Final = "blockStateCalls"


def read_long_params(
    raw: Raw, required: int, most_blocks: int, pace: Pace
) -> Steps[BlockwiseParams]:
    """The arguments; of the blocks, so many and a few more."""
    items = yield from read_arguments(raw, 2, pace)
    values: list[SimulationPayload[Raw] | BlockParam] = []
    if items:
        values.append((yield from _read_payload(items[0], most_blocks, pace)))
    if len(items) > 1:
        values.append(decode(items[1], BlockParam, 1))
    return complete(values, BlockwiseParams, required)


def _read_payload(raw: Raw, most_blocks: int, pace: Pace) -> Steps[SimulationPayload[Raw] | None]:
    if not is_long(raw):
        short: SimulationPayload[Raw] | None = decode(raw, SimulationPayload[Raw] | None, 0)
        return short
    members = yield from read_members(raw, {BLOCKS, *SWITCHES}, 0, "$", pace)
    blocks = None
    if BLOCKS in members:
        blocks = yield from _read_items(members[BLOCKS], most_blocks, pace)
    switches = [
        decode(members[name], bool | None, 0, f"$.{name}") if name in members else None
        for name in SWITCHES
    ]
    return SimulationPayload[Raw](blocks, *switches)


def _read_items(raw: Raw, most: int, pace: Pace) -> Steps[list[Raw] | None]:
    if is_long(raw):
        return (yield from read_items(raw, most, 0, f"$.{BLOCKS}", pace))
    short: list[Raw] | None = decode(raw, list[Raw] | None, 0, f"$.{BLOCKS}")
    return short
