"""How a commit is made: to the store alone, or through the log of its network.

A batch is the whole of a commit. `LedgerWriter` hands each of its own to a `Commits`, and so
does `begin_chain` the first one. Where there is no log, that is `TO_STORE`; where there is one,
the batch is encoded, and the store commits it if the log has taken it:

    batch.encode() → store.commit(batch, log, ask)      the writer
    Batch.decode(…) → lower_indices → store.commit      a follower

Rows that each store of a log has for itself are added here, since no log carries them: how far
its indices of logs and of addresses have come.
"""

from typing import Final, Protocol

from foreblock._engine import Batch, Heads, LogRow, Store
from foreblock.ledger.storage.section_index import ADDRESSES, LOGS

__all__ = ["TO_STORE", "Batch", "Commits", "Heads", "LogRow", "Store", "lower_indices"]


class Commits(Protocol):
    """Where batches of one chain go."""

    def commit(self, store: Store, batch: Batch) -> Heads:
        """Make a batch durable in the store; returns the new heads.

        Raises as `Store.commit`; nothing of the batch is stored then.
        """
        ...


class _ToStore:
    """No log."""

    def commit(self, store: Store, batch: Batch) -> Heads:
        return store.commit(batch)


TO_STORE: Final[Commits] = _ToStore()


def lower_indices(store: Store, batch: Batch) -> None:
    """Let no index of this store reach above what a batch rewinds to, from its commit on.

    They are seen as of this moment: they may have grown since the rewind was added.
    """
    block = batch.rewinds_to
    if block is None:
        return
    with store.view() as view:
        for index in (LOGS, ADDRESSES):
            lowered = index.rewound(view, block)
            if lowered is not None:
                batch.put_local(*lowered)
