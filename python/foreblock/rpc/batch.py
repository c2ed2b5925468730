"""The state of a batch: its responses, the requests that are left, and its limits.

A value without a clock or a loop; the dispatcher drives it. The limits and their faults are
geth's: too many items refuse the whole batch; too many bytes or too long a time refuse the
requests that are left, and so does a worker whose budget for answers is used up.

A batch of short responses is joined at its end. From 64 KiB on it becomes a long text, which is
counted while it grows, and whose long pieces are never joined.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from foreblock.errors import TooMuchUnsent
from foreblock.rpc.envelope import (
    BATCH_TOO_LARGE,
    REQUEST_TIMED_OUT,
    RESPONSE_TOO_LARGE,
    Asked,
    Item,
    Malformed,
    failure,
    join,
)
from foreblock.rpc.error_codes import Fault
from foreblock.scheduling.admission import LongText, WorkerBudget
from foreblock.scheduling.reply import Reply, Text
from foreblock.scheduling.steps import discard
from foreblock.scheduling.thresholds import THRESHOLDS


class Limits(Struct, frozen=True):
    """The limits of one body."""

    batch_items: int = 1000
    batch_bytes: int = 25_000_000
    batch_seconds: float = 30.0  # after which no further request of a batch is begun
    slice_seconds: float = THRESHOLDS.slice_seconds  # of a batch before others run


class Waiting(NamedTuple):
    """A request whose result is not there yet."""

    asked: Asked
    result: Awaitable[Text]
    began: float


class Joined(NamedTuple):
    """One of a batch's requests that are awaited together, or what came after them."""

    asked: Item
    result: Text | Awaitable[Text]
    began: float


class Batch:
    """The requests of one body, answered from the first to the last."""

    def __init__(
        self,
        items: list[Item],
        limits: Limits,
        now: float,
        budget: WorkerBudget,
        fault: Callable[[Exception], Fault],
        refused: Callable[[Item, Fault], None] = lambda item, fault: None,  # noqa: ARG005, counts
    ) -> None:
        """`refused` is called for each item that is not begun."""
        self.slice: Final = limits.slice_seconds
        self.until: Final = now + limits.batch_seconds
        self.rest: Final[Iterator[Item]] = iter(items)  # taking an item is a promise to answer it
        self.done = False  # whether nothing is left to take
        self.answers: list[bytes] = []  # the last ones, which are not in the text yet
        self.bytes_left = limits.batch_bytes
        self.gather_at = self._next_gathering()  # bytes left, below which answers are gathered
        self._text: LongText | None = None
        self._budget: Final = budget
        self._fault: Final = fault
        self._refused: Final = refused

    def add(self, item: Item, answer: Text) -> None:
        """Add the response to an item that was taken; an empty one is no response."""
        if isinstance(answer, list):
            self._take_long(item, answer)
        elif answer:
            self.answers.append(answer)
            self.bytes_left -= len(answer)

    def add_awaited(self, waiting: Sequence[Joined], answers: Sequence[Text]) -> None:
        """Add the responses to requests that were awaited.

        A loop in the caller, a coroutine, would keep its last request with the result while the
        next one is awaited.
        """
        for each, answer in zip(waiting, answers, strict=True):
            self.add(each.asked, answer)
        self.gather()

    def gather(self) -> None:
        """Move the last answers into the text; refuse the rest if the budget is used up."""
        if self.bytes_left < self.gather_at and not self.done:
            joined = b",".join(self.answers)
            if self._budget.has_for((joined,)):
                self.answers.clear()
                self._add([joined])
                self.gather_at = self._next_gathering()
            else:
                self.refuse(self._no_room())

    def refuse_beyond_limits(self, now: float) -> None:
        """Answer all the rest with a fault once a limit is passed."""
        if self.bytes_left < 0:
            self.refuse(RESPONSE_TOO_LARGE)
        elif now >= self.until:
            self.refuse(REQUEST_TIMED_OUT)

    def refuse(self, fault: Fault) -> None:
        """Answer all the rest with this fault."""
        for item in self.rest:
            self._refused(item, fault)
            self.add(item, failure(item, fault))
        self.done = True

    def refuse_to_wait(self, waiting: Sequence[Joined], fault: Fault) -> None:
        """Answer all the rest with this fault, the requests that wait as well."""
        for asked, result, _ in waiting:
            if isinstance(result, Awaitable):
                discard(result)
                self._refused(asked, fault)
            self.add(asked, failure(asked, fault))
        self.refuse(fault)

    def reply(self, headers: bytes = b"") -> Reply:
        """The reply to all of it, when it is done."""
        if self._text is None:
            return Reply(join(self.answers), headers)
        if self.answers:
            self._add([b",".join(self.answers)])
        self._text.add((b"]",))
        return Reply(b"", headers, self._text)

    def _take_long(self, item: Item, answer: list[bytes]) -> None:
        if not self._budget.has_for(answer):
            fault = self._no_room()
            self.add(item, failure(item, fault))
            self.refuse(fault)
            return
        if self.answers:
            self._add([b",".join(self.answers)])
            self.answers.clear()
        self._add(answer)
        self.bytes_left -= sum(map(len, answer))
        self.gather_at = self._next_gathering()

    def _add(self, pieces: list[bytes]) -> None:
        if self._text is None:
            self._text = LongText(self._budget, (b"[",))
        else:
            self._text.add((b",",))
        self._text.add(pieces)

    def _next_gathering(self) -> int:
        return max(0, self.bytes_left - THRESHOLDS.long_bytes)

    def _no_room(self) -> Fault:
        return self._fault(TooMuchUnsent(self._budget.limit))


def too_large(items: list[Item]) -> bytes:
    """The response to a batch of too many items: one fault with the id of its first call."""
    calls = (item for item in items if isinstance(item, tuple) and item[1])
    return join([failure(next(calls, Malformed(BATCH_TOO_LARGE)), BATCH_TOO_LARGE)])
