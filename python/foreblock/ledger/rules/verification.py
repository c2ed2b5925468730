"""A sealed block, verified whole: imported, or sent by a canonical source.

Cheap checks come first: header against parent, body against header, uncles, senders; then
execution and the roots that only execution gives. A block that breaks a rule raises
`BadBlock`; the working state has seen parts of it by then and must be discarded. Nothing
is stored here.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from foreblock._engine import (
    Allowance,
    Block,
    Changes,
    Header,
    NodeWrites,
    Transaction,
    decode_transactions,
    ommers_hash,
    transactions_root,
    withdrawals_root,
)
from foreblock.errors import Undecodable
from foreblock.ledger.rules.check import Check
from foreblock.ledger.rules.execution import Execution, Task, WorkingState, execute
from foreblock.ledger.rules.fees import GAS_PER_BLOB
from foreblock.ledger.rules.forks import EthereumFork, OptimismFork, Rules
from foreblock.ledger.rules.header_rules import Ancestor, check_header, check_uncles
from foreblock.ledger.rules.profile import ChainProfile

MAXIMUM_BLOCK_SIZE: Final = 8_388_608  # bytes of RLP, EIP-7934
MESSAGE_PASSER: Final = bytes.fromhex("4200000000000000000000000000000000000016")  # OP


class Verified(Struct, frozen=True):
    """A block that matches its header, with all its stored rows."""

    block: Block
    execution: Execution
    changes: Changes
    nodes: NodeWrites | None


def check_before_execution(
    block: Block,
    rules: Rules,
    parent: Header,
    parent_rules: Rules,
    profile: ChainProfile,
    ancestors: Sequence[Ancestor] | None = (),
) -> Task:
    """Check all that needs no execution; `ancestors` are those that uncles may name.

    Where they are not known, uncles are those whose hashes the header commits to.
    """
    check_header(block.header, parent, rules, parent_rules, profile)
    check_body(block, rules)
    if ancestors is not None:
        check_uncles(block.header.number, block.uncles, ancestors, profile)
    task = Task(block, _recover_senders(block, rules, profile), rules, parent_rules, profile)
    _check_blob_gas(task)
    return task


def verify(
    task: Task, state: WorkingState, number: int, allowance: Allowance | None = None
) -> Verified:
    """Execute a checked block and hold the result against its header.

    `number` is the one it will be stored under. The state is then that of the parent of the
    next block. Raises `OverBudget` where the block takes more than its allowance.
    """
    state.number = number
    return check_and_finish(task, execute(task, state, allowance), state)


def check_and_finish(task: Task, execution: Execution, state: WorkingState) -> Verified:
    """Hold an executed block against its header, and continue to the next one."""
    _check_execution(task, execution, state)
    changes, nodes = state.finish()
    block = task.block
    state.overlay.set_block_hash(block.header.number, block.hash)
    return Verified(block, execution, changes, nodes)


def _recover_senders(block: Block, rules: Rules, profile: ChainProfile) -> list[Transaction]:
    homestead = rules.ethereum >= EthereumFork.HOMESTEAD
    try:
        return decode_transactions(
            block.transactions, homestead=homestead, unsigned=profile.unsigned
        )
    except Undecodable as broken:
        Check(block.header.number).fail("transactions", "signed ones", str(broken))


def check_body(block: Block, rules: Rules) -> None:
    """Check that the header commits to exactly this body."""
    check = Check(block.header.number)
    if rules.block_size_limited:
        check.at_most("size", MAXIMUM_BLOCK_SIZE, block.size)
    check.equal(
        "transactions root",
        transactions_root(block.transactions),
        block.header.transactions_root,
    )
    check.equal("ommers hash", ommers_hash(block.uncles), block.header.ommers_hash)
    _check_withdrawals(check, block, rules)


def _check_withdrawals(check: Check, block: Block, rules: Rules) -> None:
    if rules.ethereum < EthereumFork.SHANGHAI:
        check.equal("withdrawals", None, None if block.withdrawals is None else "a list")
        return
    if block.withdrawals is None:
        check.fail("withdrawals", "a list", None)
    if rules.optimism is not None:
        check.equal("number of withdrawals", 0, len(block.withdrawals))
    if not rules.includes(OptimismFork.ISTHMUS):
        root = withdrawals_root(block.withdrawals)
        check.equal("withdrawals root", root, block.header.withdrawals_root)


def _check_blob_gas(task: Task) -> None:
    """Check the blob gas that the transactions use (EIP-4844)."""
    header = task.block.header
    if header.blob_gas_used is None or task.rules.optimism is not None:
        return
    blobs = sum(len(transaction.blob_versioned_hashes or ()) for transaction in task.transactions)
    task.check.equal("blob gas used", blobs * GAS_PER_BLOB, header.blob_gas_used)


def _check_execution(task: Task, execution: Execution, state: WorkingState) -> None:
    """Compare the run with the header, the state root last."""
    check, header, found = task.check, task.block.header, execution.header
    check.equal("gas used", found.gas_used, header.gas_used)
    check.equal("logs bloom", found.logs_bloom, header.logs_bloom)
    check.equal("receipts root", found.receipts_root, header.receipts_root)
    check.equal("requests hash", execution.requests_hash, header.requests_hash)
    if task.rules.includes(OptimismFork.JOVIAN):
        check.equal("blob gas used", execution.data_footprint, header.blob_gas_used)
    if state.trie is None:
        state.collect()  # the block is sealed by its name
        return
    check.equal("state root", state.root(), header.state_root)
    if task.rules.includes(OptimismFork.ISTHMUS):
        root = state.storage_root(MESSAGE_PASSER)
        check.equal("withdrawals root", root, header.withdrawals_root)
