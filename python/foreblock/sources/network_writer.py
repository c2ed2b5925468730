"""A dev chain in the writer process: its sequencer, ticking on the network's thread.

The loop waits for the next thing that is due, and for calls. Transactions are handed to the
thread in portions from a `SubmissionQueue`. If commits do not wait for a disk, work that takes
less time than handing it over is done on the loop, while the thread rests. In a process that
also serves the chain, the commit of a command may be left to the next read, which calls `flush`.
Work behind the head comes in slices, so that due indices and transactions come in between. Pool
queries come after transactions (`call_queues`), so that a client finds a transaction that it
has sent.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, TypeVar

import structlog

from foreblock.bus.commands import (
    WOULD_BLOCK,
    AddBalance,
    AnyCommand,
    Command,
    SetAccount,
)
from foreblock.bus.messages import BusRequest, NextNonce, Submit, ToWorker
from foreblock.clock import Clock
from foreblock.errors import (
    ForeblockError,
    OutcomeUnknown,
    RefusedCommand,
    RejectedTransaction,
    SequencerUnavailable,
)
from foreblock.metrics.meters import NetworkMetrics
from foreblock.sources.call_queues import PoolQueries, SubmissionQueue
from foreblock.sources.chain_source import ChainSource
from foreblock.sources.network_thread import NetworkThread, RunningNetwork
from foreblock.types import Transaction

HINTS: Final = 10_000  # senders whose nonces are followed
MOST_TOGETHER: Final = 256  # commands of one commit
FAILED: Final = "the command failed, and the chain is restarted"
MOST_CHECKED: Final = 16  # senders whose hints are checked after a command, in some 50 µs

T = TypeVar("T")

log = structlog.get_logger()


class NetworkWriter(RunningNetwork):
    """Runs one source."""

    def __init__(
        self,
        name: str,
        source: ChainSource,
        clock: Clock,
        executor: ThreadPoolExecutor,
        broadcast: Callable[[ToWorker], None],
        announce_change: Callable[[str], Awaitable[None]] | None = None,
        metrics: NetworkMetrics | None = None,
    ) -> None:
        """`executor` has one thread. `broadcast` reaches all workers; it is called on the loop.

        `announce_change` returns when all workers have acknowledged that the chain was changed.
        """
        self.name: Final = name
        self.source: Final = source
        self._clock: Final = clock
        self._thread: Final = NetworkThread(name, broadcast, executor, source.last_commit)
        self._thread.last_commit = lambda: source.last_commit
        self._broadcast: Final = broadcast
        self._announce_change: Final = announce_change
        self._metrics: Final = metrics or NetworkMetrics.private()
        self._commands: Final[deque[BusRequest]] = deque()
        self._nonces: dict[bytes, int] = {}  # hints about senders that may have transactions
        # All hints that workers keep; None if there are many, so that any may be stale.
        self._announced_nonces: dict[bytes, int] | None = {}
        self._submitted: Final = SubmissionQueue()
        self._queries: Final = PoolQueries(clock)
        self._wake: Final = asyncio.Event()
        self._stopping = False
        self._is_resting = False  # nothing is done
        self._rests_until_ns = 0
        # In a process that also serves the chain.
        self._hints_forgotten: Callable[[], None] | None = None
        self._hold_reads: Callable[[bool], None] = lambda _: None
        self._has_uncommitted = False
        self._failure: BaseException | None = None
        for sender, nonce in source.next_nonces().items():  # of a saved pool
            self._hint(sender, nonce)

    def submit(self, request: BusRequest) -> None:
        """Queue a transaction for the source."""
        self._submitted.put(request, self._clock.monotonic_ns())
        self._wake.set()

    def fetch(self, request: BusRequest) -> None:
        """Fetch state for a worker, on a fork of another chain."""
        if self.source.fork is None:
            super().fetch(request)
        else:
            self.source.fork.answer(request)

    def execute(self, request: BusRequest) -> None:
        """Queue a command."""
        self._commands.append(request)
        self._wake.set()

    def query_pool(self, request: BusRequest) -> None:
        """Queue a query of the pool."""
        self._queries.put(request)
        self._wake.set()

    @property
    def is_at_rest(self) -> bool:
        """Return true if no work is running or waiting."""
        waits = self._commands or self._submitted or self._queries
        return self._is_resting and not (waits or self._stopping or self._failure)

    def serve_here(self, hints_forgotten: Callable[[], None]) -> None:
        """Let `try_submit` and `try_execute` be called, by the loop of the only worker.

        `hints_forgotten` is called when its hints are stale.
        """
        self._hints_forgotten = hints_forgotten

    def hold_reads(self, hold: Callable[[bool], None]) -> None:
        """Call this when reads have to flush first, with true, and when they need not any more."""
        self._hold_reads = hold

    def flush(self) -> None:
        """Commit what commands have changed, on the loop; the thread rests then."""
        if not self._has_uncommitted:
            return
        try:
            self.source.flush()
        except BaseException as error:
            self.fail(error)
            raise
        self._note_uncommitted()
        self._thread.announce_commit()

    def _note_uncommitted(self) -> None:
        has_uncommitted = self.source.has_uncommitted
        if has_uncommitted != self._has_uncommitted:
            self._has_uncommitted = has_uncommitted
            self._hold_reads(has_uncommitted)

    def try_submit(self, transaction: Transaction, *, may_replace: bool) -> bool:
        """Take a transaction at once; false where that has to wait.

        Raises `RejectedTransaction`, and `OutcomeUnknown` where the network fails with it.
        """
        source, sender = self.source, transaction.sender
        if not (self.is_at_rest and source.is_short_transaction(transaction)):
            return False
        try:
            why = self._refusal(partial(source.take, transaction, may_replace=may_replace))
            source.run_immediate()
            nonce = source.next_nonce(sender)
        except BaseException as error:
            self.fail(error)
            raise OutcomeUnknown from error
        self._announce_done({sender: nonce})
        self._count(is_accepted=why is None)
        if why is not None:
            raise RejectedTransaction(why)
        return True

    def try_execute(self, command: AnyCommand) -> Any:  # noqa: ANN401, its own
        """Execute a command at once, or return `WOULD_BLOCK`; raises `RefusedCommand`."""
        lazily = self._hints_forgotten is not None
        if not (self.is_at_rest and self.source.is_short(command, lazily=lazily)):
            return WOULD_BLOCK
        try:
            done = self._executed_or_refused(command, lazily=lazily)
        except BaseException as error:
            self.fail(error)
            raise RefusedCommand(FAILED) from error
        if isinstance(done, RefusedCommand):
            self._announce_done({})
            raise done
        result, nonces, is_stale = done
        if is_stale:
            self._forget_hints()
            if self._hints_forgotten is not None:
                self._hints_forgotten()
        self._announce_done(nonces)
        return result

    def _announce_done(self, nonces: dict[bytes, int]) -> None:
        """Announce what has happened, and wake up if something is due sooner now."""
        self._note_uncommitted()
        self._thread.announce_commit()
        for sender, nonce in nonces.items():
            self._hint(sender, nonce)
        if self.source.next_due_ns < self._rests_until_ns:
            self._wake.set()

    def wake(self) -> None:
        """Look again at what is due."""
        self._wake.set()

    def fail(self, failure: BaseException) -> None:
        """End as if what failed had failed here."""
        self._failure = failure
        self._wake.set()

    def announced_nonce(self, sender: bytes) -> int:
        return self._nonces.get(sender, 0)

    def hints(self) -> Iterator[ToWorker]:
        """The hints for a worker that has just connected."""
        for sender, nonce in self._nonces.items():
            yield NextNonce(self.name, sender, nonce)

    def stop(self) -> None:
        """End after the commit that is under way."""
        self._stopping = True
        self._wake.set()

    async def run(self) -> None:
        """Run until stopped."""
        while not self._stopping:
            self._wake.clear()
            if self._failure is not None:
                raise self._failure
            if self._submitted:
                await self._submit_all(self._submitted.start(self._clock.monotonic_ns()))
            elif self._commands:
                await self._execute_next()
            if self._queries:
                await self._queries.answer(self._on_thread, self.source)
            due_ns = self.source.next_due_ns
            left = due_ns - self._clock.monotonic_ns()
            if left <= 0:
                self._correct_hints(*await self._on_thread(self._tick))
            else:
                self._rests_until_ns = due_ns
                await self._rest(left / 1e9)

    async def close(self) -> None:
        """Close the source, and end the thread even where that fails."""
        self._submitted.refuse_all()
        self._queries.refuse_all()
        for request in self._commands:
            request.refuse()
        self._commands.clear()
        try:
            self.flush()
        finally:
            await self._thread.close(self.source.close)

    async def _on_thread(self, work: Callable[[], T]) -> T:
        return await self._do(work, is_short=False)

    async def _do(self, work: Callable[[], T], *, is_short: bool) -> T:
        """Run work here or on the thread, and send workers a hint of its commit."""
        self.flush()  # reads go on meanwhile
        if not is_short:
            return await self._thread.run(work)
        done = work()
        self._thread.announce_commit()
        return done

    async def _rest(self, seconds: float) -> None:
        """Wait for what is due, or for a transaction."""
        if self._submitted or self._queries or self._commands or self._stopping or self._failure:
            return
        handle = asyncio.get_running_loop().call_later(seconds, self._wake.set)
        self._is_resting = True
        try:
            await self._wake.wait()
        finally:
            self._is_resting = False
            handle.cancel()

    async def _submit_all(self, portion: list[BusRequest]) -> None:
        """Give transactions to the source, then hints to all workers, then replies.

        In this order: a client that has its reply may ask any worker for the next nonce.
        """
        submissions = [each.submission for each in portion]
        is_short = self.source.are_short(
            [each.raw for each in submissions], [each.sender for each in submissions]
        )
        outcomes = await self._do(lambda: self._judge_all(portion), is_short=is_short)
        for request, (failure, nonce) in zip(portion, outcomes, strict=True):
            self._hint(request.submission.sender, nonce)
            self._count(is_accepted=failure is None)
            if failure is None:
                request.finish()
            else:
                request.fail(failure)

    def _count(self, *, is_accepted: bool) -> None:
        (self._metrics.accepted if is_accepted else self._metrics.rejected).add()

    async def _execute_next(self) -> None:
        """Execute the next command; consecutive ones that set accounts together."""
        together: list[BusRequest] = []
        while self._commands and len(together) < MOST_TOGETHER:
            if not isinstance(self._commands[0].call.body, SetAccount | AddBalance):
                break
            together.append(self._commands.popleft())
        if len(together) > 1:
            await self._set_accounts(together)
        else:
            await self._execute_one(together[0] if together else self._commands.popleft())

    async def _set_accounts(self, requests: list[BusRequest]) -> None:
        now_ns = self._clock.monotonic_ns()
        for request in requests:
            if request.is_late(now_ns):
                request.refuse()
        requests = [each for each in requests if not each.is_late(now_ns)]
        commands = [each.call.body for each in requests]
        try:
            outcomes, nonces, is_stale = await self._on_thread(
                lambda: (
                    self.source.execute_together(commands),  # type: ignore[arg-type]
                    self.source.next_nonces(),
                    self._hints_are_stale(),
                ),
            )
        except BaseException:
            for request in requests:
                request.fail(RefusedCommand(FAILED))
            raise
        await self._correct_workers(nonces, is_stale=is_stale)
        for request, refusal in zip(requests, outcomes, strict=True):
            if refusal is None:
                request.finish()
            else:
                request.fail(refusal)

    async def _correct_workers(self, nonces: dict[bytes, int], *, is_stale: bool) -> None:
        """Send workers these nonces; if earlier hints are stale, they drop all first.

        Every worker's view is of the last commit, so only hints have to be dropped.
        """
        if is_stale:
            self._forget_hints()
            if self._announce_change is not None:
                await self._announce_change(self.name)
        for sender, nonce in nonces.items():
            self._hint(sender, nonce)

    def _forget_hints(self) -> None:
        self._nonces.clear()
        self._announced_nonces = {}

    def _hints_are_stale(self) -> bool:
        """On the thread: whether a nonce may be lower than its last hint."""
        if self._announced_nonces is None:
            return True
        next_nonce = self.source.next_nonce
        return any(next_nonce(sender) < nonce for sender, nonce in self._announced_nonces.items())

    async def _execute_one(self, request: BusRequest) -> None:
        """Execute a command, then announce the change to all workers, then reply."""
        if request.is_late(self._clock.monotonic_ns()):
            request.refuse()
            return
        command = request.call.body
        assert isinstance(command, Command), "other calls do not get here"
        try:
            is_short = self.source.is_short(command)
            result, nonces, is_stale = await self._do(
                lambda: self._execute(command), is_short=is_short
            )
        except RefusedCommand as refusal:
            request.fail(refusal)
            return
        except BaseException:
            request.fail(RefusedCommand(FAILED))
            raise
        await self._correct_workers(nonces, is_stale=is_stale)
        request.finish(result)

    def _execute(
        self, command: AnyCommand, *, lazily: bool = False
    ) -> tuple[Any, dict[bytes, int], bool]:
        """On the thread: the command's result, the nonces of senders in the pool.

        The last value says whether hints are stale by now.
        """
        result = self.source.execute(command, lazily=lazily)
        is_stale = not command.keeps_hints and self._hints_are_stale()
        is_stale |= command.changes_output  # workers check it after a change
        return result, self.source.next_nonces(), is_stale

    def _executed_or_refused(
        self, command: AnyCommand, *, lazily: bool
    ) -> tuple[Any, dict[bytes, int], bool] | RefusedCommand:
        try:
            return self._execute(command, lazily=lazily)
        except RefusedCommand as refusal:
            return refusal

    def _judge_all(self, portion: list[BusRequest]) -> list[tuple[ForeblockError | None, int]]:
        outcomes = [self._judge(each) for each in portion]
        self.source.run_immediate()
        return outcomes

    def _judge(self, request: BusRequest) -> tuple[ForeblockError | None, int]:
        """On the thread: why a transaction is refused, and its sender's next nonce.

        The deadline counts at this very moment: the thread, or the process, may have been
        stopped for any time since the transaction was started.
        """
        submission = request.submission
        failure: ForeblockError | None = None
        if request.is_late(self._clock.monotonic_ns()):
            failure = SequencerUnavailable()
        elif (why := self._submit(submission)) is not None:
            failure = RejectedTransaction(why)
        return failure, self.source.next_nonce(submission.sender)

    def _submit(self, submission: Submit) -> str | None:
        take = self.source.submit if submission.may_replace else self.source.submit_next
        return self._refusal(partial(take, submission.raw, submission.sender))

    def _refusal(self, take: Callable[[], None]) -> str | None:
        """The reason why a transaction is refused; None if it is accepted."""
        try:
            take()
        except ForeblockError as refusal:
            return str(refusal)
        except Exception:
            log.exception("submission_failed", network=self.name)
            return "internal error"
        return None

    def _tick(self) -> tuple[dict[bytes, int], int]:
        """On the thread: do what is due; return the nonces of hinted senders and the pool size."""
        source = self.source
        source.tick()
        return {sender: source.next_nonce(sender) for sender in self._nonces}, source.waiting

    def _correct_hints(self, nonces: dict[bytes, int], waiting: int) -> None:
        """Correct hints that no longer hold; drop all where no transaction waits."""
        self._metrics.pool.set(waiting)
        for sender, nonce in nonces.items():
            self._hint(sender, nonce)
        if not waiting or len(nonces) > HINTS:
            self._nonces.clear()

    def _hint(self, sender: bytes, nonce: int) -> None:
        if self._nonces.get(sender) != nonce:
            self._nonces[sender] = nonce
            self._broadcast(NextNonce(self.name, sender, nonce))
            if self._announced_nonces is not None:
                self._announced_nonces[sender] = nonce
                if len(self._announced_nonces) > MOST_CHECKED:
                    self._announced_nonces = None
