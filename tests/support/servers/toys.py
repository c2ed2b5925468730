"""Toy methods, contexts and a pool: JSON-RPC without Ethereum."""

import asyncio
import json
import weakref
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from msgspec import Raw

from foreblock.errors import PoolUnavailable
from foreblock.rpc.batch import Limits
from foreblock.rpc.dispatch import Dispatcher, Method
from foreblock.rpc.error_codes import Fault
from foreblock.scheduling.admission import WorkerBudget
from foreblock.scheduling.reply import Client, Reply
from foreblock.scheduling.steps import Mapped, Pipelined
from foreblock.scheduling.thresholds import THRESHOLDS
from foreblock.types import Transaction
from support.servers.asking import ANYBODY, body_of

LONG = THRESHOLDS.long_bytes


class ToyContext:
    """Counts how often it is opened and closed."""

    opened = 0

    def __init__(self) -> None:
        ToyContext.opened += 1
        self.number = ToyContext.opened
        self.closed = 0
        self.headers = b"Toy: %d\r\n" % self.number

    def close(self) -> None:
        self.closed += 1


class Outcome:
    """A result from which a text is rendered."""


class Toys:
    """A dispatcher with toy methods, and a record of events."""

    def __init__(self, limits: Limits | None = None, budget: WorkerBudget | None = None) -> None:
        self.contexts: list[ToyContext] = []
        self.ran: list[bytes] = []
        self.begun: list[bytes] = []
        self.outcomes: weakref.WeakSet[Outcome] = weakref.WeakSet()
        self.alive: list[int] = []  # live outcomes when the next one was made
        self.now = 0.0
        self.step = 0.0  # seconds added by every clock reading
        self.long_texts = [b'"%b"' % (b"%d" % number * LONG) for number in range(3)]
        methods: dict[str, Method[ToyContext]] = {
            "echo": self.echo,
            "context": lambda context, _: b"%d" % context.number,
            "fail": self.fail,
            "later": self.later,
            "slow": self.slow,
            "slow_later": self.slow_later,
            "fail_later": self.fail_later,
            "in_order": self.in_order,
            "outcome": self.outcome,
            "long": lambda _, params: self.long_texts[int(json.loads(bytes(params))[0])],
            "long_later": self.long_later,
        }
        self.dispatcher = Dispatcher(
            methods, self.open, self.fault, limits or Limits(), self.clock, budget=budget
        )

    def clock(self) -> float:
        self.now += self.step
        return self.now

    def long_later(self, context: ToyContext, params: Raw) -> Awaitable[list[bytes]]:
        async def wait() -> list[bytes]:
            assert not context.closed
            return [b"[", self.long_texts[int(json.loads(bytes(params))[0])], b"]"]

        return wait()

    def open(self, _: Client) -> ToyContext:
        self.contexts.append(ToyContext())
        return self.contexts[-1]

    @staticmethod
    def fault(error: Exception) -> Fault:
        return Fault(-32000, str(error), "0x01" if str(error) == "with data" else None)

    def echo(self, _: ToyContext, params: Raw) -> bytes:
        self.ran.append(bytes(params))
        return bytes(params)

    def fail(self, _: ToyContext, params: Raw) -> bytes:
        raise ValueError(json.loads(bytes(params))[0])

    def slow(self, context: ToyContext, params: Raw) -> bytes:
        self.now += float(json.loads(bytes(params))[0])
        return self.echo(context, params)

    def later(self, context: ToyContext, params: Raw) -> Awaitable[bytes]:
        async def wait() -> bytes:
            assert not context.closed
            return self.echo(context, params)

        return wait()

    def in_order(self, context: ToyContext, params: Raw) -> Awaitable[bytes]:
        async def wait() -> bytes:
            self.begun.append(bytes(params))
            await asyncio.sleep(0)
            return self.echo(context, params)

        return Pipelined(wait(), lambda text: text)

    def outcome(self, _: ToyContext, __: Raw) -> Awaitable[bytes]:
        async def make() -> Outcome:
            await asyncio.sleep(0)
            self.alive.append(len(self.outcomes))
            outcome = Outcome()
            self.outcomes.add(outcome)
            return outcome

        return Mapped(asyncio.ensure_future(make()), lambda _: b"1")

    def slow_later(self, context: ToyContext, params: Raw) -> Awaitable[bytes]:
        async def wait() -> bytes:
            return self.slow(context, params)

        return wait()

    def fail_later(self, context: ToyContext, params: Raw) -> Awaitable[bytes]:
        async def wait() -> bytes:
            return self.fail(context, params)

        return wait()

    def answer(self, body: bytes) -> Reply:
        """Return the reply to a request that is answered immediately."""
        reply = self.dispatcher.answer(body, ANYBODY)
        assert isinstance(reply, Reply)
        return reply

    async def answer_later(self, body: bytes) -> Reply:
        """Return the reply to a request that waits."""
        reply = self.dispatcher.answer(body, ANYBODY)
        assert not isinstance(reply, Reply)
        return await reply


def parse(reply: Reply) -> Any:  # noqa: ANN401, it is JSON
    """The JSON of an answer."""
    return json.loads(body_of(reply))


def call(method: str, params: str = "[]", id: str = "1") -> bytes:
    """A request from the JSON text of its parameters and id."""
    text = f'{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}'
    return text.encode()


class Waits(NamedTuple):
    """A waiting transaction."""

    transaction: Transaction
    can_run: bool = True

    @property
    def raw(self) -> bytes:
        return self.transaction.raw

    @property
    def sender(self) -> bytes:
        return self.transaction.sender


class ToyPool:
    """Waiting transactions, and a hook that runs while they are read."""

    def __init__(self, *waiting: Waits) -> None:
        self.waiting = list(waiting)
        self.asked = 0
        self.answers = True
        self.meanwhile: Callable[[], object] = lambda: None

    async def find(self, transaction_hash: bytes) -> Waits | None:
        self._ask()
        found = (each for each in self.waiting if each.transaction.hash == transaction_hash)
        return next(found, None)

    async def numbers(self) -> tuple[int, int]:
        self._ask()
        runs = sum(each.can_run for each in self.waiting)
        return runs, len(self.waiting) - runs

    async def of_sender(self, sender: bytes) -> Sequence[Waits]:
        self._ask()
        return [each for each in self.waiting if each.sender == sender]

    async def all(self) -> Sequence[Waits]:
        self._ask()
        return self.waiting

    def _ask(self) -> None:
        self.asked += 1
        self.meanwhile()
        if not self.answers:
            raise PoolUnavailable
