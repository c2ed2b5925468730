"""Blocks built one on the other in memory, stored in one commit.

A run goes on with the block in progress, or replaces sealed blocks: then the same commit gives
up everything above the block on which it begins. It grows index by index and block by block.
Its last block is the pending one; those below are sealed as they are begun upon.

A long run is folded in its own commit: every block that is not makes reads slower, and a
thousand of them would make the next ones slow to build.

After a short one the pending block goes on with the trie that has the nodes of the last in
memory: reading them again takes longer than the rest of its root. Who builds such blocks begins
one on a new view from time to time, and with a new trie.

Nothing is decided here about what is in a block, or when it ends.
"""

from typing import Final

from foreblock.clock import Clock
from foreblock.ledger.building.block_in_progress import BlockInProgress
from foreblock.ledger.building.commit_builder import CommitBuilder
from foreblock.ledger.building.ledger_writer import LedgerWriter
from foreblock.ledger.building.parent_state import ParentState, on_sealed
from foreblock.types import Base, Flashblock, Header

LONG: Final = 16  # sealed blocks, from which on a run is folded with its commit
FEW_NODES: Final = 512  # of the tries of a block, which may stay in memory


class BlockRun:
    """The blocks of a run so far. After an exception it must be thrown away, and closed."""

    def __init__(self, writer: LedgerWriter, clock: Clock, block: BlockInProgress) -> None:
        """A run that goes on with the block in progress."""
        self.builder: Final = CommitBuilder(writer.store)
        self._writer: Final = writer
        self._clock: Final = clock
        self._abandoned: list[BlockInProgress] = []
        self._flashblocks: Final[list[Flashblock]] = []
        self._parent_state: ParentState | None = None  # that the next block stands on
        self._keeps_nodes = True  # of the tries that its blocks go on with
        self._sealed = 0
        self._trie_goes_on = False  # with the pending block
        self.block = block
        self.latest: Header = writer.latest

    @classmethod
    def replacing(
        cls,
        writer: LedgerWriter,
        clock: Clock,
        fork: int,
        abandoned: BlockInProgress,
        *,
        findable: bool = True,
    ) -> "BlockRun":
        """A run on the sealed block `fork`; `abandoned` is pending until the commit.

        Logs of the blocks above are found by hash afterwards, if they are to be `findable`.
        """
        run = cls(writer, clock, abandoned)
        writer.forget_prunable()
        run.builder.give_up(abandoned.number, abandoned.partials, "it stood on what was given up")
        run.builder.rewind(fork, built_here=True, findable=findable)
        run._abandoned.append(abandoned)
        run._parent_state = on_sealed(writer.store, writer.profile, fork)
        run._keeps_nodes = False
        run.latest = run._parent_state.parent
        return run

    def begin(self, base: Base, payload_id: bytes) -> BlockInProgress:
        """The next block, on `latest`. Raises `BadBlock` for a base that cannot follow it."""
        parent_state, self._parent_state = self._parent_state, None
        if parent_state is None:
            parent_state = self.block.as_parent(self.latest, self.latest.hash)
        chosen = self._writer.chooses_bases
        self.block = BlockInProgress.begin(parent_state, base, payload_id, chosen=chosen)
        return self.block

    def begin_anew(self, base: Base, payload_id: bytes, why: str) -> BlockInProgress:
        """Give up the block in progress, which no block of the run stands on, for another."""
        self.builder.give_up(self.block.number, self.block.partials, why)
        self._abandoned.append(self.block)
        self.block = self._writer.begin(base, payload_id)
        return self.block

    def close_index(self) -> None:
        """Close the open index of the last block."""
        block = self.block
        closed = block.close_index(self.builder.next)
        partial = self.builder.extend(closed, block.partials, self._clock.wall_ns())
        block.committed(partial, closed.header)
        self._flashblocks.append(closed.flashblock())

    def seal(self) -> Header:
        """End the last block with its last index; returns its header."""
        block, roots = self.block, self.block.roots
        self._sealed += 1
        self.latest = roots.end()
        self.builder.seals_as(roots.take_new())
        nodes = roots.take_nodes() if self._keeps_nodes else None
        self._trie_goes_on = nodes is not None and len(nodes) <= FEW_NODES
        self.builder.seal(block.partials, self.latest, self._writer.total_difficulty, nodes)
        if block.empty_indexes:
            self.builder.store_empty_tail(block.number, block.index - 1, block.partials[-1])
        return self.latest

    def close(self) -> None:
        """Throw the run away; the block that it went on with, or replaced, stays open."""
        self.builder.close()
        if self._parent_state is not None:
            self._parent_state.view.close()
        elif self.block is not self._writer.current:
            self.block.close()

    def commit(self) -> list[Flashblock]:
        """Make the run the chain, in one commit; returns its flashblocks."""
        pending, writer = self.block, self._writer
        self.builder.seals_as(pending.roots.take_new())
        if self._keeps_nodes:
            writer.follow_at_distance(self.builder, self.latest.number)
        else:
            writer.name_at_distance(self.builder, self.latest.number)
        if self._sealed >= LONG:
            self.builder.batch.settle()
        now_ns = self._clock.monotonic_ns()
        writer.commit(self.builder, self.latest, pending.partials[-1], now_ns)
        if not self._trie_goes_on or self._sealed >= LONG:
            pending.roots.restart(writer.store.trie)
        for block in self._abandoned:
            block.close()
        writer.current = pending
        return self._flashblocks
