"""Rewrite a development chain: blocks built in memory, snapshots, and the return to one.

A run builds blocks one on the other in memory and stores them in one commit. It continues with the
block in progress, or replaces sealed blocks: then the same commit abandons everything above the
block on which it begins. It grows index by index and block by block. Its last block is the pending
one; those below are sealed when the next one begins. The caller decides the contents of a block
and when it ends.

A long run is folded in its own commit: every block that is not makes reads slower, and a thousand
of them would make the next ones slow to build. After a short one the pending block continues with
the trie that has the nodes of the last in memory: reading them again takes longer than the rest of
its root. The caller begins a block on a new view, and with a new trie, from time to time.

A return makes a sealed block and a partial above it the end of the chain again. One commit
abandons everything above, and makes the partial pending, as it was: nothing is executed. Only its
job id differs, so that followers treat it as a restart. The partial and the block below it must be
kept (`LedgerWriter.hold`).

Snapshots are stored in rows, so they outlive the process; memory holds their ids. Rows are written
and deleted with the next commit. The store keeps what the oldest one needs.
"""

from typing import Final

from foreblock._engine import View
from foreblock.clock import Clock
from foreblock.ledger.building.block_in_progress import BlockInProgress
from foreblock.ledger.building.closed_index import base_of, diff_of
from foreblock.ledger.building.commit_builder import CommitBuilder
from foreblock.ledger.building.ledger_writer import LedgerWriter
from foreblock.ledger.building.parent_state import ParentState, last_index
from foreblock.ledger.storage import partial_rows
from foreblock.ledger.storage.chain_head import read_header, read_row
from foreblock.ledger.storage.dev_rows import (
    ChainSnapshot,
    Held,
    decode_snapshot,
    encode_held,
    encode_snapshot,
    held_by_snapshots,
    held_key,
    read_edits,
    read_snapshot,
    snapshot_key,
)
from foreblock.ledger.storage.partial_rows import PartialRow, decode_partial_row
from foreblock.ledger.storage.partials import EmptyTail
from foreblock.ledger.storage.rows import decode_items
from foreblock.types import Base, Flashblock, FlashblockId, Header

ABANDONED: Final = "the chain was rewound"
LONG: Final = 16  # sealed blocks, from which on a run is folded with its commit
FEW_NODES: Final = 512  # of the tries of a block, which may stay in memory


class BlockRun:
    """The blocks of a run so far. After an exception it must be discarded, and closed."""

    def __init__(self, writer: LedgerWriter, clock: Clock, block: BlockInProgress) -> None:
        """A run that continues with the block in progress."""
        self.builder: Final = CommitBuilder(writer.store)
        self._writer: Final = writer
        self._clock: Final = clock
        self._abandoned: list[BlockInProgress] = []
        self._flashblocks: Final[list[Flashblock]] = []
        self._parent_state: ParentState | None = None  # that the next block stands on
        self._keeps_nodes = True  # of the tries that its blocks continue with
        self._sealed = 0
        self._trie_continues = False  # with the pending block
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
        run.builder.give_up(abandoned.number, abandoned.partials, "its parent was abandoned")
        run.builder.rewind(fork, built_here=True, findable=findable)
        run._abandoned.append(abandoned)
        run._parent_state = writer.on_sealed(fork)
        run._keeps_nodes = False
        run.latest = run._parent_state.parent
        return run

    def begin(self, base: Base, payload_id: bytes) -> BlockInProgress:
        """The next block, on `latest`. Raises `BadBlock` for a base that cannot follow it."""
        parent_state, self._parent_state = self._parent_state, None
        if parent_state is None:
            parent_state = self.block.as_parent(self.latest, self.latest.hash)
        self.block = self._writer.begin_on(parent_state, base, payload_id)
        return self.block

    def begin_again(self, base: Base, payload_id: bytes, why: str) -> BlockInProgress:
        """Abandon the block in progress, on which the run has no block, for another."""
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
        self._trie_continues = nodes is not None and len(nodes) <= FEW_NODES
        self.builder.seal(block.partials, self.latest, self._writer.total_difficulty, nodes)
        if block.empty_indexes:
            self.builder.store_empty_tail(block.number, block.index - 1, block.partials[-1])
        return self.latest

    def close(self) -> None:
        """Discard the run; the block that it continued with, or replaced, stays open."""
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
            self.builder.batch.fold_all()
        now_ns = self._clock.monotonic_ns()
        writer.commit(self.builder, self.latest, pending.partials[-1], now_ns)
        if not self._trie_continues or self._sealed >= LONG:
            pending.roots.restart(writer.store.trie)
        for block in self._abandoned:
            block.close()
        writer.current = pending
        return self._flashblocks


