"""The canonical chain as it grows: blocks are verified, gathered, and stored together.

The order is cheap first: header against parent, body against header, uncles, senders,
then execution and the roots that only execution gives. A block joins the batch when
all of it is verified, so a commit holds nothing of a bad block. After a refusal only
`commit` and `close` may follow: the scratch state has seen parts of the bad block.
"""

from dataclasses import dataclass

from foreblock._engine import Block, Store, Transaction, decode_transactions
from foreblock.errors import Undecodable
from foreblock.ledger.rules.block_rules import check_blob_gas, check_body, check_execution
from foreblock.ledger.rules.check import Check
from foreblock.ledger.rules.execution import Execution, Task, execute
from foreblock.ledger.rules.forks import EthereumFork, Rules
from foreblock.ledger.rules.header_rules import check_header
from foreblock.ledger.rules.profile import ChainProfile
from foreblock.ledger.rules.uncles import check_uncles
from foreblock.ledger.rules.working_state import Scratch
from foreblock.ledger.storage import rows
from foreblock.ledger.storage.chain_head import read_chain_head


@dataclass(frozen=True, slots=True)
class Added:
    """What a block brought."""

    transactions: int
    gas: int


class Chain:
    """The end of a store's chain: what is stored, and the batch that goes beyond it."""

    def __init__(self, store: Store, profile: ChainProfile) -> None:
        self.waiting = 0  # blocks in the batch
        self._store = store
        self._profile = profile
        with store.view() as view:
            self._tip = read_chain_head(view, profile)
        self._begin_batch()

    @property
    def number(self) -> int:
        """The last block, stored or waiting."""
        return self._tip.header.number

    def stored_hash(self, number: int) -> bytes | None:
        """The hash of a block that was stored when the batch was begun."""
        sealed = self._view.sealed(number)
        return None if sealed is None else sealed[0]

    def add(self, block: Block) -> Added:
        """Verify a block and put it into the batch; raises `BadBlock`."""
        task = self._verify_before_execution(block)
        self._scratch.number = self._batch.next
        execution = execute(task, self._scratch)
        check_execution(task, execution, self._scratch)
        self._append(task, execution)
        return Added(len(task.transactions), execution.gas_used)

    def commit(self) -> None:
        """Store the blocks that wait, all or none, and begin the next batch."""
        if not self.waiting:
            return
        self._batch.settle()
        self._store.commit(self._batch)
        self.waiting = 0
        self._view.close()
        self._begin_batch()

    def close(self) -> None:
        """Let go of the store; what waits in the batch is lost."""
        self._view.close()

    def _begin_batch(self) -> None:
        self._batch = self._store.batch()
        self._view = self._store.view()
        overlay = self._view.state(self.number).overlay()
        self._scratch = Scratch(overlay, self._store.trie(), number=0)

    def _verify_before_execution(self, block: Block) -> Task:
        tip, profile = self._tip, self._profile
        rules = tip.rules_of_next(block.header.timestamp, profile)
        check_header(block.header, tip.header, rules, tip.rules, profile)
        check_body(block, rules)
        check_uncles(block.header.number, block.uncles, tip.ancestors, profile)
        transactions = _recover_senders(block, rules)
        task = Task(block, transactions, rules, tip.rules, profile)
        check_blob_gas(task)
        return task

    def _append(self, task: Task, execution: Execution) -> None:
        """Put the verified block into the batch, and let the next one see it."""
        block, number = task.block, task.block.header.number
        changes, nodes = self._scratch.finish()
        index = rows.index_entries(block, task.transactions)
        self._batch.append(number, block.hash, changes, nodes, index)
        self._tip = self._tip.after(block, task.rules)
        for key, value in rows.block_rows(block, self._tip.total_difficulty, execution.receipts):
            self._batch.put(key, value)
        self._scratch.overlay.set_block_hash(number, block.hash)
        self.waiting += 1


def _recover_senders(block: Block, rules: Rules) -> list[Transaction]:
    homestead = rules.ethereum >= EthereumFork.HOMESTEAD
    try:
        return decode_transactions(block.transactions, homestead=homestead)
    except Undecodable as broken:
        Check(block.header.number).fail("transactions", "signed ones", str(broken))
