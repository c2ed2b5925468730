"""Transactions that workers have submitted and the source has not processed yet, in order.

The queue is bounded by number and by bytes: beyond that a transaction is refused at once.
One past its deadline is refused as well, since its client has had that reply by then. The
worker of any other gets `Started` before the transaction is processed, so that without it
the transaction certainly was not; if `Started` cannot be sent at once, the transaction
is refused instead.
"""

from collections import deque
from typing import Final

from foreblock.bus.messages import BusRequest, Respond, Started
from foreblock.errors import SequencerBusy

MOST: Final = 4_096
MOST_BYTES: Final = 16 << 20
PORTION: Final = 256  # transactions that are handed over at once


class SubmissionQueue:
    """The transactions that wait to be processed."""

    def __init__(self, most: int = MOST, most_bytes: int = MOST_BYTES) -> None:
        self._most: Final = most
        self._most_bytes: Final = most_bytes
        self._waiting: Final[deque[BusRequest]] = deque()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, request: BusRequest, now_ns: int) -> None:
        """Queue a transaction, or refuse it if the queue is full."""
        while self._waiting and self._waiting[0].is_late(now_ns):
            self._pop().refuse()
        size = len(request.submission.raw)
        if len(self._waiting) >= self._most or self._bytes + size > self._most_bytes:
            request.fail(SequencerBusy())
            return
        self._waiting.append(request)
        self._bytes += size

    def start(self, now_ns: int) -> list[BusRequest]:
        """The next portion; `Started` has been sent to their workers."""
        portion = [self._pop() for _ in range(min(PORTION, len(self._waiting)))]
        by_worker: dict[Respond, list[BusRequest]] = {}
        for each in portion:
            if each.is_late(now_ns):
                each.refuse()
            else:
                by_worker.setdefault(each.respond, []).append(each)
        started = set[int]()
        for respond, theirs in by_worker.items():
            if respond(Started(tuple(each.call.id for each in theirs))) is False:
                for each in theirs:
                    each.refuse()
            else:
                started.update(map(id, theirs))
        return [each for each in portion if id(each) in started]

    def refuse_all(self) -> None:
        while self._waiting:
            self._pop().refuse()

    def _pop(self) -> BusRequest:
        request = self._waiting.popleft()
        self._bytes -= len(request.submission.raw)
        return request
