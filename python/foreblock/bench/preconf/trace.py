"""What the sequencer says about each flashblock in its log, as values."""

import json
from collections.abc import Iterable, Iterator

from msgspec import Struct, convert

EVENT = "flashblock"


class Closed(Struct, frozen=True):
    """A flashblock: when it was due, begun and committed, in monotonic nanoseconds."""

    block: int
    index: int
    transactions: int
    waiting: int  # in the pool, afterwards
    due_ns: int
    begun_ns: int
    committed_ns: int
    commit_ns: int  # how long the commit alone took

    @property
    def place(self) -> tuple[int, int]:
        """Where it stands."""
        return self.block, self.index


def closed(log: Iterable[str]) -> Iterator[Closed]:
    """The flashblocks that a log in JSON tells of."""
    for line in log:
        if line.startswith("{"):
            event = json.loads(line)
            if event.get("event") == EVENT:
                yield convert(event, Closed)
