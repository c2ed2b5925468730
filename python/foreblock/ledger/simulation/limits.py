"""How much one simulation may ask for, looked at before any work is done."""

from collections.abc import Sequence

from msgspec import Struct

from foreblock.errors import InvalidParams, RefusedSimulation, Rule


class SimulationLimits(Struct, frozen=True):
    """The numbers of geth."""

    blocks: int = 256  # entries, and how far the last block may be from the base
    block_calls: int = 5_000
    calls: int = 10_000
    gas: int = 50_000_000  # of all calls together; calls are lowered to what is left of it


def check_counts(calls: Sequence[int], limits: SimulationLimits) -> None:
    """Raise for a simulation whose blocks have these many calls."""
    if not calls:
        raise InvalidParams("empty input")
    if len(calls) > limits.blocks:
        raise RefusedSimulation(Rule.LIMIT, "too many blocks")
    total = 0
    for count in calls:
        total += count
        if count > limits.block_calls:
            why = f"too many calls in block: {count} > {limits.block_calls}"
            raise RefusedSimulation(Rule.LIMIT, why)
    if total > limits.calls:
        raise RefusedSimulation(Rule.LIMIT, f"too many calls: {total} > {limits.calls}")
