"""Bodies over incomplete state, compared with a dispatcher with complete state."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from structlog.testing import capture_logs

from foreblock.errors import NoUpstream, StateMissing, TooManyWaiting
from foreblock.metrics.catalogue import OUTCOMES
from foreblock.metrics.counter_file import CounterFile
from foreblock.metrics.meters import RequestMeter
from foreblock.rpc.batch import Limits
from foreblock.rpc.counting import RequestCounts
from foreblock.rpc.dispatch import Dispatcher, Method
from foreblock.rpc.error_codes import Fault
from foreblock.rpc.fetching_dispatcher import FetchingDispatcher, Missed
from foreblock.scheduling.admission import WorkerBudget
from foreblock.scheduling.reply import Client, Reply
from support.servers.asking import ANYBODY
from support.servers.toys import ToyContext, call, parse


class PartlyKnown:
    """Methods that read keys, some of which are missing; each key leads to the next."""

    def __init__(
        self,
        known: set[int],
        *,
        learns: int = 1000,
        is_down: bool = False,
        budget: WorkerBudget | None = None,
        counts: RequestCounts | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.known = known
        self.learns = learns  # keys of each round
        self.is_down = is_down
        self.rounds: list[list[int]] = []
        self.done: list[int] = []
        self.contexts: list[ToyContext] = []
        self.methods: dict[str, Method[ToyContext]] = {
            "read": self.read,
            "read_later": self.read_later,
            "act": self.act,
            "act_later": self.act_later,
            "fail": self.fail,
        }
        self.dispatcher = FetchingDispatcher(
            self.methods,
            self.open,
            lambda error: Fault(-32000, str(error)),
            Limits(),
            new_fetch_budget=lambda: self,
            once=("act", "act_later"),
            budget=budget,
            counts=counts,
            clock=clock,
        )

    def open(self, _: Client) -> ToyContext:
        self.contexts.append(ToyContext())
        return self.contexts[-1]

    async def fetch(self, missed: Sequence[Missed]) -> None:
        assert all(each.closed for each in self.contexts), "no snapshot is held meanwhile"
        keys: list[int] = sorted({key for each in missed for key in each.why.misses.keys})  # type: ignore[attr-defined]
        self.rounds.append(keys)
        await asyncio.sleep(0)
        if self.is_down:
            raise NoUpstream("it is night", 7)
        self.known.update(keys[: self.learns])

    def read(self, context: ToyContext, params: Raw) -> bytes:
        keys: list[int] = json.loads(bytes(params))
        missing = [each for each in keys if each not in self.known]
        if missing:
            raise StateMissing(SimpleNamespace(keys=missing))  # type: ignore[arg-type]
        assert not context.closed
        return b"[%d,%d]" % (sum(keys), context.number)

    def read_later(self, context: ToyContext, params: Raw) -> Awaitable[bytes]:
        async def wait() -> bytes:
            await asyncio.sleep(0)
            return self.read(context, params)

        return wait()

    def act(self, _: ToyContext, params: Raw) -> bytes:
        self.done.append(json.loads(bytes(params))[0])
        return b"%d" % len(self.done)

    def act_later(self, context: ToyContext, params: Raw) -> Awaitable[bytes]:
        async def wait() -> bytes:
            await asyncio.sleep(0)
            if json.loads(bytes(params))[0] == 0:
                raise ValueError("refused")
            return self.act(context, params)

        return wait()

    def fail(self, _: ToyContext, params: Raw) -> bytes:
        raise ValueError(bytes(params).decode())

    def answer(self, body: bytes) -> Any:  # noqa: ANN401, it is JSON
        async def scene() -> Reply:
            reply = self.dispatcher.answer(body, ANYBODY)
            return reply if isinstance(reply, Reply) else await reply

        self.reply = asyncio.run(scene())
        return parse(self.reply) if self.reply.body else None


def batch(*calls: bytes) -> bytes:
    return b"[" + b",".join(calls) + b"]"


def test_known_state_is_answered_at_once() -> None:
    toys = PartlyKnown({1})
    reply = toys.dispatcher.answer(call("read", "[1]"), ANYBODY)
    assert isinstance(reply, Reply)
    assert (toys.rounds, len(toys.contexts)) == ([], 1)


@pytest.mark.parametrize("method", ["read", "read_later"])
def test_missing_state_is_fetched_and_the_answer_names_its_snapshot(method: str) -> None:
    toys = PartlyKnown(set())
    answer = toys.answer(call(method, "[1,2]"))
    assert toys.rounds == [[1, 2]]
    assert answer["result"] == [3, toys.contexts[-1].number]
    assert toys.reply.headers == toys.contexts[-1].headers
    assert [each.closed for each in toys.contexts] == [1, 1]


def test_batch_asks_once_for_all_and_is_of_one_snapshot() -> None:
    toys = PartlyKnown({5})
    body = batch(
        call("read", "[1]"), call("read", "[5]", "2"), call("read_later", "[2]", "3"),
        call("fail", "[]", "4"),
    )  # fmt: skip
    answers = toys.answer(body)
    assert toys.rounds == [[1, 2]]
    assert [each["id"] for each in answers] == [1, 2, 3, 4]
    snapshot = toys.contexts[-1].number
    assert [each.get("result") for each in answers] == [
        [1, snapshot], [5, snapshot], [2, snapshot], None,
    ]  # fmt: skip
    assert answers[3]["error"]["message"] == "[]"


def test_what_cannot_be_had_is_refused_and_the_rest_is_answered() -> None:
    toys = PartlyKnown({5}, is_down=True)
    answers = toys.answer(batch(call("read", "[1]"), call("read", "[5]", "2")))
    assert answers[0]["error"]["message"] == str(NoUpstream("it is night", 7))
    assert answers[1]["result"] == [5, toys.contexts[-1].number]
    assert len(toys.rounds) == 1


def test_what_changes_something_runs_once() -> None:
    toys = PartlyKnown(set())
    body = batch(
        call("act", "[1]"), call("act_later", "[2]", "2"), call("act_later", "[0]", "3"),
        call("read", "[1]", "4"), call("act", "[3]", "5"),
    )  # fmt: skip
    answers = toys.answer(body)
    assert toys.done == [1, 2, 3]
    assert [each.get("result") for each in answers] == [
        1,
        2,
        None,
        [1, toys.contexts[-1].number],
        3,
    ]
    assert answers[2]["error"]["message"] == "refused"
    assert len(toys.rounds) == 1


def test_notification_is_fetched_for_and_not_answered() -> None:
    toys = PartlyKnown(set())
    body = b'{"jsonrpc":"2.0","method":"read","params":[1]}'
    assert toys.answer(body) is None
    assert toys.rounds == [[1]]


def test_who_finds_no_place_to_wait_is_refused() -> None:
    toys = PartlyKnown(set(), budget=WorkerBudget(waits=0))
    assert toys.answer(call("read", "[1]"))["error"]["message"] == str(TooManyWaiting(0))
    assert toys.rounds == []


def test_who_goes_away_ends_the_fetching(monkeypatch: pytest.MonkeyPatch) -> None:
    toys, left = PartlyKnown(set()), []

    async def fetch(_: Sequence[Missed]) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            left.append(True)

    monkeypatch.setattr(toys, "fetch", fetch)

    async def scene() -> None:
        reply = toys.dispatcher.answer(call("read", "[1]"), ANYBODY)
        assert not isinstance(reply, Reply)
        waiting = asyncio.ensure_future(reply)
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(scene())
    assert left == [True]
    assert [each.closed for each in toys.contexts] == [1]


KEYS = st.lists(st.integers(0, 9), max_size=4)
METHODS = st.sampled_from(["read", "read_later", "act", "act_later", "fail"])


@given(
    st.lists(st.tuples(METHODS, KEYS), min_size=1, max_size=8), st.sets(st.integers(0, 9)),
    st.integers(1, 5),
)  # fmt: skip
def test_answers_are_those_of_a_whole_state(
    calls: list[tuple[str, list[int]]], known: set[int], learns: int
) -> None:
    body = batch(*(call(name, str(keys or [0]), str(at)) for at, (name, keys) in enumerate(calls)))
    part, whole = PartlyKnown(set(known), learns=learns), PartlyKnown(set(range(10)))
    whole.dispatcher = Dispatcher(  # type: ignore[assignment]
        whole.methods, whole.open, lambda error: Fault(-32000, str(error)), Limits()
    )
    assert without_snapshots(part.answer(body)) == without_snapshots(whole.answer(body))
    assert part.done == whole.done
    asked = [key for each in part.rounds for key in each[:learns]]
    assert len(asked) == len(set(asked)), "known state is not requested again"


def without_snapshots(answers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Remove the snapshot from responses, and check that all have the same one."""
    found = {each["result"][1] for each in answers if isinstance(each.get("result"), list)}
    assert len(found) <= 1
    for each in answers:
        if isinstance(each.get("result"), list):
            each["result"] = each["result"][0]
    return answers


