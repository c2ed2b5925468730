"""One simulated block: everything that happens in it, in its order."""

from collections.abc import Sequence
from functools import partial

from msgspec import Struct

from foreblock._engine import Block, requests_hash
from foreblock.errors import RefusedOverride, RefusedSimulation, Rule, Undecodable
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
from foreblock.ledger.forks import EthereumFork
from foreblock.ledger.genesis import EMPTY_REQUESTS_HASH
from foreblock.ledger.overrides import apply
from foreblock.ledger.simulation.branch import Branch
from foreblock.ledger.simulation.calls import CallResult, run_call
from foreblock.ledger.simulation.header import open_header
from foreblock.ledger.simulation.open_block import Budget, OpenBlock
from foreblock.ledger.simulation.request import BlockRequest, SimulationRequest
from foreblock.ledger.simulation.steps import Steps, Work
from foreblock.ledger.simulation.timeline import Place
from foreblock.ledger.surroundings import Surroundings

FILLER = BlockRequest()


class SimulatedBlock(Struct, frozen=True):
    """A finished block."""

    block: Block
    calls: Sequence[CallResult]
    is_filler: bool


def run_block(
    branch: Branch, place: Place, request: SimulationRequest, budget: Budget
) -> Steps[SimulatedBlock]:
    """Simulate the block at this place and make it the branch's last one."""
    asked = FILLER if place.request is None else place.request
    block = _open(branch, place, asked, request, budget)
    yield from _begin(block)
    calls = []
    for call in asked.calls:
        result = yield from run_call(block, call)
        calls.append(result)
    requests = yield from _requests(block)
    _withdraw(block, asked)
    _reward(block)
    sealed = _seal(block, asked, requests)
    branch.extend(sealed, block.rules)
    yield None
    return SimulatedBlock(sealed, calls, is_filler=place.request is None)


def _open(
    branch: Branch,
    place: Place,
    asked: BlockRequest,
    request: SimulationRequest,
    budget: Budget,
) -> OpenBlock:
    """Overrides come first; a precompile moved for this block is back for the next one."""
    rules = branch.rules_of_next(place.number, place.time)
    overrides = asked.block
    if overrides.withdrawals and rules.optimism is not None:
        raise RefusedOverride('block override "withdrawals" is not supported on this chain')
    header = open_header(branch, place, overrides, rules, validation=request.validation)
    precompiles = apply(asked.accounts, branch.overlay, rules)
    for number, block_hash in (overrides.block_hashes or {}).items():
        branch.overlay.set_block_hash(number, block_hash)
    around = Surroundings(header, rules, branch.profile, overrides.blob_base_fee)
    return OpenBlock(branch, around, precompiles, request, budget)


def _begin(block: OpenBlock) -> Steps[None]:
    """Tell the system contracts what they keep; what they answer does not matter."""
    header = block.header
    if header.parent_beacon_block_root is not None:
        yield _system_call(block, BEACON_ROOTS, header.parent_beacon_block_root)
    if block.rules.ethereum >= EthereumFork.PRAGUE:
        yield _system_call(block, HISTORY_STORAGE, header.parent_hash)


def _system_call(block: OpenBlock, contract: bytes, data: bytes) -> Work:
    run = block.branch.overlay.system_call
    return partial(run, block.env, contract, data, precompiles=block.precompiles)


def _requests(block: OpenBlock) -> Steps[bytes | None]:
    """What the block asks of the consensus layer, hashed; nothing on OP chains."""
    if block.rules.ethereum < EthereumFork.PRAGUE:
        return None
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
    outcome = yield _system_call(block, contract, b"")
    failed = f"failed to process {queue} queue"
    if outcome is None:
        why = f"{failed}: empty system contract: no code at {checksum_address(contract)}"
        raise RefusedSimulation(Rule.SYSTEM, why)
    if outcome.status != "success":
        found = outcome.halt or "execution reverted"
        why = f"{failed}: system call failed to execute: {found}"
        raise RefusedSimulation(Rule.SYSTEM, why)
    return outcome.output


def _withdraw(block: OpenBlock, asked: BlockRequest) -> None:
    """Pay out what left the consensus layer (EIP-4895)."""
    if block.rules.ethereum >= EthereumFork.SHANGHAI:
        for withdrawal in asked.block.withdrawals or ():
            amount = withdrawal.amount * WEI_PER_GWEI
            block.branch.overlay.credit(withdrawal.address, amount)


def _reward(block: OpenBlock) -> None:
    """Pay whoever mined the block, before the merge."""
    reward = block.rules.block_reward
    if reward:
        block.branch.overlay.credit(block.header.beneficiary, reward)


def _seal(block: OpenBlock, asked: BlockRequest, requests: bytes | None) -> Block:
    header = block.header.replace(
        state_root=block.branch.state_root(),
        blob_gas_used=block.blob_gas_used,
        requests_hash=requests,
    )
    shanghai = block.rules.ethereum >= EthereumFork.SHANGHAI
    return block.body.seal(header, (asked.block.withdrawals or []) if shanghai else None)
