"""The snapshots of a development chain, as its writer keeps them.

Rows have them, so they outlive the process; what is in memory is which there are. Rows come
and go with the next commit. For the oldest one the store holds what it takes to go back.
"""

from typing import Final

from foreblock.ledger.building.ledger_writer import LedgerWriter
from foreblock.ledger.storage.snapshot_rows import (
    ChainSnapshot,
    encode_snapshot,
    latest_of_snapshots,
    read_snapshot,
    snapshot_key,
)


class Snapshots:
    """The snapshots of one chain."""

    def __init__(self, writer: LedgerWriter) -> None:
        self._writer: Final = writer
        with writer.store.view() as view:
            self._latest: Final = latest_of_snapshots(view)  # by id
        self._hold()

    def __len__(self) -> int:
        return len(self._latest)

    def add(self, number: int, snapshot: ChainSnapshot) -> None:
        """Keep a snapshot under this id, of the chain as it is."""
        latest = self._writer.latest.number
        self._latest[number] = latest
        self._writer.put_with_next(snapshot_key(number), encode_snapshot(latest, snapshot))
        self._hold()

    def get(self, number: int) -> ChainSnapshot | None:
        """The snapshot with this id; none where there is none."""
        if number not in self._latest:
            return None
        with self._writer.store.view() as view:
            return read_snapshot(view, number)

    def forget_from(self, number: int) -> None:
        """Forget the snapshot with this id and all later ones."""
        self._forget([each for each in self._latest if each >= number])

    def forget_above(self, block: int) -> None:
        """Forget those on blocks above this one, which are given up."""
        self._forget([each for each, latest in self._latest.items() if latest > block])

    def _forget(self, numbers: list[int]) -> None:
        for number in numbers:
            del self._latest[number]
            self._writer.delete_with_next(snapshot_key(number))
        self._hold()

    def _hold(self) -> None:
        self._writer.hold(min(self._latest.values(), default=None))