COUNTED = ("read", "read_later", "act", "act_later", "fail")


def test_each_request_is_counted_once_with_all_its_time() -> None:
    counters = CounterFile()
    meter = RequestMeter(counters, "main", 3.0)
    now = [0.0]
    counts = RequestCounts(meter, COUNTED, lambda: now[0])

    class Slow(PartlyKnown):
        async def fetch(self, missed: Sequence[Missed]) -> None:
            now[0] += 2.0
            await super().fetch(missed)

    state = Slow({1}, learns=1, counts=counts, clock=lambda: now[0])
    calls = [
        call("read", "[1]"), call("read", "[2]"), call("read_later", "[3]"), call("act", "[1]"),
        call("act_later", "[2]"), call("act_later", "[0]"), call("fail", "[1]"),
    ]  # fmt: skip
    with capture_logs() as logs:
        state.answer(b"[" + b",".join(calls) + b"]")
    assert len(state.rounds) == 2
    counted = {
        name: [counters.cells[meter.row(name) + at] for at in range(len(OUTCOMES))]
        for name in COUNTED
    }
    assert {name: sum(each) for name, each in counted.items()} == {
        "read": 2, "read_later": 1, "act": 1, "act_later": 2, "fail": 1,
    }  # fmt: skip
    slow = sorted(each["method"] for each in logs if each["event"] == "slow_request")
    assert slow == ["act_later", "act_later", "fail", "read", "read", "read_later"]
