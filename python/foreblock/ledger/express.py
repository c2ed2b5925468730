"""What the engine is told of a snapshot, so that it answers common requests by itself.

Every answer of the engine's is one that the long way, from envelope to method, would give
as well; that one decides what a snapshot is and how its blocks read, and tells it here. A
snapshot that the engine was not told of, or of which time has run out, it does not answer
from, and the long way comes by here with the next.
"""

from typing import Final

from foreblock._engine import Express
from foreblock.ledger.snapshot import Snapshot

# Longer texts are handed to the transport in parts, since copying them costs more than that.
LONGEST_TEXT: Final = 32 * 1024  # bytes

# More requests in one body wait for others to have their turn between them.
MOST_ITEMS: Final = 256

ANSWERED_TAGS: Final = ("latest", "pending")


def tell_snapshot(express: Express, snapshot: Snapshot, now_ns: int) -> None:
    """From now on this is the last snapshot, unless there is another commit."""
    pending = snapshot.pending
    if pending is None:
        express.prepare(snapshot.heads, snapshot.header_line, snapshot.latest.number)
        return
    express.prepare(
        snapshot.heads,
        snapshot.header_line,
        snapshot.latest.number,
        pending.partial,
        max(0, snapshot.deadline_ns - now_ns),
    )
