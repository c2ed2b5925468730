"""One simulated block: everything that happens in it, in its order."""

from functools import partial

from msgspec import Struct

from foreblock._engine import Outcome, Sealed, Withdrawal, requests_hash
from foreblock.errors import DeadlineExceeded, RefusedOverride, RefusedSimulation, Rule, Undecodable
from foreblock.ledger.block_overrides import AS_IT_IS, BlockOverrides
from foreblock.ledger.checksum import checksum_address
from foreblock.ledger.execution import (
    BEACON_ROOTS,
    CONSOLIDATION_REQUEST,
    CONSOLIDATION_REQUESTS,
    DEPOSIT_REQUEST,
    HISTORY_STORAGE,
    WEI_PER_GWEI,
    WITHDRAWAL_REQUEST,
    WITHDRAWAL_REQUESTS,
)
from foreblock.ledger.forks import PARIS, PRAGUE, SHANGHAI
from foreblock.ledger.genesis import EMPTY_REQUESTS_HASH
from foreblock.ledger.overrides import apply
from foreblock.ledger.simulation.branch import Branch
from foreblock.ledger.simulation.calls import run_calls
from foreblock.ledger.simulation.header import open_header
from foreblock.ledger.simulation.open_block import OpenBlock
from foreblock.ledger.simulation.request import BlockRequest
from foreblock.ledger.simulation.steps import Steps, Work
from foreblock.ledger.simulation.timeline import Place
from foreblock.ledger.surroundings import Surroundings
from foreblock.primitives import ZERO_HASH

FILLER = BlockRequest()


class SimulatedBlock(Struct, frozen=True):
    """A finished block."""

    block: Sealed
    is_filler: bool


def run_block(branch: Branch, place: Place) -> Steps[SimulatedBlock]:
    """Simulate the block at this place and make it the branch's last one."""
    asked = FILLER if place.request is None else place.request
    block = _open(branch, place, asked)
    yield from _begin(block)
    yield from run_calls(block, asked.calls)
    fork = block.rules.ethereum
    requests = (yield from _requests(block)) if fork >= PRAGUE else None
    withdrawals = _withdraw(block, asked) if fork >= SHANGHAI else None
    if fork < PARIS:
        _reward(block)
    sealed = block.body.seal(
        block.header,
        state_root=(yield from branch.state_root()) if branch.has_roots else ZERO_HASH,
        blob_gas_used=block.blob_gas_used,
        requests_hash=requests,
        withdrawals=withdrawals,
    )
    branch.extend(sealed, block.rules)
    return SimulatedBlock(sealed, is_filler=place.request is None)


def _open(branch: Branch, place: Place, asked: BlockRequest) -> OpenBlock:
    """Overrides come first; a precompile moved for this block is back for the next one."""
    around = _surroundings(branch, place, asked.block)
    precompiles = None
    if asked.accounts:
        precompiles = apply(asked.accounts, branch.overlay, around.rules)
    if asked.block.block_hashes:
        for number, block_hash in asked.block.block_hashes.items():
            branch.overlay.set_block_hash(number, block_hash)
    return OpenBlock(branch, around, precompiles)


def _surroundings(branch: Branch, place: Place, overrides: BlockOverrides) -> Surroundings:
    """What the block's calls will see of it.

    Most simulations begin with the same block after theirs, which is kept with that one.
    """
    base = branch.base
    usual = branch.is_at_base and overrides is AS_IT_IS and not branch.validation
    if usual and base.following is not None:
        return base.following
    rules = branch.rules_of_next(place.number, place.time)
    if overrides.withdrawals and rules.optimism is not None:
        raise RefusedOverride('block override "withdrawals" is not supported on this chain')
    header = open_header(branch, place, overrides, rules)
    around = Surroundings(header, rules, branch.profile, overrides.blob_base_fee)
    if usual:
        base.following = around
    return around


def _begin(block: OpenBlock) -> Steps[None]:
    """Tell the system contracts what they keep; what they answer does not matter."""
    header, told = block.header, []
    if header.parent_beacon_block_root is not None:
        told.append((BEACON_ROOTS, header.parent_beacon_block_root))
    if block.rules.ethereum >= PRAGUE:
        told.append((HISTORY_STORAGE, header.parent_hash))
    pace = block.branch.pace
    for contract, data in told:
        run = _system_call(block, contract, data)
        try:
            run(timeout_us=pace.timeout_us, precompile_gas=pace.precompile_gas)
        except DeadlineExceeded:
            yield run


def _system_call(block: OpenBlock, contract: bytes, data: bytes) -> Work:
    run = block.branch.overlay.system_call
    return partial(run, block.env, contract, data, block.precompiles)


def _requests(block: OpenBlock) -> Steps[bytes]:
    """What the block asks of the consensus layer, hashed (EIP-7685); nothing on OP chains."""
    if block.rules.optimism is not None:
        return EMPTY_REQUESTS_HASH
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
        outcome = run(timeout_us=pace.timeout_us, precompile_gas=pace.precompile_gas)
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


def _withdraw(block: OpenBlock, asked: BlockRequest) -> list[Withdrawal]:
    """Pay out what left the consensus layer (EIP-4895)."""
    withdrawals = asked.block.withdrawals or []
    for withdrawal in withdrawals:
        block.branch.overlay.credit(withdrawal.address, withdrawal.amount * WEI_PER_GWEI)
    return withdrawals


def _reward(block: OpenBlock) -> None:
    """Pay whoever mined the block."""
    block.branch.overlay.credit(block.header.beneficiary, block.rules.block_reward)
