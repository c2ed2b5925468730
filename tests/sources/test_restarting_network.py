"""A network that fails is restarted; readers get the reason, and other networks are not
affected.
"""

import asyncio
from collections.abc import Callable, Iterator

import pytest

from foreblock.backoff import Waits
from foreblock.bus.commands import Mine
from foreblock.bus.messages import (
    NOT_AVAILABLE,
    BusCall,
    BusRequest,
    GetState,
    NextNonce,
    PoolQuery,
    Result,
    SourceReport,
    Submit,
    ToWorker,
    failed,
)
from foreblock.clock import SystemClock
from foreblock.errors import (
    NoUpstream,
    PoolUnavailable,
    SequencerUnavailable,
    StoreFull,
    StoreReplaced,
)
from foreblock.sources.network_thread import RunningNetwork
from foreblock.sources.restarting_network import RestartingNetwork
from foreblock.status.network_status import CanonicalStatus, SourceStatus
from support.servers.waiting import PATIENCE, poll_until

FULL = StoreFull(1)
HINT = NextNonce("a", b"", 1)


def failure(why: object, *, is_running: bool = False) -> SourceStatus:
    return SourceStatus(failure=str(why), is_running=is_running)


class Toy(RunningNetwork):
    """Runs until it is stopped, or fails."""

    def __init__(
        self,
        failure: BaseException | None = None,
        closing: BaseException | None = None,
        reported: SourceStatus | BaseException | None = None,
    ) -> None:
        self.failure = failure
        self.closing = closing
        self.reported = reported
        self.stopped = asyncio.Event()
        self.runs = False
        self.closed = False

    def on_call(self, request: BusRequest) -> None:
        request.finish(7)

    def hints(self) -> Iterator[ToWorker]:
        yield HINT

    async def status(self) -> SourceStatus | None:
        if isinstance(self.reported, BaseException):
            raise self.reported
        return self.reported

    def stop(self) -> None:
        self.stopped.set()

    async def run(self) -> None:
        self.runs = True
        await asyncio.sleep(0)
        if self.failure is not None:
            raise self.failure
        await self.stopped.wait()

    async def close(self) -> None:
        self.closed = True
        if self.closing is not None:
            raise self.closing


class Stage:
    """A network that is started once per given outcome."""

    def __init__(self, *outcomes: Toy | Exception) -> None:
        self.outcomes = list(outcomes)
        self.messages: list[ToWorker] = []
        self.first_hints: list[ToWorker] = []  # for a worker that connects at the first report
        waits = Waits(shortest=0.001, longest=0.002)
        self.kept = RestartingNetwork("a", self.begin, SystemClock(), self.broadcast, waits)

    @property
    def reports(self) -> list[SourceStatus]:
        return [each.status for each in self.messages if isinstance(each, SourceReport)]

    def broadcast(self, message: ToWorker) -> None:
        self.messages.append(message)
        self.first_hints = self.first_hints or list(self.kept.hints())

    async def begin(self) -> Toy:
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def run(self, until: Callable[[], bool]) -> None:
        running = asyncio.create_task(self.kept.run())
        await poll_until(until)
        async with asyncio.timeout(PATIENCE):
            self.kept.stop()
            await running
        await self.kept.close()


def test_what_fails_is_closed_and_begun_anew() -> None:
    async def scene() -> None:
        first, second, third = Toy(FULL), Toy(ZeroDivisionError()), Toy()
        stage = Stage(first, FULL, second, third)
        await stage.run(lambda: third.runs)
        assert first.closed
        assert second.closed
        assert third.closed
        assert stage.reports == [
            failure(FULL),
            failure(FULL),
            failure(FULL, is_running=True),
            failure("ZeroDivisionError"),
            failure("ZeroDivisionError", is_running=True),
        ]

    asyncio.run(scene())


class Panic(BaseException):
    """Like the engine's, which is not an `Exception` either."""


@pytest.mark.parametrize("kind", [OSError, Panic])
def test_what_cannot_be_closed_is_begun_anew_and_the_reason_is_the_first(
    kind: type[BaseException],
) -> None:
    async def scene() -> None:
        first, second = Toy(kind("the disk is gone"), kind("nor can it be closed")), Toy()
        stage = Stage(first, second)
        await stage.run(lambda: second.runs)
        assert first.closed
        gone = "the disk is gone"
        assert stage.reports == [failure(gone), failure(gone, is_running=True)]

    asyncio.run(scene())


def test_closing_at_the_end_raises_nothing() -> None:
    async def scene() -> None:
        toy = Toy(closing=OSError("the disk is gone"))
        await Stage(toy).run(lambda: toy.runs)
        assert toy.closed

    asyncio.run(scene())


def test_while_it_does_not_run_transactions_are_refused_and_new_workers_hear_why() -> None:
    async def scene() -> None:
        stage, said = Stage(FULL, Toy()), list[ToWorker]()
        kept = stage.kept

        def look() -> bool:
            kept.on_call(BusRequest(BusCall(len(said), "a", Submit(b"", b""), 0), said.append))
            kept.on_call(BusRequest(BusCall(0, "a", PoolQuery("numbers"), 0), asked.append))
            kept.on_call(BusRequest(BusCall(0, "a", GetState(0, b""), 0), fetched.append))
            kept.on_call(BusRequest(BusCall(0, "a", Mine(), 0), ordered.append))
            return isinstance(said[-1], Result)

        asked, ordered, fetched = list[ToWorker](), list[ToWorker](), list[ToWorker]()
        await stage.run(look)
        assert said[0] == failed(0, SequencerUnavailable())
        assert (ordered[0], ordered[-1]) == (failed(0, SequencerUnavailable()), Result(0, 7))
        assert (asked[0], asked[-1]) == (failed(0, PoolUnavailable()), Result(0, 7))
        assert (fetched[0], fetched[-1]) == (failed(0, NoUpstream(NOT_AVAILABLE, 1)), Result(0, 7))
        (report,) = stage.first_hints
        assert isinstance(report, SourceReport)
        assert report.status == failure(FULL)

    asyncio.run(scene())


def test_what_cannot_be_begun_at_first_is_told_to_who_asked() -> None:
    async def scene() -> None:
        with pytest.raises(StoreFull):
            await Stage(FULL).kept.begin()
        toy = Toy()
        stage = Stage(toy)
        await stage.kept.begin()
        assert list(stage.kept.hints()) == [HINT]
        await stage.run(lambda: toy.runs)

    asyncio.run(scene())


def test_the_status_is_reported_without_secrets_and_kept_for_new_workers() -> None:
    async def scene() -> None:
        toy = Toy(reported=SourceStatus(canonical=CanonicalStatus("http://a/key", 1, 2, 3)))
        stage = Stage(toy)
        await stage.run(lambda: bool(stage.reports))
        shown = SourceStatus(canonical=CanonicalStatus("http://a/\N{HORIZONTAL ELLIPSIS}", 1, 2, 3))
        assert stage.reports == [shown]
        assert list(stage.kept.hints()) == stage.messages

    asyncio.run(scene())


def test_a_network_whose_status_fails_is_restarted() -> None:
    async def scene() -> None:
        first, second = Toy(reported=StoreReplaced("here", "it was removed")), Toy()
        stage = Stage(first, second)
        await stage.run(lambda: second.runs)
        assert first.closed
        assert stage.reports[0] == failure(first.reported)

    asyncio.run(scene())
