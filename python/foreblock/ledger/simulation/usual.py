"""The usual simulation: one block of plain calls, of which nothing else is said.

A short way to what `block` does step by step, and a test holds one against the other. It
gives up where anything has to be decided or takes long; nothing has happened then, for the
state that it ran on is gone with it.
"""

from collections.abc import Mapping
from typing import Final

from foreblock._engine import Body, PlainCalls, Sealed, State
from foreblock.errors import DeadlineExceeded
from foreblock.ledger.forks import BYZANTIUM, SHANGHAI
from foreblock.ledger.overrides import AccountOverride, apply
from foreblock.ledger.preconfirmed_block import ReadableBlock
from foreblock.ledger.simulation.limits import SimulationLimits, check_calls
from foreblock.ledger.simulation.open_block import blob_gas_used, has_queues, told, type_of_plain
from foreblock.primitives import ZERO_HASH

IN_PLACE_US: Final = 500  # for all calls together, and once more for the last of them
PRECOMPILE_GAS: Final = 100_000  # one precompile that takes more is not begun


def simulate_usual(
    base: ReadableBlock,
    state: State,
    accounts: Mapping[bytes, AccountOverride],
    calls: PlainCalls,
    limits: SimulationLimits,
) -> Sealed | None:
    """The block after `base`, if somebody has simulated it before; its state root is zero.

    Neither fees nor nonces are judged, and transfers are not traced. Raises
    `RefusedOverride`, `RefusedSimulation`.
    """
    check_calls(len(calls), len(calls), limits)
    around = base.following
    if around is None or around.rules.ethereum < BYZANTIUM or has_queues(around.rules):
        return None
    header, env, overlay = around.header, around.priced, state.overlay()
    overlay.set_block_hash(base.number, base.hash)
    precompiles = apply(accounts, overlay, around.rules) if accounts else None
    try:
        for contract, data in told(header, around.rules):
            overlay.system_call(env, contract, data, precompiles, IN_PLACE_US, PRECOMPILE_GAS)
    except DeadlineExceeded:
        return None
    body = Body(overlay, env, precompiles)
    done, _ = body.run_plain(
        calls,
        0,
        type_of_plain(around),
        header.gas_limit,
        limits.gas,
        IN_PLACE_US,
        PRECOMPILE_GAS,
        IN_PLACE_US,
    )
    if done < len(calls):
        return None
    withdrawals = None if around.rules.ethereum < SHANGHAI else ()
    blob_gas = blob_gas_used(around.rules, overlay, done, 0)
    return body.seal(header, ZERO_HASH, blob_gas, header.requests_hash, withdrawals)
