"""A network in the writer whose source counts its calls."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from foreblock.bus.commands import AddBalance, AnyCommand, Mine, SetAccount
from foreblock.bus.messages import (
    BusCall,
    BusRequest,
    CallBody,
    PoolQuery,
    Result,
    Submit,
    ToWorker,
)
from foreblock.clock import DrivenClock
from foreblock.errors import RefusedCommand, RejectedTransaction
from foreblock.sequencer.pool_snapshot import PoolReader
from foreblock.sequencer.transaction_pool import TransactionPool
from foreblock.sources.network_writer import NetworkWriter
from foreblock.types import Transaction
from support.chains.sequencing import TERMS, Accounts
from support.servers.waiting import poll_until

ALICE, BOB = b"\1" * 20, b"\2" * 20
NEVER = 1 << 62
DEADLINE = 2 * 10**9


class Source:
    """Counts calls, and the threads they come from."""

    fork = None

    def __init__(self) -> None:
        self.due = NEVER
        self.ticks = 0
        self.together: list[int] = []
        self.nonces: dict[bytes, int] = {}
        self.waiting = 0
        self.pool = TransactionPool(TERMS, Accounts())
        self.threads: set[int] = set()
        self.closed = False
        self.run_count = 0
        self.commands: list[AnyCommand] = []
        self.outcome: object = None  # of commands
        self.last_commit = 1
        self.short = False
        self.is_lazy = False
        self.has_uncommitted = False
        self.flushed = 0
        self.on_command: Callable[[], None] = lambda: None
        self.on_tick: Callable[[], None] = lambda: None
        self.on_submit: Callable[[], None] = lambda: None

    @property
    def next_due_ns(self) -> int:
        return self.due

    def tick(self) -> None:
        self.threads.add(threading.get_ident())
        self.ticks += 1
        self.due = NEVER
        self.on_tick()

    def run_immediate(self) -> None:
        self.run_count += 1

    def is_short(self, command: AnyCommand, *, lazily: bool = False) -> bool:  # noqa: ARG002
        return self.short and command != Mine(1_000)

    def are_short(self, raws: Sequence[bytes], senders: Sequence[bytes]) -> bool:
        return self.short and len(raws) == len(senders) == 1

    def execute_together(
        self, commands: Sequence[SetAccount | AddBalance]
    ) -> list[RefusedCommand | None]:
        self.together.append(len(commands))
        return [None for _ in commands]

    def flush(self) -> None:
        self.has_uncommitted = False
        self.flushed += 1
        self.last_commit += 1

    def execute(self, command: AnyCommand, *, lazily: bool = False) -> object:
        self.threads.add(threading.get_ident())
        self.commands.append(command)
        self.has_uncommitted = lazily and self.is_lazy
        self.on_command()
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome

    def submit(self, raw: bytes, sender: bytes) -> None:
        self.threads.add(threading.get_ident())
        if raw == b"bad":
            raise RejectedTransaction("nonce too low")
        if raw == b"broken":
            raise ZeroDivisionError
        self.nonces[sender] = self.nonces.get(sender, 0) + 1
        self.waiting += 1
        self.on_submit()
        self.due = 0  # the next tick includes it

    def submit_next(self, raw: bytes, sender: bytes) -> None:
        if sender in self.nonces:
            raise RejectedTransaction("replacement transaction underpriced")
        self.submit(raw, sender)

    def take(self, transaction: Transaction, *, may_replace: bool) -> None:
        take = self.submit if may_replace else self.submit_next
        take(transaction.raw, transaction.sender)

    def is_short_transaction(self, transaction: Transaction) -> bool:  # noqa: ARG002, all are alike
        return self.short

    def next_nonce(self, sender: bytes) -> int:
        return self.nonces.get(sender, 0)

    def next_nonces(self) -> dict[bytes, int]:
        return dict(self.nonces)

    @property
    def window(self) -> PoolReader:
        self.threads.add(threading.get_ident())
        return PoolReader(self.pool, {})

    def close(self) -> None:
        self.closed = True


class Stage:
    """A writer over a source, and all its messages, in order."""

    def __init__(self) -> None:
        self.source = Source()
        self.clock = DrivenClock()
        self.messages: list[ToWorker] = []
        self.notes_changes = False  # record when workers discard their chain data
        self.writer = NetworkWriter(
            "main", self.source, self.clock, ThreadPoolExecutor(1), self.messages.append,
            announce_change=self._changed,
        )  # fmt: skip

    async def _changed(self, _: str) -> None:
        if self.notes_changes:
            self.messages.append(Result(0, "forgotten"))

    async def run(self, scene: Callable[["Stage"], object], until: Callable[[], bool]) -> None:
        running = asyncio.create_task(self.writer.run())
        scene(self)
        await poll_until(until)
        self.writer.stop()
        await running
        await self.writer.close()
        assert self.source.closed
        assert self.source.short or threading.get_ident() not in self.source.threads

    def ask(self, number: int, deadline_ns: int = DEADLINE, *about: bytes) -> None:
        self.call(number, PoolQuery("found" if about else "all", about), deadline_ns)

    def submit(self, number: int, raw: bytes, sender: bytes = ALICE) -> None:
        self.call(number, Submit(raw, sender))

    def call(self, number: int, body: CallBody, deadline_ns: int = DEADLINE) -> None:
        self.writer.on_call(
            BusRequest(BusCall(number, "main", body, deadline_ns), self.messages.append)
        )


def play(scene: Callable[[Stage], object], until: Callable[[Stage], bool]) -> Stage:
    async def run() -> Stage:
        stage = Stage()
        await stage.run(scene, lambda: until(stage))
        return stage

    return asyncio.run(run())
