"""The usual simulation: one block of plain calls, of which nothing else is said.

A short way to what `block` does step by step, and a test holds one against the other. It
gives up where anything has to be decided or takes long; nothing has happened then, for the
state that it ran on is gone with it.
"""

from typing import Final

from typing_extensions import Buffer

from foreblock._engine import Opening, SealedBody, State
from foreblock.ledger.reading.blocks import ReadableBlock
from foreblock.ledger.rules.block_start import start_calls
from foreblock.ledger.rules.forks import BYZANTIUM, SHANGHAI
from foreblock.ledger.simulation.open_block import blob_gas_used, has_queues, type_of_plain
from foreblock.ledger.simulation.simulation_request import SimulationLimits, check_calls
from foreblock.primitives import ZERO_HASH

IN_PLACE_US: Final = 500  # for all of it
PRECOMPILE_GAS: Final = 100_000  # one precompile that takes more is not begun


def simulate_usual(
    base: ReadableBlock, state: State, calls: Buffer, accounts: Buffer, limits: SimulationLimits
) -> SealedBody | None:
    """The block after `base`, if somebody has simulated it before; its state root is zero.

    Calls and overrides of accounts are JSON. Neither fees nor nonces are judged, and transfers
    are not traced. Raises `RefusedSimulation`.
    """
    context = base.following
    if context is None:
        return None
    opening = context.opening or _opening(base)
    if opening is None:
        return None
    body = opening.fill(state, calls, accounts, limits.gas, IN_PLACE_US, PRECOMPILE_GAS)
    if body is None:
        return None
    count, header, rules = len(body), context.header, context.rules
    check_calls(count, count, limits)
    blob_gas = blob_gas_used(rules, body.overlay, count, 0)
    withdrawals = None if rules.ethereum < SHANGHAI else ()
    return body.seal(header, ZERO_HASH, blob_gas, header.requests_hash, withdrawals)


def _opening(base: ReadableBlock) -> Opening | None:
    """What the engine is to know of the block after this one; none if there is more to it."""
    context = base.following
    if context is None or context.rules.ethereum < BYZANTIUM or has_queues(context.rules):
        return None
    system = start_calls(context.header, context.rules)
    kind = type_of_plain(context)
    context.opening = Opening(context.priced, kind, base.number, base.hash, system)
    return context.opening
