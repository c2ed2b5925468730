"""Snapshots of a development chain, and the return to one: a sealed block, and a partial above it.

One commit abandons everything above the snapshot, and makes the partial pending again, as it was:
nothing is executed. Only its job id differs, so that followers treat it as a restart. The partial
and the block below it must be kept (`LedgerWriter.hold`).

Snapshots are stored in rows, so they outlive the process; memory holds their ids. Rows are written
and deleted with the next commit. The store keeps what the oldest one needs.
"""

from typing import Final

from foreblock._engine import View
from foreblock.ledger.building.block_in_progress import BlockInProgress
from foreblock.ledger.building.closed_index import base_of, diff_of
from foreblock.ledger.building.commit_builder import CommitBuilder
from foreblock.ledger.building.ledger_writer import LedgerWriter
from foreblock.ledger.building.parent_state import last_index
from foreblock.ledger.building.resume_block import resume
from foreblock.ledger.storage import partial_rows
from foreblock.ledger.storage.chain_head import read_header, read_row
from foreblock.ledger.storage.dev_rows import (
    ChainSnapshot,
    Held,
    encode_held,
    encode_snapshot,
    held_by_snapshots,
    held_key,
    read_cheats,
    read_snapshot,
    snapshot_key,
)
from foreblock.ledger.storage.freshness import EmptyTail
from foreblock.ledger.storage.partial_rows import PartialRow, decode_partial_row
from foreblock.ledger.storage.rows import decode_items
from foreblock.types import Base, Flashblock, FlashblockId

ABANDONED: Final = "the chain was taken back"


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
        self._cheats: Final = [read_cheats(view, found.block, (each,)) for each in self.partials]
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
        found = zip(self._rows.values(), self._transactions, self._cheats, strict=True)
        said = {row.index: (row.header, tuple(raws), tuple(cheats)) for row, raws, cheats in found}
        flashblocks, header, previous = [], self._last.header, self._previous
        for index in range(self._index + 1):
            header, transactions, cheats = said.get(index, (header, (), ()))
            flashblocks.append(
                Flashblock(
                    payload_id=payload_id,
                    index=index,
                    base=self.base if index == 0 else None,
                    diff=diff_of(header, transactions),
                    block_number=self._block,
                    previous=previous,
                    cheats=cheats,
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
    block = resume(writer.store, writer.profile, partials[-1])
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
        """Forget those on blocks above this one, which are given up."""
        self._forget([each for each, held in self._held.items() if held.latest > block])

    def _forget(self, numbers: list[int]) -> None:
        for number in numbers:
            del self._held[number]
            self._writer.delete_with_next(held_key(number))
            self._writer.delete_with_next(snapshot_key(number))
        self._hold()

    def _hold(self) -> None:
        """Let the store hold the oldest; neither blocks nor partials fall from one to the next.

        What a chain has given up, no snapshot is of: so each was taken at or above the ones
        before it that are left.
        """
        held = self._held.values()
        if held:
            self._writer.hold(next(iter(held)).latest, next(reversed(held)).partial)
        else:
            self._writer.hold(None)
