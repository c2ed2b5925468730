"""How much one simulation may ask for, looked at before any work is done."""

from msgspec import Struct

from foreblock.errors import InvalidParams, RefusedSimulation, Rule


class SimulationLimits(Struct, frozen=True):
    """The numbers of geth."""

    blocks: int = 256  # entries, and how far the last block may be from the base
    block_calls: int = 5_000
    calls: int = 10_000
    gas: int = 50_000_000  # of all calls together; calls are lowered to what is left of it
    output: int = 16 << 20  # bytes that all calls return; ours, for half of the gas buys 50 MB


def check_blocks(count: int, limits: SimulationLimits) -> None:
    """Raise for a simulation of so many blocks."""
    if not count:
        raise InvalidParams("empty input")
    if count > limits.blocks:
        raise RefusedSimulation(Rule.LIMIT, "too many blocks")


def check_calls(count: int, total: int, limits: SimulationLimits) -> None:
    """Raise for a block of so many calls, and so many with those before it."""
    if count > limits.block_calls:
        why = f"too many calls in block: {count} > {limits.block_calls}"
        raise RefusedSimulation(Rule.LIMIT, why)
    if total > limits.calls:
        raise RefusedSimulation(Rule.LIMIT, f"too many calls: {total} > {limits.calls}")
