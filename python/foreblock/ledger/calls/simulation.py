"""Run a simulation (eth_simulateV1): blocks that could follow one, with the requested calls.

    request              the request, its limits, numbers and times of all blocks
    simulated_chain      the chain so far, and the header that a block begins with
    simulated_block      one block: defaults, checks and runs of its calls; the fast path
    simulation           each block: everything that happens in it, in order

Reads as the specification does. The engine holds a block until it is sealed (`_engine.Body`):
encodings, receipts, and the hashes over them. Long work is yielded to the scheduler
(`scheduling.steps`); short work runs in place.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final

from msgspec import Struct

from foreblock._engine import (
    MissingKeys,
    Outcome,
    Overlay,
    Overrides,
    PlainSimulation,
    Precompiles,
    SealedBody,
    SimulationText,
    State,
    requests_hash,
)
from foreblock.errors import (
    DeadlineExceeded,
    MissingTrieNodes,
    RefusedOverride,
    RefusedSimulation,
    Rule,
    StateMissing,
    Undecodable,
)
from foreblock.ledger.calls.request import (
    AS_IT_IS,
    FILLER,
    BlockOverrides,
    BlockRequest,
    PlannedBlock,
    SimulationLimits,
    SimulationRequest,
    timeline,
)
from foreblock.ledger.calls.simulated_block import (
    OpenBlock,
    has_queues,
    plain_simulation,
    run_at_once,
    run_calls,
)
from foreblock.ledger.calls.simulated_chain import SimulatedChain, header_after, open_header
from foreblock.ledger.reading.blocks import BlockContext, PreconfirmedBlock, ReadableBlock
from foreblock.ledger.rules.execution import (
    BEACON_ROOTS,
    CONSOLIDATION_REQUEST,
    CONSOLIDATION_REQUESTS,
    DEPOSIT_REQUEST,
    HISTORY_STORAGE,
    WEI_PER_GWEI,
    WITHDRAWAL_REQUEST,
    WITHDRAWAL_REQUESTS,
    start_calls,
)
from foreblock.ledger.rules.forks import PARIS, Rules
from foreblock.ledger.rules.transaction_rules import checksum_address
from foreblock.primitives import ZERO_HASH
from foreblock.scheduling.steps import UNHURRIED, Pace, Steps, Work
from foreblock.scheduling.thresholds import THRESHOLDS

RING: Final = 8191  # slots of either contract


def with_starts(missing: StateMissing, state: State, plan: Sequence[PlannedBlock]) -> StateMissing:
    """The missing keys, with those of the starts of all planned blocks."""
    beacon = [planned.time % RING for planned in plan]
    slots = {
        BEACON_ROOTS: [*beacon, *(each + RING for each in beacon)],
        HISTORY_STORAGE: [(planned.number - 1) % RING for planned in plan],
    }
    misses = missing.misses
    seen = {at: keys for at, keys in slots.items() if at in misses.accounts or at in misses.slots}
    if not seen:
        return missing  # they are known, or these rules do not have them
    if isinstance(missing, MissingTrieNodes):  # the same of their tries
        return MissingTrieNodes(misses.also(MissingKeys([], seen)), missing.block)
    return StateMissing(misses.also(state.missing([], seen)))


__all__ = ["SimulatedBlock", "SimulationText", "run_block", "simulate"]


class SimulatedBlock(Struct, frozen=True):
    """A finished block."""

    block: SealedBody
    is_filler: bool


def run_block(
    chain: SimulatedChain, planned: PlannedBlock
) -> SimulatedBlock | Steps[SimulatedBlock]:
    """Simulate the next block of a chain and append it.

    Most blocks are finished at once; for others, return the remaining steps.
    """
    asked = FILLER if planned.request is None else planned.request
    context = _context(chain, planned, asked.block)
    if asked.overrides is None:
        return _run(OpenBlock(chain, asked, context, None))
    apply = partial(_apply_overrides, chain.overlay, asked.overrides, context.rules)
    if asked.overrides.is_large:
        return _run_overridden(chain, asked, context, apply)
    return _run(OpenBlock(chain, asked, context, apply()))


def _apply_overrides(
    overlay: Overlay, overrides: Overrides, rules: Rules, **_limits: int | None
) -> Precompiles | None:
    """Apply overrides to the state; a moved precompile is restored for the next block."""
    return overrides.apply_to(overlay, rules.engine_name)


def _run_overridden(
    chain: SimulatedChain, asked: BlockRequest, context: BlockContext, apply: Work
) -> Steps[SimulatedBlock]:
    """Run a block with very many overrides."""
    precompiles = yield apply
    found = _run(OpenBlock(chain, asked, context, precompiles))
    return found if isinstance(found, SimulatedBlock) else (yield from found)


def _run(block: OpenBlock) -> SimulatedBlock | Steps[SimulatedBlock]:
    late = _begin(block)
    calls = block.asked.calls
    done = 0 if late else run_at_once(block, calls)
    if late or done < len(calls) or block.chain.has_roots or has_queues(block.rules):
        return _go_on(block, late, done)
    if done > THRESHOLDS.sealed_calls:
        return _go_on(block, late, done)
    _pay(block)
    return _finished(block, _seal(block, ZERO_HASH, block.header.requests_hash))


def _go_on(block: OpenBlock, late: Sequence[Work], done: int) -> Steps[SimulatedBlock]:
    """Finish a block: system calls that took too long, then its calls from `done` on."""
    for work in late:  # noqa: UP028, results are sent in
        yield work
    yield from run_calls(block, block.asked.calls, done)
    requests = block.header.requests_hash
    if has_queues(block.rules):
        requests = yield from _requests(block)
    _pay(block)
    root = yield from block.chain.state_root()
    if len(block.body) > THRESHOLDS.sealed_calls:
        sealed: SealedBody = yield partial(_seal, block, root, requests)
        return _finished(block, sealed)
    return _finished(block, _seal(block, root, requests))


def _seal(
    block: OpenBlock, state_root: bytes, requests: bytes | None, **_limits: int | None
) -> SealedBody:
    """Seal the block; it cannot be interrupted, and takes longer the more calls there are."""
    return block.body.seal(
        block.header, state_root, block.blob_gas_used, requests, block.withdrawals
    )


def _finished(block: OpenBlock, sealed: SealedBody) -> SimulatedBlock:
    block.chain.extend(sealed, block.rules)
    return SimulatedBlock(sealed, block.is_filler)


def _context(
    chain: SimulatedChain, planned: PlannedBlock, overrides: BlockOverrides
) -> BlockContext:
    """The context of the block's calls.

    Most simulations start with the same block after their base, so its context is kept there.
    """
    base, like = chain.base, chain.usual
    usual = overrides is AS_IT_IS and not chain.validation
    if usual and chain.is_at_base and base.following is not None:
        chain.usual = base.following
        return base.following
    rules = chain.rules_of_next(planned.number, planned.time)
    if usual and like is not None and like.rules == rules:
        header = header_after(like.header, chain, planned, rules)
        chain.usual = BlockContext(header, rules, chain.profile)
        return chain.usual
    if overrides.withdrawals and rules.optimism is not None:
        raise RefusedOverride('block override "withdrawals" is not supported on this chain')
    header = open_header(chain, planned, overrides, rules)
    context = BlockContext(header, rules, chain.profile, overrides.blob_base_fee)
    chain.usual = context if usual else None
    if usual and chain.is_at_base:
        base.following = context
    return context


def _begin(block: OpenBlock) -> Sequence[Work]:
    """Make the system calls of the block's start; their results are ignored.

    Return the remaining calls, from the first that takes too long.
    """
    overlay, pace = block.chain.overlay, block.chain.pace
    messages = start_calls(block.header, block.rules)
    for index, (contract, data) in enumerate(messages):
        try:
            overlay.system_call(
                block.env, contract, data, block.precompiles, pace.timeout_us, pace.step_us
            )
        except DeadlineExceeded:
            return [_system_call(block, *message) for message in messages[index:]]
    return ()


def _system_call(block: OpenBlock, contract: bytes, data: bytes) -> Work:
    run = block.chain.overlay.system_call
    return partial(run, block.env, contract, data, block.precompiles)


def _requests(block: OpenBlock) -> Steps[bytes]:
    """The hash of the block's requests to the consensus layer (EIP-7685)."""
    try:
        deposits = block.body.deposit_requests(block.chain.profile.deposit_contract)
    except Undecodable as undecodable:
        why = f"unable to parse deposit data: {undecodable.why}"
        raise RefusedSimulation(Rule.SYSTEM, why) from None
    withdrawals = yield from _drain(block, WITHDRAWAL_REQUESTS, "withdrawal")
    consolidations = yield from _drain(block, CONSOLIDATION_REQUESTS, "consolidation")
    return requests_hash(
        [
            (DEPOSIT_REQUEST, deposits),
            (WITHDRAWAL_REQUEST, withdrawals),
            (CONSOLIDATION_REQUEST, consolidations),
        ]
    )


