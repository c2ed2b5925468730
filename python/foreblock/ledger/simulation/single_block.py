"""One block of plain calls with nothing said of the block: what most simulations ask for.

A fast path through `block`, in one call of the engine and half the time; a test holds one
against the other. It answers wholly or not at all: where anything has to be decided or takes
long, the state it ran on is dropped and nothing has happened.
"""

from foreblock._engine import Opening, PlainCalls, SealedBody, State
from foreblock.ledger.calls.block_overrides import AS_IT_IS
from foreblock.ledger.reading.blocks import ReadableBlock
from foreblock.ledger.rules.block_start import start_calls
from foreblock.ledger.rules.forks import BYZANTIUM, SHANGHAI
from foreblock.ledger.simulation.open_block import blob_gas_used, has_queues, type_of_plain
from foreblock.ledger.simulation.simulation_request import SimulationLimits, SimulationRequest
from foreblock.primitives import ZERO_HASH
from foreblock.scheduling.thresholds import THRESHOLDS


def simulate_single_block(
    base: ReadableBlock, state: State, request: SimulationRequest, limits: SimulationLimits
) -> SealedBody | None:
    """The block after `base`, if somebody has simulated it before; its state root is zero.

    Raises `RefusedOverride`.
    """
    if request.validation or request.trace_transfers or request.state_roots:
        return None
    context, asked = base.following, request.blocks[0]
    calls, overrides = asked.calls, asked.overrides
    if len(request.blocks) > 1 or asked.block is not AS_IT_IS or context is None:
        return None
    if not isinstance(calls, PlainCalls):
        return None
    opening = context.opening or _opening(base)
    if opening is None or (overrides is not None and overrides.is_large):
        return None
    most_us, precompile_gas = THRESHOLDS.single_block_us, THRESHOLDS.single_block_precompile_gas
    body = opening.fill(state, calls, overrides, limits.gas, most_us, precompile_gas)
    if body is None:
        return None
    header, rules = context.header, context.rules
    blob_gas = blob_gas_used(rules, body.overlay, len(calls), 0)
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
