"""A chain from an anchor on, whose state is learned as its blocks want it.

A block that misses state is not added, and can be tried again when what it missed is learned.
Its state root is not computed: a block counts by its hash, by which the next one or somebody
who is believed names it, and by its receipts, bloom and gas, which are computed here.
"""

from foreblock._engine import Block, Header, Learned, Store
from foreblock.ledger.building.commit_builder import CommitBuilder
from foreblock.ledger.rules.verification import check_before_execution, verify
from foreblock.ledger.rules.working_state import WorkingState
from foreblock.ledger.storage.anchored_store import FIRST_EPOCH, Anchor, begin_at, profile_in
from foreblock.ledger.storage.chain_head import read_chain_head


class LearnedChain:
    """The chain in an empty store, begun at an anchor; what is put into `learned` it knows."""

    def __init__(self, store: Store, anchor: Header, config: bytes) -> None:
        begin_at(store, Anchor(anchor), config)
        self.learned = Learned(FIRST_EPOCH)
        store.lay(self.learned)
        self._store = store
        self._profile = profile_in(config)

    def add(self, block: Block) -> None:
        """Execute a block and store it. Raises `StateMissing`, `BadBlock`."""
        profile = self._profile
        with self._store.view() as view, CommitBuilder(self._store) as commit:
            head = read_chain_head(view, profile)
            rules = head.rules_of_next(block.header.timestamp, profile)
            task = check_before_execution(
                block, rules, head.header, head.rules, profile, head.ancestors
            )
            state = WorkingState(view.state(head.header.number).overlay(), None)
            verified = verify(task, state, commit.next)
            commit.batch.learn(self.learned)
            commit.append(verified, head.after(block, rules).total_difficulty)
            commit.commit()
