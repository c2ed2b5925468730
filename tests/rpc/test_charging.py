"""What an API key pays for a body, and what it may ask."""

import asyncio
import json
from collections.abc import Awaitable, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

from msgspec import Raw

from foreblock.errors import StateMissing
from foreblock.rpc.batch import Limits
from foreblock.rpc.charging import ChargingDispatcher, ChargingFetchingDispatcher
from foreblock.rpc.dispatch import Method
from foreblock.rpc.error_codes import fault_of
from foreblock.rpc.fetching_dispatcher import Missed
from foreblock.scheduling.admission import WorkerBudget
from foreblock.scheduling.api_keys import ApiKey, KeyCounts, KeySpec, MethodWeights, own_cell
from foreblock.scheduling.fair_queue import Priority
from foreblock.scheduling.reply import Reply
from foreblock.scheduling.thresholds import THRESHOLDS
from support.each_case import each_case
from support.servers.asking import ANYBODY
from support.servers.toys import ToyContext, call, parse


class Paying:
    """A dispatcher of a key, by a driven clock, over methods that answer their name."""

    def __init__(self, spec: KeySpec, budget: WorkerBudget | None = None) -> None:
        self.now = 0.0
        self.totals = dict.fromkeys(KeyCounts._fields, 0.0)
        counts = KeyCounts(*(partial(self._count, each) for each in KeyCounts._fields))
        weights = MethodWeights({"five": 5, "free": 0})
        self.key = ApiKey(spec, weights, own_cell(), counts, lambda: self.now)
        self.known = False
        self.rounds = 0
        methods: dict[str, Method[ToyContext]] = {
            name: partial(self._name, name) for name in ("one", "five", "free")
        }
        methods |= {"missing": self._missing, "later": self._later}
        parts: dict[str, Any] = {
            "open_context": lambda _: ToyContext(),
            "fault": partial(fault_of, dialect="preconf"),
            "limits": Limits(batch_items=20),
            "budget": budget,
        }
        self.plain = ChargingDispatcher(methods, key=self.key, **parts)
        self.fetching = ChargingFetchingDispatcher(
            methods, key=self.key, new_fetch_budget=lambda: self, **parts
        )

    async def fetch(self, _: Sequence[Missed]) -> None:
        self.rounds += 1
        self.known = True

    def _count(self, name: str, by: float) -> None:
        self.totals[name] += by

    def _name(self, name: str, _context: ToyContext, _: Raw) -> bytes:
        return b'"%b"' % name.encode()

    def _missing(self, _context: ToyContext, _: Raw) -> bytes:
        if not self.known:
            raise StateMissing(SimpleNamespace(keys=[1]))  # type: ignore[arg-type]
        return b'"found"'

    def _later(self, _context: ToyContext, _: Raw) -> Awaitable[bytes]:
        async def wait() -> bytes:
            await asyncio.sleep(0)
            return b'"later"'

        return wait()

    def ask(self, body: bytes, *, fetching: bool = False) -> Any:  # noqa: ANN401, it is JSON
        dispatcher = self.fetching if fetching else self.plain

        async def scene() -> Reply:
            reply = dispatcher.answer(body, ANYBODY)
            return reply if isinstance(reply, Reply) else await reply

        return parse(asyncio.run(scene()))


def key(units: float = 1, burst: float = 10, **more: Any) -> KeySpec:  # noqa: ANN401
    return KeySpec("a", b"digest", units, burst, **more)


def batch(*names: str) -> bytes:
    return b"[" + b",".join(call(name, id=str(number)) for number, name in enumerate(names)) + b"]"


@each_case(
    ("body", "units", "requests"),
    [
        (call("one"), 1, 1),
        (call("five"), 5, 1),
        (call("free"), 0, 1),
        (call("nothing"), 1, 1),
        (b"no JSON", 1, 1),
        (b"[]", 1, 0),
        (b'{"jsonrpc":"2.0"}', 1, 1),
        (batch("one", "five", "free", "nothing"), 7, 4),
        (b'[1,{"jsonrpc":"2.0","method":"five"}]', 6, 2),
        (b'{"jsonrpc":"2.0","method":"five"}', 5, 1),
        (call("five", json.dumps(["x" * THRESHOLDS.long_body_bytes])), 5, 1),
    ],
)
def test_a_body_costs_what_its_methods_weigh(body: bytes, units: float, requests: int) -> None:
    paying = Paying(key())
    asyncio.run(_answered(paying, body))
    assert paying.totals == {"requests": requests, "refused": 0, "units": units, "seconds": 0}


async def _answered(paying: Paying, body: bytes) -> None:
    reply = paying.plain.answer(body, ANYBODY)
    if not isinstance(reply, Reply):
        await reply


def test_a_body_may_leave_a_debt_that_is_paid_before_the_next() -> None:
    paying = Paying(key(units=2, burst=10))
    assert len(paying.ask(batch(*["five"] * 4))) == 4  # 20 of 10 units
    refused = paying.ask(call("one", id="7"))
    assert (refused["id"], refused["error"]["code"]) == (7, -32005)
    assert refused["error"]["data"] == {"retryAfter": 6}  # 11 units until one is left
    assert "try again in 6 s" in refused["error"]["message"]
    paying.now = 5.4
    assert "error" in paying.ask(call("one"))
    paying.now = 5.5
    assert paying.ask(call("one"))["result"] == "one"
    assert paying.totals["refused"] == 2


def test_each_request_of_a_refused_batch_gets_the_error() -> None:
    paying = Paying(key(burst=1))
    paying.ask(call("one"))
    found = paying.ask(batch("one", "five", "later"))
    assert [(each["id"], each["error"]["code"]) for each in found] == [
        (0, -32005), (1, -32005), (2, -32005),
    ]  # fmt: skip
    assert len(paying.ask(batch(*["one"] * 50))) == 20
    assert paying.totals["units"] == 1


def test_only_allowed_methods_are_there() -> None:
    paying = Paying(key(methods=("on*", "later")))
    assert paying.ask(call("one"))["result"] == "one"
    assert paying.ask(call("later"))["result"] == "later"
    assert paying.ask(call("five"))["error"] == {
        "code": -32601, "message": "the method five does not exist/is not available",
    }  # fmt: skip


def test_a_body_that_runs_again_costs_once() -> None:
    paying = Paying(key(burst=2))
    found = paying.ask(batch("missing", "five", "missing"), fetching=True)
    assert [each["result"] for each in found] == ["found", "five", "found"]
    assert paying.rounds == 1
    assert paying.totals["units"] == 7


def test_a_low_priority_waits_only_while_there_is_room() -> None:
    budget = WorkerBudget(waits=2)
    lease = budget.waits.lease()
    low = Paying(key(priority=Priority.LOW), budget)
    assert low.ask(call("later"))["error"]["code"] == -32005
    assert Paying(key(), budget).ask(call("later"))["result"] == "later"
    del lease
    assert low.ask(call("later"))["result"] == "later"
