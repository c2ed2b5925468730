"""One simulated block: everything that happens in it, in its order."""

from collections.abc import Sequence
from functools import partial

from msgspec import Struct

from foreblock._engine import (
    BodyText,
    Outcome,
    Overlay,
    Overrides,
    Precompiles,
    SealedBody,
    requests_hash,
)
from foreblock.errors import DeadlineExceeded, RefusedOverride, RefusedSimulation, Rule, Undecodable
from foreblock.ledger.calls.block_overrides import AS_IT_IS, BlockOverrides
from foreblock.ledger.reading.block_context import Surroundings
from foreblock.ledger.rules.checksum import checksum_address
from foreblock.ledger.rules.execution import (
    CONSOLIDATION_REQUEST,
    CONSOLIDATION_REQUESTS,
    DEPOSIT_REQUEST,
    WEI_PER_GWEI,
    WITHDRAWAL_REQUEST,
    WITHDRAWAL_REQUESTS,
)
from foreblock.ledger.rules.forks import PARIS, Rules
from foreblock.ledger.simulation.branch import Branch
from foreblock.ledger.simulation.calls import run_at_once, run_calls
from foreblock.ledger.simulation.header import header_after, open_header
from foreblock.ledger.simulation.open_block import OpenBlock, has_queues, told
from foreblock.ledger.simulation.request import FILLER, BlockRequest
from foreblock.ledger.simulation.timeline import Place
from foreblock.primitives import ZERO_HASH
from foreblock.scheduling.steps import Steps, Work
from foreblock.scheduling.thresholds import THRESHOLDS

__all__ = ["BodyText", "SealedBody", "SimulatedBlock", "run_block"]


class SimulatedBlock(Struct, frozen=True):
    """A finished block."""

    block: SealedBody
    is_filler: bool


def run_block(branch: Branch, place: Place) -> SimulatedBlock | Steps[SimulatedBlock]:
    """Simulate the block at this place and make it the branch's last one.

    Most blocks are finished at once. Of one that is not, these are the steps that are left.
    """
    asked = FILLER if place.request is None else place.request
    around = _surroundings(branch, place, asked.block)
    if asked.overrides is None:
        return _run(OpenBlock(branch, asked, around, None))
    lay = partial(_lay, branch.overlay, asked.overrides, around.rules)
    if asked.overrides.is_large:
        return _run_overridden(branch, asked, around, lay)
    return _run(OpenBlock(branch, asked, around, lay()))


def _lay(
    overlay: Overlay, overrides: Overrides, rules: Rules, **_limits: int | None
) -> Precompiles | None:
    """Lay overrides over the state; a precompile moved here is back for the next block."""
    return overrides.lay(overlay, rules.engine_name)


def _run_overridden(
    branch: Branch, asked: BlockRequest, around: Surroundings, lay: Work
) -> Steps[SimulatedBlock]:
    """A block with very many overrides."""
    precompiles = yield lay
    found = _run(OpenBlock(branch, asked, around, precompiles))
    return found if isinstance(found, SimulatedBlock) else (yield from found)


def _run(block: OpenBlock) -> SimulatedBlock | Steps[SimulatedBlock]:
    late = _begin(block)
    calls = block.asked.calls
    done = 0 if late else run_at_once(block, calls)
    if late or done < len(calls) or block.branch.has_roots or has_queues(block.rules):
        return _go_on(block, late, done)
    if done > THRESHOLDS.sealed_calls:
        return _go_on(block, late, done)
    _pay(block)
    return _finished(block, _seal(block, ZERO_HASH, block.header.requests_hash))


def _go_on(block: OpenBlock, late: Sequence[Work], done: int) -> Steps[SimulatedBlock]:
    """What is left of a block: calls of the system that are late, and calls from `done` on."""
    for work in late:  # noqa: UP028, what comes of them is sent
        yield work
    yield from run_calls(block, block.asked.calls, done)
    requests = block.header.requests_hash
    if has_queues(block.rules):
        requests = yield from _requests(block)
    _pay(block)
    root = yield from block.branch.state_root()
    if len(block.body) > THRESHOLDS.sealed_calls:
        sealed: SealedBody = yield partial(_seal, block, root, requests)
        return _finished(block, sealed)
    return _finished(block, _seal(block, root, requests))


def _seal(
    block: OpenBlock, state_root: bytes, requests: bytes | None, **_limits: int | None
) -> SealedBody:
    """It cannot be stopped, and takes longer the more calls there are."""
    return block.body.seal(
        block.header, state_root, block.blob_gas_used, requests, block.withdrawals
    )


def _finished(block: OpenBlock, sealed: SealedBody) -> SimulatedBlock:
    block.branch.extend(sealed, block.rules)
    return SimulatedBlock(sealed, block.is_filler)


def _surroundings(branch: Branch, place: Place, overrides: BlockOverrides) -> Surroundings:
    """What the block's calls will see of it.

    Most simulations begin with the same block after theirs, which is kept with that one.
    """
    base, like = branch.base, branch.usual
    usual = overrides is AS_IT_IS and not branch.validation
    if usual and branch.is_at_base and base.following is not None:
        branch.usual = base.following
        return base.following
    rules = branch.rules_of_next(place.number, place.time)
    if usual and like is not None and like.rules == rules:
        header = header_after(like.header, branch, place, rules)
        branch.usual = Surroundings(header, rules, branch.profile)
        return branch.usual
    if overrides.withdrawals and rules.optimism is not None:
        raise RefusedOverride('block override "withdrawals" is not supported on this chain')
    header = open_header(branch, place, overrides, rules)
    around = Surroundings(header, rules, branch.profile, overrides.blob_base_fee)
    branch.usual = around if usual else None
    if usual and branch.is_at_base:
        base.following = around
    return around


def _begin(block: OpenBlock) -> Sequence[Work]:
    """Tell the system contracts what they keep; what they answer does not matter.

    Gives what is left to be told, from the first that takes long.
    """
    overlay, pace, messages = (
        block.branch.overlay,
        block.branch.pace,
        told(block.header, block.rules),
    )
    for index, (contract, data) in enumerate(messages):
        try:
            overlay.system_call(
                block.env, contract, data, block.precompiles, pace.timeout_us, pace.step_us
            )
        except DeadlineExceeded:
            return [_system_call(block, *message) for message in messages[index:]]
    return ()


def _system_call(block: OpenBlock, contract: bytes, data: bytes) -> Work:
    run = block.branch.overlay.system_call
    return partial(run, block.env, contract, data, block.precompiles)


def _requests(block: OpenBlock) -> Steps[bytes]:
    """What the block asks of the consensus layer, hashed (EIP-7685)."""
    try:
        deposits = block.body.deposit_requests(block.branch.profile.deposit_contract)
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
    """The requests waiting in a contract, which must be there and must answer."""
    pace, run = block.branch.pace, _system_call(block, contract, b"")
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
    """Pay out what left the consensus layer (EIP-4895), and whoever mined the block."""
    overlay = block.branch.overlay
    for withdrawal in block.withdrawals or ():
        overlay.credit(withdrawal.address, withdrawal.amount * WEI_PER_GWEI)
    if block.rules.ethereum < PARIS:
        overlay.credit(block.header.beneficiary, block.rules.block_reward)
