"""The store's own work, done in turns between the commits of its writer.

What is due is `maintenance`'s decision; here is what it is decided from, and the call.
"""

from typing import Final

from foreblock._engine import Store
from foreblock.ledger.storage.maintenance import PRUNE_BLOCKS, next_turn


class Upkeep:
    """What was done of it, and what has come since."""

    def __init__(self, store: Store, latest: int) -> None:
        self._store: Final = store
        self._transactions = 0  # since all was folded
        # A life before may have left something.
        self._is_begun = True
        self._pruned_at = latest - PRUNE_BLOCKS

    def committed(self, transactions: int) -> None:
        """So many were committed."""
        self._transactions += transactions

    def turn(self, latest: int) -> bool:
        """A turn, if it is worth one; whether something was done."""
        with self._store.view() as view:
            behind = latest - view.heads.folded
        unpruned = latest - self._pruned_at
        turn = next_turn(behind, unpruned, self._transactions, begun=self._is_begun)
        if turn is None:
            return False
        worked = self._store.maintain(turn.entries, turn.seconds, prune=turn.prune)
        self._is_begun = worked > 0
        if not worked:
            self._transactions = 0
            if turn.prune:
                self._pruned_at = latest
        return worked > 0
