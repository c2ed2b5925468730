"""What a block must be as a whole: its body before execution, its promises after.

`check_body` is cheap and comes first, so that most damage never reaches the engine.
`check_execution` compares what came of the run with what the header says.
"""

from typing import Final

from foreblock._engine import (
    Block,
    ommers_hash,
    receipts_root,
    transactions_root,
    withdrawals_root,
)
from foreblock.ledger.rules.check import Check
from foreblock.ledger.rules.execution import Execution, Task
from foreblock.ledger.rules.fees import GAS_PER_BLOB
from foreblock.ledger.rules.forks import EthereumFork, OptimismFork, Rules
from foreblock.ledger.rules.working_state import WorkingState

MAXIMUM_BLOCK_SIZE: Final = 8_388_608  # bytes of RLP, EIP-7934
MESSAGE_PASSER: Final = bytes.fromhex("4200000000000000000000000000000000000016")  # OP


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


def check_blob_gas(task: Task) -> None:
    """Check the blob gas that the transactions use (EIP-4844)."""
    header = task.block.header
    if header.blob_gas_used is None or task.rules.optimism is not None:
        return
    blobs = sum(len(transaction.blob_versioned_hashes or ()) for transaction in task.transactions)
    task.check.equal("blob gas used", blobs * GAS_PER_BLOB, header.blob_gas_used)


def check_execution(task: Task, execution: Execution, state: WorkingState) -> None:
    """Check everything the header says about the run, the state root last."""
    check, header = task.check, task.block.header
    check.equal("gas used", execution.gas_used, header.gas_used)
    check.equal("logs bloom", execution.logs_bloom, header.logs_bloom)
    check.equal("receipts root", receipts_root(execution.receipts), header.receipts_root)
    check.equal("requests hash", execution.requests_hash, header.requests_hash)
    if task.rules.includes(OptimismFork.JOVIAN):
        check.equal("blob gas used", execution.data_footprint, header.blob_gas_used)
    check.equal("state root", state.root(), header.state_root)
    if task.rules.includes(OptimismFork.ISTHMUS):
        root = state.storage_root(MESSAGE_PASSER)
        check.equal("withdrawals root", root, header.withdrawals_root)
