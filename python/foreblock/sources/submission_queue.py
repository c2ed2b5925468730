"""Transactions that workers have submitted and the source has not processed yet, in order.

The queue is bounded by number and by bytes: beyond that a transaction is refused at once.
One past its deadline is refused as well, since its client has had that answer by then. The
worker of any other gets `TakenUp` before the transaction is processed, so that without it
the transaction certainly was not; where `TakenUp` cannot be sent at once, the transaction
is refused instead.
"""

from collections import deque
from typing import Final, NamedTuple

from foreblock.bus.exchange import Respond
from foreblock.bus.frames import Busy, Rejected, Submit, TakenUp
from foreblock.errors import SequencerUnavailable

MOST: Final = 4_096
MOST_BYTES: Final = 16 << 20
PORTION: Final = 256  # transactions that are handed over at once


class Submitted(NamedTuple):
    """A transaction, and the way back to its worker."""

    message: Submit
    respond: Respond

    def is_late(self, now_ns: int) -> bool:
        """Whether its client has been refused by now."""
        return now_ns >= self.message.deadline_ns

    def refuse(self) -> None:
        """Answer that it is not taken."""
        self.respond(Rejected(self.message.id, str(SequencerUnavailable())))


class SubmissionQueue:
    """The transactions that wait to be processed."""

    def __init__(self, most: int = MOST, most_bytes: int = MOST_BYTES) -> None:
        self._most: Final = most
        self._most_bytes: Final = most_bytes
        self._waiting: Final[deque[Submitted]] = deque()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, each: Submitted, now_ns: int) -> None:
        """Queue a transaction, or refuse it where there is no room."""
        while self._waiting and self._waiting[0].is_late(now_ns):
            self._pop().refuse()
        size = len(each.message.raw)
        if len(self._waiting) >= self._most or self._bytes + size > self._most_bytes:
            each.respond(Busy(each.message.id))
            return
        self._waiting.append(each)
        self._bytes += size

    def take_up(self, now_ns: int) -> list[Submitted]:
        """The next portion; `TakenUp` has been sent to their workers."""
        portion = [self._pop() for _ in range(min(PORTION, len(self._waiting)))]
        by_worker: dict[Respond, list[Submitted]] = {}
        for each in portion:
            if each.is_late(now_ns):
                each.refuse()
            else:
                by_worker.setdefault(each.respond, []).append(each)
        told = set[int]()
        for respond, theirs in by_worker.items():
            if respond(TakenUp(tuple(each.message.id for each in theirs))) is False:
                for each in theirs:
                    each.refuse()
            else:
                told.update(map(id, theirs))
        return [each for each in portion if id(each) in told]

    def refuse_all(self) -> None:
        """Refuse all that wait."""
        while self._waiting:
            self._pop().refuse()

    def _pop(self) -> Submitted:
        each = self._waiting.popleft()
        self._bytes -= len(each.message.raw)
        return each
