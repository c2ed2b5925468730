"""What the engine is told of a snapshot, so that it answers common requests by itself.

Every answer of the engine's is one that the long way, from envelope to method, would give
as well; that one decides what a snapshot is, how its blocks read and which calls are short,
and tells it. From a snapshot that the engine was not told of, or of which time has run out,
it does not answer, and the long way comes by here with the next.
"""

from typing import Final

from msgspec import Struct

from foreblock._engine import FastPath, Store
from foreblock.ledger.reading.snapshot import Snapshot
from foreblock.scheduling.thresholds import THRESHOLDS

ANSWERED_TAGS: Final = ("latest", "pending")


class FastPathBounds(Struct, frozen=True):
    """What the engine may answer by itself; more is left to the long way."""

    batch_items: int
    batch_bytes: int
    call_gas: int  # of every call
    call_us: int
    step_us: int  # what cannot be stopped and takes longer is not begun


def make_fast_path(store: Store, bounds: FastPathBounds) -> FastPath:
    """What answers from the snapshots of a store; it knows none yet."""
    return FastPath(
        store,
        batch_items=min(bounds.batch_items, THRESHOLDS.fast_batch_items),
        batch_bytes=bounds.batch_bytes,
        batch_us=THRESHOLDS.fast_batch_us,
        call_gas=bounds.call_gas,
        call_us=bounds.call_us,
        step_us=bounds.step_us,
    )


def set_snapshot(fast_path: FastPath, snapshot: Snapshot, now_ns: int) -> None:
    """From now on this is the last snapshot, unless there is another commit."""
    pending = snapshot.pending
    if pending is None:
        fast_path.set_snapshot(snapshot.heads, snapshot.header_line, snapshot.latest.number)
        return
    fast_path.set_snapshot(
        snapshot.heads,
        snapshot.header_line,
        snapshot.latest.number,
        pending.partial,
        max(0, snapshot.deadline_ns - now_ns),
    )
