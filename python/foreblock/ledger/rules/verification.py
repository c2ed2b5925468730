"""A sealed block, verified whole: imported, or sent by a canonical source.

Cheap checks come first: header against parent, body against header, uncles, senders; then
execution and the roots that only execution gives. A block that breaks a rule raises
`BadBlock`; the working state has seen parts of it by then and must be thrown away. Nothing
is stored here, and which sealed block the parent is, the caller knows.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from foreblock._engine import (
    Allowance,
    Block,
    Changes,
    Header,
    NodeWrites,
    Receipt,
    Transaction,
    decode_transactions,
)
from foreblock.errors import Undecodable
from foreblock.ledger.rules.block_rules import check_blob_gas, check_body, check_execution
from foreblock.ledger.rules.check import Check
from foreblock.ledger.rules.execution import Task, execute
from foreblock.ledger.rules.forks import EthereumFork, Rules
from foreblock.ledger.rules.header_rules import check_header
from foreblock.ledger.rules.profile import ChainProfile
from foreblock.ledger.rules.uncles import Ancestor, check_uncles
from foreblock.ledger.rules.working_state import WorkingState


@dataclass(frozen=True, slots=True)
class Verified:
    """A block that is as its header says, with all that is stored of it."""

    block: Block
    transactions: Sequence[Transaction]
    receipts: tuple[Receipt, ...]
    changes: Changes
    nodes: NodeWrites | None


def check_before_execution(
    block: Block,
    rules: Rules,
    parent: Header,
    parent_rules: Rules,
    profile: ChainProfile,
    ancestors: Sequence[Ancestor] = (),
) -> Task:
    """Check all that needs no execution; `ancestors` are those that uncles may name."""
    check_header(block.header, parent, rules, parent_rules, profile)
    check_body(block, rules)
    check_uncles(block.header.number, block.uncles, ancestors, profile)
    task = Task(block, _recover_senders(block, rules), rules, parent_rules, profile)
    check_blob_gas(task)
    return task


def verify(
    task: Task, state: WorkingState, number: int, allowance: Allowance | None = None
) -> Verified:
    """Execute a checked block and hold the result against its header.

    `number` is the one it will be stored under. The state is then that of the parent of the
    next block. Raises `OverBudget` where the block takes more than its allowance.
    """
    state.number = number
    execution = execute(task, state, allowance)
    check_execution(task, execution, state)
    changes, nodes = state.finish()
    block = task.block
    state.overlay.set_block_hash(block.header.number, block.hash)
    return Verified(block, task.transactions, execution.receipts, changes, nodes)


def _recover_senders(block: Block, rules: Rules) -> list[Transaction]:
    homestead = rules.ethereum >= EthereumFork.HOMESTEAD
    try:
        return decode_transactions(block.transactions, homestead=homestead)
    except Undecodable as broken:
        Check(block.header.number).fail("transactions", "signed ones", str(broken))
