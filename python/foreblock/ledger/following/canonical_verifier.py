"""Sealed blocks from a canonical source: executed here, and verified to the state root.

As an import does, block after block on what is in memory; nothing is stored. What follows
the last block may be executed on the same state before anything is committed. After a
`BadBlock` or `OverBudget` the run is to be thrown away.
"""

from dataclasses import dataclass
from typing import Final

from foreblock._engine import (
    Allowance,
    Block,
    Changes,
    Header,
    NodeWrites,
    Receipt,
    Store,
    Transaction,
    decode_transactions,
)
from foreblock.errors import OverBudget, Undecodable
from foreblock.ledger.building.block_in_progress import Foundation
from foreblock.ledger.building.parent_state import on_sealed
from foreblock.ledger.building.state_roots import StateRoots
from foreblock.ledger.following.bounds import GAS, MOST_GROWTH_SEALED
from foreblock.ledger.rules.block_rules import check_body, check_execution
from foreblock.ledger.rules.check import Check
from foreblock.ledger.rules.execution import Task, execute
from foreblock.ledger.rules.header_rules import check_header
from foreblock.ledger.rules.profile import ChainProfile
from foreblock.ledger.rules.working_state import Scratch


@dataclass(frozen=True, slots=True)
class Verified:
    """A block that is as its header says."""

    block: Block
    transactions: list[Transaction]
    receipts: tuple[Receipt, ...]
    changes: Changes
    nodes: NodeWrites | None


class ForeignRun:
    """Blocks that follow a sealed one, none of them stored yet."""

    def __init__(self, store: Store, profile: ChainProfile, fork: int) -> None:
        """`fork` is the sealed block that the first follows."""
        ground = on_sealed(store, profile, fork)
        self._view: Final = ground.view
        self._profile: Final = profile
        self._header = ground.parent
        self._rules = ground.parent_rules
        self._scratch: Final = Scratch(ground.overlay, ground.roots.hand_over(), 0)

    def check(self, block: Block) -> Task:
        """What is to be executed, if the block is whole and may follow the last."""
        profile, header = self._profile, block.header
        rules = profile.rules(header.number, header.timestamp, merged=True)
        check_header(header, self._header, rules, self._rules, profile)
        check_body(block, rules)
        most = MOST_GROWTH_SEALED * self._header.gas_limit
        Check(header.number).at_most("gas used", most, header.gas_used)
        try:
            transactions = decode_transactions(block.transactions)
        except Undecodable as broken:
            Check(header.number).fail("transactions", "signed ones", str(broken))
        return Task(block, transactions, rules, self._rules, profile)

    @property
    def parent(self) -> Header:
        """What the next block follows."""
        return self._header

    def execute(self, task: Task, number: int, allowance: Allowance) -> Verified:
        """Execute a block, which will be stored as `number`, and verify what it says of it."""
        self._scratch.number = number
        try:
            execution = execute(task, self._scratch, allowance)
        except OverBudget as over:
            if over.what == GAS:
                task.check.fail("gas used", task.block.header.gas_used, "more")
            raise
        check_execution(task, execution, self._scratch)
        changes, nodes = self._scratch.finish()
        block = task.block
        self._header, self._rules = block.header, task.rules
        self._scratch.overlay.set_block_hash(block.header.number, block.hash)
        return Verified(block, list(task.transactions), execution.receipts, changes, nodes)

    def foundation_of_next(self) -> Foundation:
        """What a block after the last one stands on; no further one can be verified then."""
        trie = self._scratch.trie
        return Foundation(
            profile=self._profile,
            parent=self._header,
            parent_rules=self._rules,
            previous=None,
            view=self._view,
            overlay=self._scratch.overlay,
            roots=StateRoots(lambda: trie),
        )

    def close(self) -> None:
        """Let go of the store."""
        self._view.close()
