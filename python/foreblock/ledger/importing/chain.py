"""The canonical chain as it grows: blocks are verified, gathered, and stored together.

A block joins the commit when all of it is verified (`rules.verification`), so a commit holds
nothing of a bad block. After a refusal only `commit` and `close` may follow: the working
state has seen parts of the bad block.
"""

from foreblock._engine import Block, Store
from foreblock.ledger.building.commit_builder import CommitBuilder
from foreblock.ledger.rules.profile import ChainProfile
from foreblock.ledger.rules.verification import Verified, check_before_execution, verify
from foreblock.ledger.rules.working_state import WorkingState
from foreblock.ledger.storage.chain_head import read_chain_head


class Chain:
    """The end of a store's chain: its stored blocks, and the commit that goes beyond them."""

    def __init__(self, store: Store, profile: ChainProfile) -> None:
        self.waiting = 0  # blocks in the commit
        self._store = store
        self._profile = profile
        with store.view() as view:
            self._tip = read_chain_head(view, profile)
        self._begin_commit()

    @property
    def number(self) -> int:
        """The last block, stored or waiting."""
        return self._tip.header.number

    def stored_hash(self, number: int) -> bytes | None:
        """The hash of a block that was stored when the commit was begun."""
        sealed = self._view.sealed(number)
        return None if sealed is None else sealed[0]

    def add(self, block: Block) -> Verified:
        """Verify a block and add it to the commit; raises `BadBlock`."""
        tip, profile = self._tip, self._profile
        rules = tip.rules_of_next(block.header.timestamp, profile)
        task = check_before_execution(block, rules, tip.header, tip.rules, profile, tip.ancestors)
        verified = verify(task, self._state, self._commit.next)
        self._tip = tip.after(block, rules)
        self._commit.append(verified, self._tip.total_difficulty)
        self.waiting += 1
        return verified

    def commit(self) -> None:
        """Store the blocks that wait, all or none, and begin the next commit."""
        if not self.waiting:
            return
        self._commit.batch.settle()
        self._commit.commit()
        self.waiting = 0
        self._view.close()
        self._begin_commit()

    def close(self) -> None:
        """Close the view of the store; blocks that wait are lost."""
        self._view.close()

    def _begin_commit(self) -> None:
        self._commit = CommitBuilder(self._store)
        self._view = self._store.view()
        overlay = self._view.state(self.number).overlay()
        self._state = WorkingState(overlay, self._store.trie())