class SnapshotPosition:
    """A place of the chain, read from the store."""

    def __init__(self, view: View, partial: int, index: int) -> None:
        """`index` is that of the snapshot, empty ones after the partial included."""
        found = view.partial(partial)
        assert found is not None, "it is kept"
        self._index: Final = index
        self._block: Final = found.block
        self._rows: Final = _rows_of(view, found.block, partial)
        self._transactions: Final = [
            decode_items(read_row(view, partial_rows.transactions_key(found.block, each), each))
            for each in self.partials
        ]
        self._edits: Final = [read_edits(view, found.block, (each,)) for each in self.partials]
        self._previous: Final = last_index(view, found.block - 1)
        self.latest, _ = read_header(view, found.block - 1)

    @property
    def partials(self) -> tuple[int, ...]:
        """The partials of the block in progress, from index 0 on."""
        return tuple(self._rows)

    @property
    def base(self) -> Base:
        """The payload attributes of the block in progress."""
        return base_of(self._last.header)

    @property
    def _last(self) -> PartialRow:
        return self._rows[self.partials[-1]]

    def empty_tail(self, received_at_ns: int) -> EmptyTail | None:
        """The last empty index after the last partial, if there is one."""
        if self._index == self._last.index:
            return None
        return EmptyTail(self.partials[-1], self._index, received_at_ns)

    def flashblocks(self, payload_id: bytes) -> list[Flashblock]:
        """The block in progress as another job announces it, empty indexes included."""
        found = zip(self._rows.values(), self._transactions, self._edits, strict=True)
        known = {row.index: (row.header, tuple(raws), tuple(edits)) for row, raws, edits in found}
        flashblocks, header, previous = [], self._last.header, self._previous
        for index in range(self._index + 1):
            header, transactions, edits = known.get(index, (header, (), ()))
            flashblocks.append(
                Flashblock(
                    payload_id=payload_id,
                    index=index,
                    base=self.base if index == 0 else None,
                    diff=diff_of(header, transactions),
                    block_number=self._block,
                    previous=previous,
                    edits=edits,
                )
            )
            previous = FlashblockId(self._block, index)
        return flashblocks


def take_back(
    writer: LedgerWriter,
    abandoned: BlockInProgress,
    place: SnapshotPosition,
    payload_id: bytes,
    received_at_ns: int,
) -> BlockInProgress:
    """Make a former place the end of the chain, in one commit; returns its block in progress.

    `abandoned` is pending until then.
    """
    partials = place.partials
    with CommitBuilder(writer.store) as builder:
        builder.give_up(abandoned.number, abandoned.partials, ABANDONED)
        builder.rewind(place.latest.number, built_here=True, findable=False)
        builder.revive_as(partials, payload_id)
        builder.batch.pending(partials[-1])
        writer.take_back(builder, place.latest, place.empty_tail(received_at_ns))
    abandoned.close()
    block = writer.resume(partials[-1])
    writer.current = block
    return block


def _rows_of(view: View, block: int, last: int) -> dict[int, PartialRow]:
    """The rows of the partials of a block up to this one, by their numbers."""
    ends = decode_partial_row(read_row(view, partial_rows.partial_key(block, last), block))
    return {
        each: decode_partial_row(read_row(view, partial_rows.partial_key(block, each), block))
        for each in (*ends.before, last)
    }


class Snapshots:
    """The snapshots of one chain."""

    def __init__(self, writer: LedgerWriter) -> None:
        self._writer: Final = writer
        with writer.store.view() as view:
            self._held: Final = held_by_snapshots(view)  # by id
        self._hold()

    def __len__(self) -> int:
        return len(self._held)

    def add(self, number: int, snapshot: ChainSnapshot) -> None:
        """Keep a snapshot under this id, of the chain as it is."""
        held = Held(self._writer.latest.number, snapshot.partial)
        self._held[number] = held
        self._writer.put_extra_row(held_key(number), encode_held(held))
        self._writer.put_extra_row(snapshot_key(number), encode_snapshot(snapshot))
        self._hold()

    def get(self, number: int) -> ChainSnapshot | None:
        """The snapshot with this id; None if there is none."""
        if number not in self._held:
            return None
        row = self._writer.extra_row(snapshot_key(number))
        if row is not None:
            return decode_snapshot(row)
        with self._writer.store.view() as view:
            return read_snapshot(view, number)

    def block_of(self, number: int) -> int | None:
        """The latest block at a snapshot; None if there is none."""
        held = self._held.get(number)
        return None if held is None else held.latest

    def forget_from(self, number: int) -> None:
        """Forget the snapshot with this id and all later ones."""
        self._forget([each for each in self._held if each >= number])

    def forget_above(self, block: int) -> None:
        """Forget those on blocks above this one, which are abandoned."""
        self._forget([each for each, held in self._held.items() if held.latest > block])

    def _forget(self, numbers: list[int]) -> None:
        for number in numbers:
            del self._held[number]
            self._writer.delete_with_next(held_key(number))
            self._writer.delete_with_next(snapshot_key(number))
        self._hold()

    def _hold(self) -> None:
        """Let the store hold the oldest; neither blocks nor partials fall from one to the next.

        Abandoned blocks have no snapshots: so each was taken at or above the ones
        before it that are left.
        """
        held = self._held.values()
        if held:
            self._writer.hold(next(iter(held)).latest, next(reversed(held)).partial)
        else:
            self._writer.hold(None)