def _drain(block: OpenBlock, contract: bytes, queue: str) -> Steps[bytes]:
    """The requests queued in a contract, which must exist and answer."""
    pace, run = block.chain.pace, _system_call(block, contract, b"")
    outcome: Outcome | None
    try:
        outcome = run(timeout_us=pace.timeout_us, step_us=pace.step_us)
    except DeadlineExceeded:
        outcome = yield run
    failed = f"failed to process {queue} queue"
    if outcome is None:
        why = f"{failed}: empty system contract: no code at {checksum_address(contract)}"
        raise RefusedSimulation(Rule.SYSTEM, why)
    if outcome.status != "success":
        found = outcome.halt or "execution reverted"
        why = f"{failed}: system call failed to execute: {found}"
        raise RefusedSimulation(Rule.SYSTEM, why)
    return outcome.output


def _pay(block: OpenBlock) -> None:
    """Credit the withdrawals (EIP-4895) and, before the merge, the block's miner."""
    overlay = block.chain.overlay
    for _, _, address, amount in block.withdrawals or ():
        overlay.credit(address, amount * WEI_PER_GWEI)
    if block.rules.ethereum < PARIS:
        overlay.credit(block.header.beneficiary, block.rules.block_reward)


def simulate(
    base: ReadableBlock,
    state: State,
    unused: int,
    request: SimulationRequest,
    limits: SimulationLimits,
    pace: Pace = UNHURRIED,
    root: bytes | None = None,
) -> Steps[list[SimulatedBlock]]:
    """Simulate blocks after `base`, fillers included; `unused` and `root` as in `SimulatedChain`.

    On a block in progress, the first simulated block may have the same number. The counts of
    blocks and calls are checked earlier, when they are read. Raises `RefusedSimulation`,
    `RefusedCall`, `RefusedOverride`, `InvalidParams`.
    """
    header, step = base.header, base.profile.time_step
    in_progress = isinstance(base, PreconfirmedBlock)
    plan = timeline(
        request.blocks,
        header.number,
        header.timestamp,
        step,
        limits.blocks,
        in_progress=in_progress,
    )
    try:
        plain = plain_simulation(base, state, request, limits)
        blocks = None if plain is None else (yield from _run_plain(plain, pace))
        if blocks is not None:
            return blocks
        chain = SimulatedChain(base, state, unused, request, limits, pace, root)
        return (yield from _run_all(chain, plan, pace))
    except StateMissing as missing:
        raise with_starts(missing, state, plan) from None


def _run_plain(plain: PlainSimulation, pace: Pace) -> Steps[list[SimulatedBlock] | None]:
    """Run the blocks in slices; None if they need separate steps."""
    while True:
        progress = plain.run(pace.slice_us(), pace.timeout_us, pace.step_us)
        if progress == "finished":
            return [SimulatedBlock(block, is_filler=False) for block in plain.take()]
        if progress == "stopped":
            return None
        yield None


def _run_all(
    chain: SimulatedChain, plan: Sequence[PlannedBlock], pace: Pace
) -> Steps[list[SimulatedBlock]]:
    blocks: list[SimulatedBlock] = []
    for planned in plan:
        if blocks and pace.is_over():
            yield None
        block = run_block(chain, planned)
        if not isinstance(block, SimulatedBlock):
            block = yield from block
        blocks.append(block)
    return blocks
