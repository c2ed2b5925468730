"""Each request is counted once, by method and outcome, in every form of request."""

import asyncio
import time
from collections import Counter

import pytest
import structlog

from foreblock.errors import TooManyWaiting
from foreblock.metrics.catalogue import INVALID, OUTCOMES, REQUEST_DURATION, UNKNOWN
from foreblock.metrics.counter_file import CounterFile
from foreblock.metrics.meters import RequestMeter
from foreblock.rpc.batch import Limits
from foreblock.rpc.counting import RequestCounts, outcome_of
from foreblock.rpc.dispatch import Dispatcher
from foreblock.rpc.error_codes import Fault
from foreblock.scheduling.admission import WorkerBudget
from foreblock.scheduling.reply import Reply
from support.each_case import each_case
from support.servers.asking import ANYBODY
from support.servers.toys import Toys, call

METHODS = ("echo", "fail", "later", "fail_later", "slow", "slow_later", UNKNOWN, INVALID)


class Counted:
    """A dispatcher with toy methods, and its counters."""

    def __init__(
        self,
        limits: Limits | None = None,
        budget: WorkerBudget | None = None,
        slow: float = 1e9,
        *,
        driven: bool = True,
    ) -> None:
        """Uses the engine's clock unless `driven`."""
        self.counters = CounterFile()
        self.meter = RequestMeter(self.counters, "main", slow)
        self.toys = toys = Toys()
        clock = (lambda: toys.now) if driven else None
        self.methods = methods = {
            name: getattr(toys, name) for name in METHODS if hasattr(toys, name)
        }
        self.dispatcher = Dispatcher(
            methods, toys.open, self.fault, limits or Limits(), lambda: toys.now, budget=budget,
            counts=RequestCounts(self.meter, methods, clock),
        )  # fmt: skip

    @staticmethod
    def fault(error: Exception) -> Fault:
        if isinstance(error, TooManyWaiting):
            return Fault(-32005, "crowded")
        text = str(error)
        return Fault(int(text) if text.startswith("-") else -32000, text)

    def ask(self, body: bytes) -> None:
        async def answer() -> None:
            reply = self.dispatcher.answer(body, ANYBODY)
            if not isinstance(reply, Reply):
                await reply

        asyncio.run(answer())

    @property
    def outcomes(self) -> Counter[tuple[str, str]]:
        """The counts of outcomes by method."""
        found: Counter[tuple[str, str]] = Counter()
        for method in METHODS:
            row = self.meter.row(method)
            for number, outcome in enumerate(OUTCOMES):
                found[method, outcome] = int(self.counters.cells[row + number])
        return +found

    def histogram(self, method: str) -> list[float]:
        """Its buckets and the sum of all times."""
        begun = self.meter.row(method) + len(OUTCOMES)
        return list(self.counters.cells[begun : begun + REQUEST_DURATION.width])


BODIES = {
    "echo": (call("echo"), "ok"),
    "fail": (call("fail", '["no"]'), "error"),
    "later": (call("later"), "ok"),
    "fail_later": (call("fail_later", '["-32005"]'), "refused"),
    UNKNOWN: (call("what"), "error"),
    INVALID: (b'{"jsonrpc":"1.0","id":1,"method":"echo"}', "error"),
}


@each_case("method", BODIES)
@each_case("batch", [False, True])
def test_each_request_counts_once_alone_and_in_a_batch(method: str, batch: bool) -> None:
    counted, (body, outcome) = Counted(), BODIES[method]
    counted.ask(b"[%b,%b]" % (body, body) if batch else body)
    number = 2 if batch else 1
    assert counted.outcomes == {(method, outcome): number}
    assert sum(counted.histogram(method)[:-1]) == number


def test_names_that_clients_make_up_share_one_row() -> None:
    counted = Counted()
    for number in range(50):
        counted.ask(call(f"made_up_{number}"))
    assert counted.outcomes == {(UNKNOWN, "error"): 50}


def test_what_a_batch_does_not_begin_is_counted_as_refused() -> None:
    counted = Counted(Limits(batch_seconds=1.0))
    bodies = [call("slow", "[2]"), call("echo"), call("what"), b"1"]
    counted.ask(b"[%b]" % b",".join(bodies))
    assert counted.outcomes == {
        ("slow", "ok"): 1, ("echo", "refused"): 1, (UNKNOWN, "refused"): 1,
        (INVALID, "refused"): 1,
    }  # fmt: skip


def test_what_finds_no_place_to_wait_is_counted_as_refused() -> None:
    counted = Counted(budget=WorkerBudget(waits=0))
    counted.ask(call("later"))
    counted.ask(b"[%b,%b]" % (call("later"), call("echo")))
    assert counted.outcomes == {("later", "refused"): 2, ("echo", "refused"): 1}


def test_a_request_whose_client_goes_away_is_cancelled() -> None:
    counted = Counted()
    forever = asyncio.Event

    async def leave() -> None:
        waiting = forever()

        async def wait() -> bytes:
            waiting.set()
            await forever().wait()
            return b"null"

        counted.methods["later"] = lambda _, __: wait()
        reply = counted.dispatcher.answer(call("later"), ANYBODY)
        assert not isinstance(reply, Reply)
        task = asyncio.ensure_future(reply)
        await waiting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(leave())
    assert counted.outcomes == {("later", "cancelled"): 1}


@pytest.mark.parametrize("method", ["slow", "slow_later"])
def test_times_are_those_of_the_method(method: str) -> None:
    counted = Counted()
    counted.ask(call(method, "[2]"))
    counted.ask(call(method, "[0.02]"))
    assert counted.histogram(method)[-1] == pytest.approx(2.02)


@pytest.mark.parametrize("method", ["slow", "slow_later"])
def test_slow_requests_are_logged_with_method_and_time(method: str) -> None:
    counted = Counted(slow=1.5)
    with structlog.testing.capture_logs() as logs:
        counted.ask(call(method, "[1]"))
        counted.ask(call(method, "[2]"))
    assert logs == [
        {
            "event": "slow_request", "log_level": "warning", "network": "main",
            "method": method, "seconds": 2.0, "code": None,
        }
    ]  # fmt: skip


@each_case("method", BODIES)
def test_the_clock_of_the_engine_counts_the_same(method: str) -> None:
    begun = time.monotonic()
    counted, (body, outcome) = Counted(slow=0.0, driven=False), BODIES[method]
    with structlog.testing.capture_logs() as logs:
        counted.ask(body)
    assert counted.outcomes == {(method, outcome): 1}
    took = counted.histogram(method)[-1]
    assert 0 <= took <= time.monotonic() - begun
    slow = [each["method"] for each in logs if each["event"] == "slow_request"]
    assert slow == ([] if method in (UNKNOWN, INVALID) else [method])
    if slow:
        assert 0 <= logs[0]["seconds"] <= time.monotonic() - begun


def test_outcomes_of_faults() -> None:
    named = {code: OUTCOMES[outcome_of(Fault(code, ""))] for code in (-32000, 3, -32603, -32005)}
    assert named == {-32000: "error", 3: "error", -32603: "failed", -32005: "refused"}
