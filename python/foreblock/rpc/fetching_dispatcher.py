"""Answers bodies over a partial state: fetches what is missing and runs again.

A run that misses something gives no response. All that the requests of a body have missed is asked
for together, and then the whole body runs again on a fresh snapshot, until nothing is missing: so
all responses of a body are of one snapshot, as anywhere else. Where something cannot be had, the
last run answers what it can, and the rest with the reason.

A request that changes something, such as one that sends a transaction or polls a filter, runs once:
its response is kept for the next run.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Final, NamedTuple, Protocol

from msgspec import Raw, structs

from foreblock.errors import StateMissing, TooManyWaiting
from foreblock.metrics.meters import RequestMeter
from foreblock.rpc.batch import Limits
from foreblock.rpc.counting import RequestCounts
from foreblock.rpc.dispatch import C, Dispatcher, Method
from foreblock.rpc.envelope import Asked, Item
from foreblock.rpc.error_codes import Fault
from foreblock.scheduling.reply import Client, Reply, Text
from foreblock.scheduling.steps import Memoized


class Missed(NamedTuple):
    """A request of this method that missed something."""

    method: str
    params: Raw
    why: StateMissing


class MissingStateFetcher(Protocol):
    """The rounds of fetching that one body may have."""

    async def fetch(self, missed: Sequence[Missed]) -> None:
        """Make known what was missed, or a part of it; raises why nothing of it can be had."""


Noted = tuple[int, int, float]  # the row of a method, an outcome, and seconds


class Attempt:
    """One run of a body."""

    __slots__ = (
        "counted",
        "is_batch",
        "kept",
        "kept_counts",
        "mark",
        "missed",
        "number",
        "refusal",
    )

    def __init__(
        self,
        kept: dict[int, Text | Awaitable[Text]],
        refusal: Exception | None = None,
        kept_counts: list[Noted] | None = None,
        *,
        is_batch: bool,
    ) -> None:
        """`kept` are answers of runs before; `refusal` is the response to what is missing.

        `kept_counts` are the counts of those answers.
        """
        self.counted: Final[list[Noted]] = []
        self.kept_counts: Final = [] if kept_counts is None else kept_counts
        self.missed: Final[list[Missed]] = []
        self.kept: Final = kept
        self.number = 0  # of the next request that runs once
        self.refusal: Final = refusal
        self.is_batch: Final = is_batch
        self.mark = b""  # a header line for answers that others gave


_attempt: ContextVar[Attempt] = ContextVar("attempt")


def mark_batch(line: bytes) -> None:
    """Let the reply of the batch that is being answered have this header line."""
    attempt = _attempt.get(None)
    if attempt is not None:
        attempt.mark = line


class FetchingDispatcher(Dispatcher[C]):
    """Answers bodies from a table of methods, some of which raise `StateMissing`."""

    def __init__(
        self,
        methods: Mapping[str, Method[C]],
        open_context: Callable[[Client], C],
        fault: Callable[[Exception], Fault],
        limits: Limits,
        *,
        new_fetch_budget: Callable[[], MissingStateFetcher],
        once: Collection[str] = (),
        **shared: Any,  # noqa: ANN401, those of `Dispatcher`
    ) -> None:
        """`once` are the methods that change something."""
        counts = shared.pop("counts", None) or RequestCounts(RequestMeter.private(), methods)
        self._final_counts: Final[RequestCounts] = counts
        super().__init__(
            methods, open_context, fault, limits, counts=counts.noting(self._note), **shared
        )
        self._new_fetch_budget: Final = new_fetch_budget
        self._once: Final = frozenset(once)

    def _answer(self, asked: Item | list[Item], client: Client) -> Reply | Awaitable[Reply]:
        began = self._clock()
        attempt = Attempt({}, is_batch=isinstance(asked, list))
        reply = self._try(asked, client, attempt)
        if isinstance(reply, Reply) and not attempt.missed:
            self._count_last_run(attempt, 0.0)
            return reply
        return self._repeat(asked, client, attempt, reply, began)

    def _note(self, row: int, outcome: int, seconds: float) -> None:
        attempt = _attempt.get(None)
        if attempt is None:
            self._final_counts.count(row, outcome, seconds)
        else:
            attempt.counted.append((row, outcome, seconds))

    def _count_last_run(self, attempt: Attempt, waited: float) -> None:
        """Count the requests of the last run, each once and with the time of all runs."""
        self._final_counts.count_noted(attempt.kept_counts, 0.0)
        self._final_counts.count_noted(attempt.counted, waited)

    def _try(
        self, asked: Item | list[Item], client: Client, attempt: Attempt
    ) -> Reply | Awaitable[Reply]:
        before = _attempt.set(attempt)
        try:
            return super()._answer(asked, client)
        finally:
            _attempt.reset(before)

    async def _repeat(
        self,
        asked: Item | list[Item],
        client: Client,
        attempt: Attempt,
        reply: Reply | Awaitable[Reply],
        began: float,
    ) -> Reply:
        """Repeat runs until one has missed nothing."""
        fetcher: MissingStateFetcher | None = None
        waited = 0.0
        try:
            while True:
                if not isinstance(reply, Reply):
                    reply = await _finish(reply, attempt)
                if not attempt.missed:
                    return _marked(reply, attempt.mark) if attempt.is_batch else reply
                fetcher = fetcher or self._new_fetch_budget()
                refusal = await self._fetch(fetcher, attempt.missed)
                attempt = Attempt(
                    attempt.kept, refusal, attempt.kept_counts, is_batch=attempt.is_batch
                )
                waited = self._clock() - began
                reply = self._try(asked, client, attempt)
        finally:
            for each in attempt.missed:  # the client went away while they were fetched
                self._final_counts.cancelled(each.method, began)
            self._count_last_run(attempt, waited)

    async def _fetch(
        self, fetcher: MissingStateFetcher, missed: Sequence[Missed]
    ) -> Exception | None:
        """Fetch missing state; returns the reason if that fails."""
        lease = self._waits.lease()
        if lease is None:
            return TooManyWaiting(self._waits.total)
        try:
            await fetcher.fetch(missed)
        except Exception as why:  # noqa: BLE001, the client gets the reason
            return why
        finally:
            del lease
        return None

    def _answer_request(self, context: C, asked: Asked) -> Text | Awaitable[Text]:
        if asked[0].method not in self._once or not _attempt.get().is_batch:
            return super()._answer_request(context, asked)
        attempt = _attempt.get()
        number, kept = attempt.number, attempt.kept
        attempt.number += 1
        if number not in kept:
            before = len(attempt.counted)
            answer = super()._answer_request(context, asked)
            attempt.kept_counts.extend(attempt.counted[before:])
            del attempt.counted[before:]
            kept[number] = Memoized(answer) if isinstance(answer, Awaitable) else answer
        return kept[number]

    def _failed(self, asked: Asked, error: Exception, began: float) -> bytes:
        if not isinstance(error, StateMissing):
            return super()._failed(asked, error, began)
        attempt = _attempt.get()
        if attempt.refusal is not None:
            return super()._failed(asked, attempt.refusal, began)
        attempt.missed.append(Missed(asked[0].method, asked[0].params, error))
        return b""


def _marked(reply: Reply, line: bytes) -> Reply:
    return structs.replace(reply, headers=reply.headers + line) if line else reply


async def _finish(reply: Awaitable[Reply], attempt: Attempt) -> Reply:
    before = _attempt.set(attempt)
    try:
        return await reply
    finally:
        _attempt.reset(before)
