"""A branch that replaces sealed blocks: executed in memory, stored in one commit.

It begins on a sealed block and grows index by index and block by block; the same commit
gives up everything above that block first. Its last block is the pending one; those below
are sealed as they are begun upon.
"""

from typing import Final

from foreblock.clock import Clock
from foreblock.ledger.building.block_in_progress import BlockInProgress
from foreblock.ledger.building.commit_builder import CommitBuilder
from foreblock.ledger.building.ledger_writer import LedgerWriter
from foreblock.ledger.building.parent_state import on_sealed
from foreblock.types import Base, Flashblock, Header


class SideBranch:
    """The blocks of a branch so far."""

    def __init__(
        self, writer: LedgerWriter, clock: Clock, fork: int, given_up: BlockInProgress
    ) -> None:
        """A branch on the sealed block `fork`; `given_up` is pending until the commit."""
        self._writer: Final = writer
        self._clock: Final = clock
        self._given_up: Final = given_up
        self._builder: Final = CommitBuilder(writer.store)
        self._builder.drop(given_up.partials, "it stood on what was given up")
        self._builder.rewind(fork)
        self._parent_state: Final = on_sealed(writer.store, writer.profile, fork)
        self._flashblocks: Final[list[Flashblock]] = []
        self._block: BlockInProgress | None = None
        self.latest: Header = self._parent_state.parent

    @property
    def block(self) -> BlockInProgress:
        """The last block."""
        assert self._block is not None, "a branch has a block"
        return self._block

    def begin(self, base: Base, payload_id: bytes) -> BlockInProgress:
        """The next block, on `latest`. Raises `BadBlock` for a base that cannot follow it."""
        parent_state = self._parent_state
        if self._block is not None:
            parent_state = self._block.as_parent(self.latest, self.latest.hash)
        self._block = BlockInProgress.begin(parent_state, base, payload_id)
        return self._block

    def close_index(self) -> None:
        """Close the open index of the last block."""
        block = self.block
        closed = block.close_index(self._builder.next)
        partial = self._builder.extend(closed, block.partials, self._clock.wall_ns())
        block.committed(partial, closed.header)
        self._flashblocks.append(closed.flashblock())

    def seal(self) -> None:
        """End the last block with its last index."""
        roots = self.block.roots
        roots.catch_up()
        assert roots.last is not None, "a block has an index before it is sealed"
        self.latest = roots.last.header
        self._builder.seals_as(roots.take_new())
        total_difficulty = self._writer.total_difficulty
        self._builder.seal(self.block.partials, self.latest, total_difficulty, None)

    def commit(self) -> list[Flashblock]:
        """Replace all above the fork by the branch, in one commit; gives its flashblocks."""
        pending, writer = self.block, self._writer
        self._builder.seals_as(pending.roots.take_new())
        now_ns = self._clock.monotonic_ns()
        writer.commit(self._builder, self.latest, pending.partials[-1], now_ns)
        pending.roots.restart(writer.store.trie)
        self._given_up.close()
        writer.current = pending
        return self._flashblocks
