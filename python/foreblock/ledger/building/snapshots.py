"""The snapshots of a development chain, as its writer keeps them.

Rows have them, so they outlive the process; what is in memory is which there are. Rows come
and go with the next commit. For the oldest one the store holds what it takes to go back.
"""

from typing import Final

from foreblock.ledger.building.ledger_writer import LedgerWriter
from foreblock.ledger.storage.dev_rows import (
    ChainSnapshot,
    Held,
    encode_held,
    encode_snapshot,
    held_by_snapshots,
    held_key,
    read_snapshot,
    snapshot_key,
)


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
        self._writer.put_with_next(held_key(number), encode_held(held))
        self._writer.put_with_next(snapshot_key(number), encode_snapshot(snapshot))
        self._hold()

    def get(self, number: int) -> ChainSnapshot | None:
        """The snapshot with this id; none where there is none."""
        if number not in self._held:
            return None
        with self._writer.store.view() as view:
            return read_snapshot(view, number)

    def block_of(self, number: int) -> int | None:
        """The latest block at a snapshot; none where there is none."""
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
