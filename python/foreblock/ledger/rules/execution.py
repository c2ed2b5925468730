"""One block, executed: the effects of its transactions and its fork on the state.

In the order of the specification: the start, transactions in order, then requests, withdrawals and
rewards. At the start two system contracts store facts about the block, as their EIPs say, and one
OP fork puts code into the state; imported, followed, built and simulated blocks all start here. The
result is what a header promises (gas, receipts, bloom, requests); `verification` compares.

An overlay holds the changes of the block, and a trie applies them when a root is needed. Both
begin at the state of one sealed block and continue from block to block; neither writes to the
store. A block that cannot be executed is refused with `BadBlock`; the working state must then be
discarded. If the state is known only in part there is no trie, and no root but the announced one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Final

from msgspec import Struct

from foreblock._engine import (
    Allowance,
    Block,
    BlockExecution,
    Changes,
    Env,
    Header,
    NodeWrites,
    Overlay,
    StateTrie,
    Transaction,
    deposit_requests,
    requests_hash,
)
from foreblock.errors import InvalidTransaction, Undecodable
from foreblock.ledger.rules.check import EMPTY_REQUESTS_HASH, Check
from foreblock.ledger.rules.fees import blob_base_fee
from foreblock.ledger.rules.forks import OSAKA, EthereumFork, OptimismFork, Rules
from foreblock.ledger.rules.post_exec import refunds_of
from foreblock.ledger.rules.profile import ChainProfile
from foreblock.ledger.rules.transaction_rules import BLOB, DEPOSIT


@dataclass(slots=True)
class WorkingState:
    """An overlay and its trie, with the changes since the last `finish`."""

    overlay: Overlay
    trie: StateTrie | None  # only that of the latest block gives nodes
    number: int = 0  # the store's number for the block; new accounts are stored under it
    _changes: Changes | None = field(default=None, init=False)  # up to the last root
    _taken: Changes | None = field(default=None, init=False)  # since then

    def root(self) -> bytes:
        assert self.trie is not None, "roots are computed by a trie"
        changes, self._taken = self.collect(), None
        self.trie.apply(changes)
        self._changes = changes if self._changes is None else self._changes.merge(changes)
        return self.trie.root()

    def collect(self) -> Changes:
        """The changes since the last root, which the next one applies."""
        changes = self.overlay.take(self.number)
        self._taken = changes if self._taken is None else self._taken.merge(changes)
        return self._taken

    def storage_root(self, address: bytes) -> bytes:
        """The root of one account's storage as of the last `root`."""
        assert self.trie is not None, "roots are computed by a trie"
        return self.trie.storage_root(address)

    def finish(self) -> tuple[Changes, NodeWrites | None]:
        """The block's changes, to the state and to the trie, as of the last `root`.

        Without a trie, as of the last `collect`.
        """
        if self.trie is None:
            self._changes, self._taken = self._taken, None
        assert self._changes is not None, "finish follows root"
        changes, self._changes = self._changes, None
        return changes, None if self.trie is None else self.trie.take()


BEACON_ROOTS: Final = bytes.fromhex("000f3df6d732807ef1319fb7b8bb8522d0beac02")  # EIP-4788
HISTORY_STORAGE: Final = bytes.fromhex("0000f90827f1c53a10cb7a02335b175320002935")  # EIP-2935
HISTORY_WINDOW: Final = 8191  # blocks whose hashes it has, in a ring of slots
# OP, forced into the state by Canyon's first block.
CREATE2_DEPLOYER: Final = bytes.fromhex("13b0d85ccb8bf860b6b79af3029fca081ae9bef2")


def start_calls(header: Header, rules: Rules) -> list[tuple[bytes, bytes]]:
    """The system calls of a block's start, in order: contract and input."""
    calls = []
    if header.parent_beacon_block_root is not None:
        calls.append((BEACON_ROOTS, header.parent_beacon_block_root))
    if rules.ethereum >= EthereumFork.PRAGUE:
        calls.append((HISTORY_STORAGE, header.parent_hash))
    return calls


