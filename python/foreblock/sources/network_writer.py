"""One network in the writer process: its sequencer, ticking on a thread of its own.

The engine's work and every commit of the network happen on that one thread, so that one
network's disk never delays another network, and the sequencer needs no locks. The loop only
waits: for the next thing that is due, and for transactions, which are handed over in
portions from a `SubmissionQueue`. Where commits wait for no disk, what takes less than handing
it over is done on the loop itself, while the thread rests. Work behind the head comes in slices,
so that due indices and transactions come in between. Questions about the pool are answered
after transactions (`pool_questions`), so that who has sent one finds it.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, Final, TypeVar

import structlog

from foreblock.bus.commands import (
    AddBalance,
    AnyCommand,
    CloseFlashblock,
    Equivocate,
    Impersonate,
    ImpersonateAll,
    SendUnsigned,
    SetAccount,
    SetFaults,
    SetFlashblockInterval,
    SetMining,
    SetPrinting,
    TakeSnapshot,
)
from foreblock.bus.deferral import NOT_DONE
from foreblock.bus.exchange import Respond
from foreblock.bus.frames import (
    Accepted,
    AskPool,
    Committed,
    Done,
    NextNonce,
    Order,
    Refused,
    Rejected,
    Submit,
    ToWorker,
)
from foreblock.clock import Clock
from foreblock.errors import (
    ForeblockError,
    OutcomeUnknown,
    RefusedCommand,
    RejectedTransaction,
    SequencerUnavailable,
)
from foreblock.metrics.meters import NetworkMetrics
from foreblock.sources.chain_source import ChainSource
from foreblock.sources.pool_questions import PoolQuestions
from foreblock.sources.submission_queue import SubmissionQueue, Submitted
from foreblock.types import Transaction

HINTS: Final = 10_000  # senders whose nonces are followed
MOST_TOGETHER: Final = 256  # commands of one commit
FAILED: Final = "the command failed, and the chain is begun anew"
# Commands after which all that workers were told still holds.
ADDING: Final = (
    CloseFlashblock,
    Equivocate,
    Impersonate,
    ImpersonateAll,
    SendUnsigned,
    SetFaults,
    SetFlashblockInterval,
    SetMining,
    TakeSnapshot,
)
MOST_CHECKED: Final = 16  # senders whose hints are checked after a command, in some 50 µs

T = TypeVar("T")

log = structlog.get_logger()


def _nothing() -> None:
    pass


class NetworkWriter:
    """Runs one source."""

    def __init__(
        self,
        name: str,
        source: ChainSource,
        clock: Clock,
        executor: ThreadPoolExecutor,
        tell: Callable[[ToWorker], None],
        tell_of_change: Callable[[str], Awaitable[None]] | None = None,
        metrics: NetworkMetrics | None = None,
    ) -> None:
        """`executor` has one thread. `tell` reaches all workers; it is called on the loop.

        `tell_of_change` returns when all workers have heard that the chain was changed.
        """
        self.name: Final = name
        self._source: Final = source
        self._clock: Final = clock
        self._executor: Final = executor
        self._tell: Final = tell
        self._tell_of_change: Final = tell_of_change
        self._metrics: Final = metrics or NetworkMetrics.private()
        self._orders: Final[deque[tuple[Order, Respond]]] = deque()
        self._nonces: dict[bytes, int] = {}  # that workers were told, of who may wait
        # All that they remember; where that is much, nothing, and they may remember anything.
        self._told: dict[bytes, int] | None = {}
        self._submitted: Final = SubmissionQueue()
        self._asked: Final = PoolQuestions(clock)
        self._wake: Final = asyncio.Event()
        self._stopping = False
        self._is_resting = False  # nothing is done
        self._rests_until_ns = 0
        self._changed: Callable[[], None] = _nothing
        self._settle: Callable[[], None] = _nothing  # before anything is done
        self._joined: Callable[[], AbstractContextManager[None]] = nullcontext
        self._failure: BaseException | None = None
        self._told_commit = source.last_commit
        for sender, nonce in source.next_nonces().items():  # of a saved pool
            self._hint(sender, nonce)

    def submit(self, message: Submit, respond: Respond) -> None:
        """Submit a transaction to the source; `respond` gets the answers."""
        self._submitted.put(Submitted(message, respond), self._clock.monotonic_ns())
        self._wake.set()

    def order(self, message: Order, respond: Respond) -> None:
        """Change the chain by a command; `respond` gets the answer."""
        self._orders.append((message, respond))
        self._wake.set()

    def ask(self, message: AskPool, respond: Respond) -> None:
        """Ask about the pool; `respond` gets the parts of the answer."""
        self._asked.put(message, respond)
        self._wake.set()

    @property
    def is_at_rest(self) -> bool:
        """Whether nothing is done, and nothing waits to be."""
        waits = self._orders or self._submitted or self._asked
        return self._is_resting and not (waits or self._stopping or self._failure)

    def do_here(self, changed: Callable[[], None]) -> None:
        """Let `submit_now` and `execute_now` be called, by the loop of the only worker.

        `changed` lets it forget what it was told.
        """
        self._changed = changed

    def submit_now(self, transaction: Transaction, *, may_replace: bool) -> bool:
        """Take a transaction at once; false where that has to wait.

        Raises `RejectedTransaction`, and `OutcomeUnknown` where the network fails with it.
        """
        source, sender = self._source, transaction.sender
        if not (self.is_at_rest and source.takes_now(transaction)):
            return False
        try:
            with self._joined():
                why = self._refusal(partial(source.take, transaction, may_replace=may_replace))
                source.settle()
            nonce = source.next_nonce(sender)
        except BaseException as error:
            self.fail(error)
            raise OutcomeUnknown from error
        self._done_here({sender: nonce})
        self._count(is_accepted=why is None)
        if why is not None:
            raise RejectedTransaction(why)
        return True

    def execute_now(self, command: AnyCommand) -> Any:  # noqa: ANN401, its own
        """Carry out a command at once, or give `NOT_DONE`; raises `RefusedCommand`."""
        if not (self.is_at_rest and self._source.is_short(command)):
            return NOT_DONE
        try:
            with self._joined():
                done = self._executed_or_refused(command)
        except BaseException as error:
            self.fail(error)
            raise RefusedCommand(FAILED) from error
        if isinstance(done, RefusedCommand):
            self._done_here({})
            raise done
        result, nonces, is_wrong = done
        if is_wrong:
            self._forget_told()
            self._changed()
        self._done_here(nonces)
        return result

    def _done_here(self, nonces: dict[bytes, int]) -> None:
        """Say what has happened, and look again when something is due, if that is sooner now."""
        self._tell_of_commit()
        for sender, nonce in nonces.items():
            self._hint(sender, nonce)
        if self._source.next_due_ns < self._rests_until_ns:
            self._wake.set()

    def put_off_to(
        self, settle: Callable[[], None], joined: Callable[[], AbstractContextManager[None]]
    ) -> None:
        """Call this on the loop before anything is done, to do what was put off until then.

        `joined` does so, too, for a change that is made on the loop inside of it.
        """
        self._settle, self._joined = settle, joined

    def settled(self, forget: Callable[[], None], taken_back: bool) -> None:  # noqa: FBT001, a callback
        """Hear that what was put off is done; `forget` lets workers forget hints that are wrong."""
        if taken_back and self._is_told_wrong():
            self._forget_told()
            forget()
        self._tell_of_commit()

    def fail(self, failure: BaseException) -> None:
        """End as if what failed had failed here."""
        self._failure = failure
        self._wake.set()

    def told_nonce(self, sender: bytes) -> int:
        """The next nonce of a sender that workers were told last; 0 if none."""
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
        """Run until told to stop."""
        while not self._stopping:
            self._wake.clear()
            if self._failure is not None:
                raise self._failure
            if self._submitted:
                await self._take_in(self._submitted.take_up(self._clock.monotonic_ns()))
            elif self._orders:
                await self._carry_out_next()
            if self._asked:
                await self._asked.answer(self._on_thread, self._source)
            due_ns = self._source.next_due_ns
            left = due_ns - self._clock.monotonic_ns()
            if left <= 0:
                self._correct_hints(*await self._on_thread(self._tick))
            else:
                self._rests_until_ns = due_ns
                await self._rest(left / 1e9)

    async def close(self) -> None:
        """Close the source, and end the thread even where that fails."""
        self._submitted.refuse_all()
        self._asked.refuse_all()
        for message, respond in self._orders:
            respond(Refused(message.id, str(SequencerUnavailable())))
        self._orders.clear()
        try:
            await self._on_thread(self._source.close)
        finally:
            self._executor.shutdown()

    async def _on_thread(self, work: Callable[[], T]) -> T:
        return await self._do(work, is_short=False)

    async def _do(self, work: Callable[[], T], *, is_short: bool) -> T:
        """Do something here or on the thread, and give workers a hint of what it commits."""
        self._settle()
        if is_short:
            done = work()
        else:
            done = await asyncio.get_running_loop().run_in_executor(self._executor, work)
        self._tell_of_commit()
        return done

    def _tell_of_commit(self) -> None:
        if self._told_commit != self._source.last_commit:
            self._told_commit = self._source.last_commit
            self._tell(Committed(self.name, self._told_commit))

    async def _rest(self, seconds: float) -> None:
        """Wait for what is due, or for a transaction."""
        if self._submitted or self._asked or self._orders or self._stopping or self._failure:
            return
        handle = asyncio.get_running_loop().call_later(seconds, self._wake.set)
        self._is_resting = True
        try:
            await self._wake.wait()
        finally:
            self._is_resting = False
            handle.cancel()

    async def _take_in(self, portion: list[Submitted]) -> None:
        """Give transactions to the source, then hints to all workers, then answers.

        In this order: a client that has its answer may ask any worker for the next nonce.
        """
        messages = [each.message for each in portion]
        is_short = self._source.takes_shortly(
            [each.raw for each in messages], [each.sender for each in messages]
        )
        outcomes = await self._do(lambda: self._judge_all(messages), is_short=is_short)
        for (message, respond), (answer, nonce) in zip(portion, outcomes, strict=True):
            self._hint(message.sender, nonce)
            self._count(is_accepted=isinstance(answer, Accepted))
            respond(answer)

    def _count(self, *, is_accepted: bool) -> None:
        (self._metrics.accepted if is_accepted else self._metrics.rejected).add()

    async def _carry_out_next(self) -> None:
        """Execute the next command; those that set accounts together, as far as they wait."""
        together: list[tuple[Order, Respond]] = []
        while self._orders and len(together) < MOST_TOGETHER:
            if not isinstance(self._orders[0][0].command, SetAccount | AddBalance):
                break
            together.append(self._orders.popleft())
        if len(together) > 1:
            await self._set_accounts(together)
        else:
            await self._carry_out(*(together[0] if together else self._orders.popleft()))

    async def _set_accounts(self, orders: list[tuple[Order, Respond]]) -> None:
        now_ns = self._clock.monotonic_ns()
        late = [each for each in orders if now_ns >= each[0].deadline_ns]
        for message, respond in late:
            respond(Refused(message.id, str(SequencerUnavailable())))
        orders = [each for each in orders if now_ns < each[0].deadline_ns]
        commands = [message.command for message, _ in orders]
        try:
            outcomes, nonces, is_wrong = await self._on_thread(
                lambda: (
                    self._source.execute_together(commands),  # type: ignore[arg-type]
                    self._source.next_nonces(),
                    self._is_told_wrong(),
                ),
            )
        except BaseException:
            for message, respond in orders:
                respond(Refused(message.id, FAILED))
            raise
        await self._correct_workers(nonces, is_wrong=is_wrong)
        for (message, respond), refusal in zip(orders, outcomes, strict=True):
            done = Done(message.id, None)
            respond(done if refusal is None else Refused(message.id, str(refusal)))

    async def _correct_workers(self, nonces: dict[bytes, int], *, is_wrong: bool) -> None:
        """Tell workers these nonces; where what they were told is wrong, they forget that first.

        Views are of the last commit in every worker; only hints have to be forgotten.
        """
        if is_wrong:
            self._forget_told()
            if self._tell_of_change is not None:
                await self._tell_of_change(self.name)
        for sender, nonce in nonces.items():
            self._hint(sender, nonce)

    def _forget_told(self) -> None:
        self._nonces.clear()
        self._told = {}

    def _is_told_wrong(self) -> bool:
        """On the thread: whether a nonce may have fallen that workers were told."""
        if self._told is None:
            return True
        next_nonce = self._source.next_nonce
        return any(next_nonce(sender) < nonce for sender, nonce in self._told.items())

    async def _carry_out(self, message: Order, respond: Respond) -> None:
        """Execute a command, then let all workers hear of it, then answer."""
        if self._clock.monotonic_ns() >= message.deadline_ns:
            respond(Refused(message.id, str(SequencerUnavailable())))
            return
        command = message.command
        try:
            is_short = self._source.is_short(command)
            result, nonces, is_wrong = await self._do(
                lambda: self._execute(command), is_short=is_short
            )
        except RefusedCommand as refusal:
            respond(Refused(message.id, str(refusal)))
            return
        except BaseException:
            respond(Refused(message.id, FAILED))
            raise
        await self._correct_workers(nonces, is_wrong=is_wrong)
        respond(Done(message.id, result))

    def _execute(self, command: AnyCommand) -> tuple[Any, dict[bytes, int], bool]:
        """On the thread: what the command gives, the nonces of those whose turn comes.

        The last says whether what workers were told is wrong by now.
        """
        result = self._source.execute(command)
        is_wrong = not isinstance(command, ADDING) and self._is_told_wrong()
        is_wrong |= isinstance(command, SetPrinting)  # workers look at it when they hear of it
        return result, self._source.next_nonces(), is_wrong

    def _executed_or_refused(
        self, command: AnyCommand
    ) -> tuple[Any, dict[bytes, int], bool] | RefusedCommand:
        try:
            return self._execute(command)
        except RefusedCommand as refusal:
            return refusal

    def _judge_all(self, messages: list[Submit]) -> list[tuple[Accepted | Rejected, int]]:
        outcomes = [self._judge(each) for each in messages]
        self._source.settle()
        return outcomes

    def _judge(self, message: Submit) -> tuple[Accepted | Rejected, int]:
        """On the thread: the answer to a transaction, and its sender's next nonce.

        The deadline counts at this very moment: the thread, or the process, may have been
        stopped for any time since the transaction was taken up.
        """
        if self._clock.monotonic_ns() >= message.deadline_ns:
            answer: Accepted | Rejected = Rejected(message.id, str(SequencerUnavailable()))
        else:
            answer = self._submit(message)
        return answer, self._source.next_nonce(message.sender)

    def _submit(self, message: Submit) -> Accepted | Rejected:
        take = self._source.submit if message.may_replace else self._source.submit_next
        why = self._refusal(partial(take, message.raw, message.sender))
        return Accepted(message.id) if why is None else Rejected(message.id, why)

    def _refusal(self, take: Callable[[], None]) -> str | None:
        """Why a transaction is not taken; none where it is."""
        try:
            take()
        except ForeblockError as refusal:
            return str(refusal)
        except Exception:
            log.exception("submission_failed", network=self.name)
            return "internal error"
        return None

    def _tick(self) -> tuple[dict[bytes, int], int]:
        """On the thread: do what is due; gives the nonces of hinted senders, and how many wait."""
        source = self._source
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
            self._tell(NextNonce(self.name, sender, nonce))
            if self._told is not None:
                self._told[sender] = nonce
                if len(self._told) > MOST_CHECKED:
                    self._told = None