def start_block(
    overlay: Overlay, env: Env, header: Header, rules: Rules, parent_rules: Rules
) -> None:
    """Apply the start of a block to its parent's state.

    A call has no effect if its contract has no code, and its outcome is ignored.
    """
    for contract, data in start_calls(header, rules):
        overlay.system_call(env, contract, data)
    canyon = OptimismFork.CANYON
    if rules.includes(canyon) and not parent_rules.includes(canyon):
        overlay.set(CREATE2_DEPLOYER, code=_create2_deployer_code())


def _create2_deployer_code() -> bytes:
    here = resources.files("foreblock.ledger.rules")
    text = here.joinpath("create2_deployer.hex").read_text("ascii")
    return bytes.fromhex(text)


WITHDRAWAL_REQUESTS: Final = bytes.fromhex("00000961ef480eb55e80d19ad83579a64c007002")  # EIP-7002
CONSOLIDATION_REQUESTS: Final = bytes.fromhex(
    "0000bbddc7ce488642fb579f8b00f3a590007251"
)  # EIP-7251
DEPOSIT_REQUEST: Final = 0  # EIP-6110
WITHDRAWAL_REQUEST: Final = 1  # EIP-7002
CONSOLIDATION_REQUEST: Final = 2  # EIP-7251

WEI_PER_GWEI: Final = 10**9
BLOBS_PER_TRANSACTION: Final = 6  # EIP-7594, from Osaka on

DEPOSIT_RECEIPT_VERSION: Final = 1  # OP, from Canyon on


class Execution(Struct, frozen=True):
    """The results of a block's execution."""

    header: Header  # of the block, with the gas, the roots and the bloom that were found
    senders: bytes  # 20 bytes each
    receipts: Sequence[bytes]
    hashes: Sequence[bytes]  # of the transactions
    data_footprint: int  # OP from Jovian on: the value of the header's blob gas used
    requests_hash: bytes | None


class Task(Struct, frozen=True):
    """A block to execute, with its rules."""

    block: Block
    transactions: Sequence[Transaction]
    rules: Rules
    parent_rules: Rules
    profile: ChainProfile

    @property
    def check(self) -> Check:
        """Checks on this block."""
        return Check(self.block.header.number)


def execute(task: Task, state: WorkingState, allowance: Allowance | None = None) -> Execution:
    """Execute the block on the state of its parent.

    `OverBudget` where its transactions take more than they may.
    """
    header = task.block.header
    env = environment(header, task.rules, task.profile)
    start_block(state.overlay, env, header, task.rules, task.parent_rules)
    version = deposit_receipt_version(task.rules)
    execution = BlockExecution(state.overlay, env, deposit_receipt_version=version)
    _run(task, state, execution, allowance)
    _, senders, receipts, hashes = execution.take()
    requests = _requests(task, state, env, receipts)
    _withdraw(task, state)
    _reward(task, state)
    return Execution(
        header=execution.fill(header),
        senders=senders,
        receipts=receipts,
        hashes=hashes,
        data_footprint=execution.da_footprint,
        requests_hash=requests,
    )


def environment(
    header: Header, rules: Rules, profile: ChainProfile, blob_fee: int | None = None
) -> Env:
    """The environment that the transactions of this block see.

    A call may run on a block with another blob base fee, `blob_fee`.
    """
    blobs = profile.blob_parameters(header.timestamp)
    limit = None
    if blobs is not None:
        limit = blobs.maximum
        if rules.ethereum >= OSAKA:
            limit = min(limit, BLOBS_PER_TRANSACTION)
        if blob_fee is None:
            blob_fee = blob_base_fee(header.excess_blob_gas or 0, blobs)
    return Env.of_header(
        header,
        rules=rules.engine_name,
        chain_id=profile.chain_id,
        blob_base_fee=blob_fee,
        max_blobs_per_transaction=limit,
        max_code_size=profile.code_size,
        max_transaction_gas=profile.transaction_gas,
    )


def _run(
    task: Task, state: WorkingState, execution: BlockExecution, allowance: Allowance | None
) -> None:
    """Run the transactions; their receipts tell the outcome, before Byzantium the state root."""
    _check_kinds(task)
    execution.set_refunds(refunds_of(task.transactions, task.rules, task.check))
    try:
        if task.rules.ethereum < EthereumFork.BYZANTIUM:
            _run_with_roots(task, state, execution, allowance)
        else:
            execution.run(task.transactions, allowance)
    except InvalidTransaction as invalid:
        task.check.fail(f"transaction {execution.count}", "one that is valid here", invalid.why)


def _run_with_roots(
    task: Task, state: WorkingState, execution: BlockExecution, allowance: Allowance | None
) -> None:
    if state.trie is None:
        task.check.fail("receipts", "outcomes, from Byzantium on", "state roots")
    for transaction in task.transactions:
        execution.run([transaction], allowance)
        execution.set_post_state(state.root())


def deposit_receipt_version(rules: Rules) -> int | None:
    """The version in the receipts of deposits."""
    return DEPOSIT_RECEIPT_VERSION if rules.includes(OptimismFork.CANYON) else None


def _check_kinds(task: Task) -> None:
    """Transactions that this chain or fork does not have, whatever their content."""
    optimism = task.rules.optimism is not None
    protection = task.rules.ethereum >= EthereumFork.SPURIOUS_DRAGON  # EIP-155
    for index, transaction in enumerate(task.transactions):
        what = f"transaction {index}"
        if transaction.type == DEPOSIT and not optimism:
            task.check.fail(what, "a type that Ethereum has", "a deposit")
        if transaction.type == BLOB and optimism:
            task.check.fail(what, "a type that OP chains have", "a blob transaction")
        if transaction.chain_id is not None and not protection:
            task.check.fail(what, "no chain id before Spurious Dragon", transaction.chain_id)


def _requests(task: Task, state: WorkingState, env: Env, receipts: Sequence[bytes]) -> bytes | None:
    """The hash of the block's requests to the consensus layer (EIP-7685); none on OP chains."""
    if task.rules.ethereum < EthereumFork.PRAGUE:
        return None
    if task.rules.optimism is not None:
        return EMPTY_REQUESTS_HASH
    deposits = deposits_in(receipts, task.profile, task.check)
    return hash_of_requests(deposits, state.overlay, env, task.check)


def deposits_in(receipts: Sequence[bytes], profile: ChainProfile, check: Check) -> bytes:
    """The deposits that the logs of these receipts report (EIP-6110)."""
    try:
        return deposit_requests(receipts, profile.deposit_contract)
    except Undecodable as undecodable:
        check.fail("deposit requests", "well-formed deposit logs", undecodable.why)


def hash_of_requests(deposits: bytes, overlay: Overlay, env: Env, check: Check) -> bytes:
    """The hash of a block's requests, which leave the queues of their contracts by this."""
    return requests_hash(
        [
            (DEPOSIT_REQUEST, deposits),
            (WITHDRAWAL_REQUEST, _drain(overlay, env, WITHDRAWAL_REQUESTS, check)),
            (CONSOLIDATION_REQUEST, _drain(overlay, env, CONSOLIDATION_REQUESTS, check)),
        ]
    )


def hash_of_deposits(deposits: bytes) -> bytes:
    """The hash of requests of a block that has only deposits."""
    if not deposits:
        return EMPTY_REQUESTS_HASH
    return requests_hash([(DEPOSIT_REQUEST, deposits)])


def _drain(overlay: Overlay, env: Env, contract: bytes, check: Check) -> bytes:
    """The requests waiting in a contract, which must be there and must answer."""
    what = f"requests of 0x{contract.hex()}"
    outcome = overlay.system_call(env, contract, b"")
    if outcome is None:
        check.fail(what, "a contract", "no code")
    if outcome.status != "success":
        check.fail(what, "success", outcome.halt or outcome.status)
    return outcome.output


def _withdraw(task: Task, state: WorkingState) -> None:
    """Pay withdrawals from the consensus layer (EIP-4895)."""
    for _, _, address, amount in task.block.withdrawals or ():
        state.overlay.credit(address, amount * WEI_PER_GWEI)


def _reward(task: Task, state: WorkingState) -> None:
    """Pay the miners of the block and its uncles (yellow paper, section 11.3)."""
    reward = task.rules.block_reward
    if not reward:
        return
    header, uncles = task.block.header, task.block.uncles
    for uncle in uncles:
        age = header.number - uncle.number
        state.overlay.credit(uncle.beneficiary, reward * (8 - age) // 8)
    state.overlay.credit(header.beneficiary, reward + len(uncles) * (reward // 32))
