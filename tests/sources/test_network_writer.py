"""One network in the writer: ticks when due, answers in order, hints that are taken back."""

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from foreblock.bus.commands import AddBalance, AnyCommand, Mine, SendUnsigned, SetAccount
from foreblock.bus.deferral import NOT_DONE
from foreblock.bus.frames import (
    Accepted,
    AskPool,
    Committed,
    Done,
    NextNonce,
    Order,
    PoolNotRead,
    PoolPart,
    Refused,
    Rejected,
    Submit,
    TakenUp,
    ToWorker,
    WaitingTransaction,
)
from foreblock.clock import DrivenClock
from foreblock.errors import RefusedCommand, RejectedTransaction
from foreblock.sequencer.pool_look import PoolWindow
from foreblock.sequencer.transaction_pool import TransactionPool
from foreblock.sources import pool_questions
from foreblock.sources.network_writer import MOST_CHECKED, NetworkWriter
from foreblock.types import Transaction
from support.chains.sequencing import TERMS, Accounts, transfer
from support.servers.waiting import PATIENCE

ALICE, BOB = b"\1" * 20, b"\2" * 20
NEVER = 1 << 62
DEADLINE = 2 * 10**9


class Source:
    """Counts what is asked of it, and on which threads."""

    def __init__(self) -> None:
        self.due = NEVER
        self.ticks = 0
        self.together: list[int] = []
        self.nonces: dict[bytes, int] = {}
        self.waiting = 0
        self.pool = TransactionPool(TERMS, Accounts())
        self.threads: set[int] = set()
        self.closed = False
        self.settled = 0
        self.commands: list[AnyCommand] = []
        self.outcome: object = None  # of commands
        self.last_commit = 1
        self.short = False
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

    def settle(self) -> None:
        self.settled += 1

    def is_short(self, command: AnyCommand) -> bool:
        return self.short and command != Mine(1_000)

    def takes_shortly(self, raws: Sequence[bytes], senders: Sequence[bytes]) -> bool:
        return self.short and len(raws) == len(senders) == 1

    def execute_together(
        self, commands: Sequence[SetAccount | AddBalance]
    ) -> list[RefusedCommand | None]:
        self.together.append(len(commands))
        return [None for _ in commands]

    def execute(self, command: AnyCommand) -> object:
        self.threads.add(threading.get_ident())
        self.commands.append(command)
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

    def takes_now(self, transaction: Transaction) -> bool:  # noqa: ARG002, all are alike
        return self.short

    def next_nonce(self, sender: bytes) -> int:
        return self.nonces.get(sender, 0)

    def next_nonces(self) -> dict[bytes, int]:
        return dict(self.nonces)

    @property
    def window(self) -> PoolWindow:
        self.threads.add(threading.get_ident())
        return PoolWindow(self.pool, {})

    def close(self) -> None:
        self.closed = True


class Stage:
    """A writer over a source, and everything that is said, in order."""

    def __init__(self) -> None:
        self.source = Source()
        self.clock = DrivenClock()
        self.said: list[ToWorker] = []
        self.writer = NetworkWriter(
            "main", self.source, self.clock, ThreadPoolExecutor(1), self.said.append
        )

    async def run(self, scene: Callable[["Stage"], object], until: Callable[[], bool]) -> None:
        running = asyncio.create_task(self.writer.run())
        scene(self)
        async with asyncio.timeout(PATIENCE):
            while not until():  # noqa: ASYNC110, what is waited for has no event
                await asyncio.sleep(0)
        self.writer.stop()
        await running
        await self.writer.close()
        assert self.source.closed
        assert self.source.short or threading.get_ident() not in self.source.threads

    def ask(self, number: int, deadline_ns: int = DEADLINE, *about: bytes) -> None:
        message = AskPool(number, "main", "found" if about else "all", about, deadline_ns)
        self.writer.ask(message, self.said.append)

    def submit(self, number: int, raw: bytes, sender: bytes = ALICE) -> None:
        message = Submit(number, "main", raw, sender, DEADLINE)
        self.writer.submit(message, self.said.append)


def play(scene: Callable[[Stage], object], until: Callable[[Stage], bool]) -> Stage:
    async def run() -> Stage:
        stage = Stage()
        await stage.run(scene, lambda: until(stage))
        return stage

    return asyncio.run(run())


def test_what_is_due_is_done_on_the_network_s_own_thread() -> None:
    stage = play(
        lambda stage: setattr(stage.source, "due", 0), lambda stage: stage.source.ticks == 1
    )
    assert len(stage.source.threads) == 1


def test_everybody_hears_the_next_nonce_before_the_sender_has_its_answer() -> None:
    stage = play(lambda stage: stage.submit(7, b"good"), lambda stage: stage.source.ticks > 0)
    assert stage.said[:3] == [TakenUp((7,)), NextNonce("main", ALICE, 1), Accepted(7)]


def test_a_refusal_is_told_in_its_own_words_and_a_failure_in_none() -> None:
    def scene(stage: Stage) -> None:
        stage.submit(1, b"bad")
        stage.submit(2, b"broken", BOB)

    stage = play(scene, lambda stage: sum(isinstance(each, Rejected) for each in stage.said) == 2)
    answers = [each for each in stage.said if isinstance(each, Rejected)]
    assert answers == [Rejected(1, "nonce too low"), Rejected(2, "internal error")]


def test_hints_that_are_no_longer_so_are_taken_back() -> None:
    def scene(stage: Stage) -> None:
        def drop() -> None:
            stage.source.nonces[ALICE] = 0

        stage.source.on_tick = drop
        stage.submit(1, b"good")

    stage = play(scene, lambda stage: NextNonce("main", ALICE, 0) in stage.said)
    assert stage.said[1:] == [NextNonce("main", ALICE, 1), Accepted(1), NextNonce("main", ALICE, 0)]
    assert list(stage.writer.hints()) == [NextNonce("main", ALICE, 0)]


def test_where_nothing_waits_there_is_nothing_to_hint_at() -> None:
    def scene(stage: Stage) -> None:
        def include() -> None:
            stage.source.waiting = 0

        stage.source.on_tick = include
        stage.submit(1, b"good")

    stage = play(scene, lambda stage: stage.source.ticks > 0 and not list(stage.writer.hints()))
    assert stage.said[1:] == [NextNonce("main", ALICE, 1), Accepted(1)]


def test_what_is_past_its_deadline_is_thrown_away() -> None:
    """The source is stuck for longer than a client waits; what came meanwhile is not taken."""

    def scene(stage: Stage) -> None:
        def stuck() -> None:
            stage.submit(1, b"good")
            stage.clock.advance(DEADLINE)

        stage.source.on_tick = stuck
        stage.source.due = 0

    stage = play(scene, lambda stage: bool(stage.said))
    assert stage.said == [Rejected(1, "sequencer not available")]
    assert stage.source.waiting == 0


def test_the_deadline_counts_when_a_transaction_is_put_before_the_source() -> None:
    """It was taken up in time; who waits for it is told, or knows that it does not know."""

    def scene(stage: Stage) -> None:
        stage.source.on_submit = lambda: stage.clock.advance(DEADLINE)
        stage.submit(1, b"good")
        stage.submit(2, b"good", BOB)

    stage = play(scene, lambda stage: stage.source.ticks > 0)
    answers = [each for each in stage.said if not isinstance(each, NextNonce)]
    assert answers == [TakenUp((1, 2)), Accepted(1), Rejected(2, "sequencer not available")]
    assert stage.source.nonces == {ALICE: 1}


def test_who_still_waits_at_the_end_is_refused() -> None:
    async def run() -> list[ToWorker]:
        stage = Stage()
        stage.submit(1, b"good")
        await stage.writer.close()
        return stage.said

    assert asyncio.run(run()) == [Rejected(1, "sequencer not available")]


def test_questions_are_answered_on_the_thread_and_after_transactions() -> None:
    waits = transfer(0, 0)

    def scene(stage: Stage) -> None:
        def add() -> None:
            stage.source.pool.add(waits)

        stage.source.on_submit = add
        stage.ask(1)
        stage.submit(2, b"good")

    stage = play(scene, lambda stage: any(isinstance(each, PoolPart) for each in stage.said))
    part = next(each for each in stage.said if isinstance(each, PoolPart))
    shown = WaitingTransaction(waits.hash, waits.raw, waits.sender, can_run=True)
    assert part == PoolPart(1, (shown,), pending=1)
    assert len(stage.source.threads) == 1


def test_question_that_is_late_or_too_large_or_one_too_many_has_no_answer() -> None:
    def scene(stage: Stage) -> None:
        stage.ask(1, stage.clock.monotonic_ns())
        stage.ask(2, DEADLINE, *([b"\0" * 32] * 33))
        for number in range(pool_questions.MOST):
            stage.ask(10 + number)

    stage = play(scene, lambda stage: PoolPart(10 + pool_questions.MOST - 2, ()) in stage.said)
    assert [each for each in stage.said if isinstance(each, PoolNotRead)] == [
        PoolNotRead(2),
        PoolNotRead(10 + pool_questions.MOST - 1),
    ]
    assert PoolPart(1, ()) not in stage.said


def test_questions_that_wait_when_a_network_ends_are_refused() -> None:
    async def run() -> list[ToWorker]:
        stage = Stage()
        stage.ask(1)
        await stage.writer.close()
        return stage.said

    assert asyncio.run(run()) == [PoolNotRead(1)]


# --- Commands --------------------------------------------------------------------------


def order(stage: Stage, number: int, deadline_ns: int = DEADLINE) -> None:
    stage.writer.order(Order(number, "main", Mine(number), deadline_ns), stage.said.append)


def test_commands_are_carried_out_in_order_after_what_was_submitted() -> None:
    def scene(stage: Stage) -> None:
        stage.source.outcome = 7
        stage.submit(1, b"raw")
        order(stage, 2)
        order(stage, 3)

    stage = play(scene, lambda stage: Done(3, 7) in stage.said)
    assert stage.source.commands == [Mine(2), Mine(3)]
    assert stage.source.settled == 1
    said = [each for each in stage.said if isinstance(each, Accepted | Done)]
    assert said == [Accepted(1), Done(2, 7), Done(3, 7)]
    assert len(stage.source.threads) == 1


def listen_for_changes(stage: Stage) -> None:
    """Note when workers forget."""

    async def told(_: str) -> None:
        stage.said.append(Done(0, "forgotten"))

    stage.writer._tell_of_change = told  # type: ignore[misc]


def test_after_a_nonce_has_fallen_workers_forget_and_hear_again_which_come_next() -> None:
    """Also of senders of whom nothing waits any more: workers still remember their nonces."""

    def scene(stage: Stage) -> None:
        def include() -> None:
            stage.source.waiting = 0

        def take_back() -> None:
            stage.source.nonces = {BOB: 2, ALICE: 1}

        listen_for_changes(stage)
        stage.source.on_tick, stage.source.on_command = include, take_back
        for number in range(2):
            stage.submit(number, b"raw")
            stage.submit(number, b"raw", BOB)
        order(stage, 7)

    stage = play(scene, lambda stage: Done(7) in stage.said)
    after = stage.said[stage.said.index(Done(0, "forgotten")) + 1 :]
    assert after[:3] == [NextNonce("main", BOB, 2), NextNonce("main", ALICE, 1), Done(7)]


def test_workers_forget_nothing_while_no_nonce_falls() -> None:
    def scene(stage: Stage) -> None:
        def go_on() -> None:
            stage.source.nonces[BOB] = 5

        listen_for_changes(stage)
        stage.source.on_command = go_on
        stage.submit(1, b"raw")
        stage.submit(2, b"raw", BOB)
        order(stage, 3)

    stage = play(scene, lambda stage: Done(3) in stage.said)
    assert Done(0, "forgotten") not in stage.said
    assert stage.said[-2:] == [NextNonce("main", BOB, 5), Done(3)]


def test_who_was_told_of_many_senders_forgets_after_every_command() -> None:
    def scene(stage: Stage) -> None:
        listen_for_changes(stage)
        for number in range(MOST_CHECKED + 1):
            stage.submit(number, b"raw", bytes([number]) * 20)
        order(stage, 30)
        order(stage, 31)

    stage = play(scene, lambda stage: Done(31) in stage.said)
    assert stage.said.count(Done(0, "forgotten")) == 2


def test_workers_forget_nothing_after_a_command_that_only_adds() -> None:
    def scene(stage: Stage) -> None:
        listen_for_changes(stage)
        stage.source.nonces[BOB] = 3
        asked = SendUnsigned(BOB, ALICE, bytes(32), b"", 21_000)
        stage.writer.order(Order(1, "main", asked, DEADLINE), stage.said.append)

    stage = play(scene, lambda stage: Done(1) in stage.said)
    assert stage.said[:2] == [NextNonce("main", BOB, 3), Done(1)]


def test_one_that_may_not_replace_another_is_refused() -> None:
    def scene(stage: Stage) -> None:
        for number in (1, 2):
            message = Submit(number, "main", b"raw", ALICE, DEADLINE, may_replace=False)
            stage.writer.submit(message, stage.said.append)

    refused = Rejected(2, "replacement transaction underpriced")
    stage = play(scene, lambda stage: refused in stage.said)
    assert Accepted(1) in stage.said


def test_command_that_is_refused_or_late_is_answered() -> None:
    def scene(stage: Stage) -> None:
        stage.source.outcome = RefusedCommand("no")
        order(stage, 1, stage.clock.monotonic_ns())
        order(stage, 2)

    stage = play(scene, lambda stage: Refused(2, "no") in stage.said)
    assert Refused(1, "sequencer not available") in stage.said
    assert stage.source.commands == [Mine(2)]


def test_command_that_breaks_the_chain_is_answered_and_ends_the_network() -> None:
    async def run() -> list[ToWorker]:
        stage = Stage()
        stage.source.outcome = ZeroDivisionError()
        order(stage, 1)
        order(stage, 2)
        with pytest.raises(ZeroDivisionError):
            await stage.writer.run()
        await stage.writer.close()
        return stage.said

    assert asyncio.run(run()) == [
        Refused(1, "the command failed, and the chain is begun anew"),
        Refused(2, "sequencer not available"),
    ]


def test_commands_that_set_accounts_are_carried_out_together_and_in_order() -> None:
    commands: list[AnyCommand] = [
        SetAccount(ALICE, nonce=1),
        AddBalance(ALICE, bytes(32)),
        Mine(),
        SetAccount(BOB),
    ]

    def scene(stage: Stage) -> None:
        stage.source.outcome = 7
        for number, command in enumerate(commands):
            stage.writer.order(Order(number, "main", command, DEADLINE), stage.said.append)

    stage = play(scene, lambda stage: len(stage.said) == len(commands))
    assert stage.source.together == [2]
    assert stage.said == [Done(0, None), Done(1, None), Done(2, 7), Done(3, 7)]


def test_what_is_short_is_done_on_the_loop_and_what_is_long_on_the_thread() -> None:
    here = threading.get_ident()
    threads: list[int] = []

    def scene(stage: Stage) -> None:
        def note() -> None:
            threads.append(threading.get_ident())

        stage.source.short, stage.source.on_command, stage.source.on_submit = True, note, note
        stage.submit(0, b"raw")
        order(stage, 1)
        order(stage, 1_000)

    play(scene, lambda stage: Done(1_000) in stage.said)
    assert [each == here for each in threads] == [True, True, False]


def test_workers_hear_of_commits_before_the_answer() -> None:
    def scene(stage: Stage) -> None:
        def commit() -> None:
            stage.source.last_commit += 1

        stage.source.on_command = commit
        order(stage, 1)
        order(stage, 2)
        stage.ask(3)

    stage = play(scene, lambda stage: PoolPart(3, ()) in stage.said)
    said = [each for each in stage.said if isinstance(each, Committed | Done)]
    assert said == [Committed("main", 2), Done(1), Committed("main", 3), Done(2)]


def at_rest(scene: Callable[[Stage], None], *, stops: bool = True) -> Stage:
    """Play a scene when the writer has nothing to do, and nobody has to be woken."""

    async def run() -> Stage:
        stage = Stage()
        stage.source.short = True
        stage.writer.do_here(lambda: stage.said.append(Done(0, "forgotten")))
        running = asyncio.create_task(stage.writer.run())
        async with asyncio.timeout(PATIENCE):
            while not stage.writer.is_at_rest:  # noqa: ASYNC110, what is waited for has no event
                await asyncio.sleep(0)
        scene(stage)
        if stops:
            stage.writer.stop()
        try:
            await running
        finally:
            await stage.writer.close()
        return stage

    return asyncio.run(run())


def test_a_transaction_is_taken_at_once_where_nothing_else_is_done() -> None:
    sent = transfer(0, 0)

    def scene(stage: Stage) -> None:
        assert stage.writer.submit_now(sent, may_replace=True)
        assert stage.source.settled == 1
        assert stage.said == [NextNonce("main", sent.sender, 1)]
        with pytest.raises(RejectedTransaction, match="replacement"):
            stage.writer.submit_now(sent, may_replace=False)
        stage.submit(1, b"raw")
        assert not stage.writer.submit_now(sent, may_replace=True), "one before it is not done"

    at_rest(scene)


def test_a_transaction_that_takes_long_is_not_taken_at_once() -> None:
    def scene(stage: Stage) -> None:
        stage.source.short = False
        assert not stage.writer.submit_now(transfer(0, 0), may_replace=True)
        assert stage.writer.execute_now(Mine()) is NOT_DONE
        stage.source.short = True
        assert stage.writer.execute_now(Mine(1_000)) is NOT_DONE

    assert not at_rest(scene).source.nonces


def test_a_command_is_carried_out_at_once_where_nothing_else_is_done() -> None:
    def scene(stage: Stage) -> None:
        stage.source.outcome, stage.source.nonces = 7, {ALICE: 2}
        stage.source.on_command = lambda: setattr(stage.source, "last_commit", 2)
        assert stage.writer.execute_now(Mine()) == 7
        assert stage.said == [Committed("main", 2), NextNonce("main", ALICE, 2)]
        stage.source.nonces = {ALICE: 1}
        assert stage.writer.execute_now(Mine()) == 7
        assert stage.said[2:] == [Done(0, "forgotten"), NextNonce("main", ALICE, 1)]
        stage.source.outcome = RefusedCommand("no")
        with pytest.raises(RefusedCommand, match="no"):
            stage.writer.execute_now(Mine())
        assert stage.writer.is_at_rest

    at_rest(scene)


def test_what_is_put_off_comes_before_what_is_done_at_once() -> None:
    def scene(stage: Stage) -> None:
        @contextmanager
        def joined() -> Iterator[None]:
            stage.source.commands.append(Mine(3))
            yield
            stage.source.commands.append(Mine(5))

        stage.writer.put_off_to(lambda: None, joined)
        stage.writer.execute_now(Mine(4))
        assert stage.source.commands == [Mine(3), Mine(4), Mine(5)]

    at_rest(scene)


def test_what_is_done_at_once_and_breaks_the_chain_ends_the_network() -> None:
    def scene(stage: Stage) -> None:
        stage.source.outcome = ZeroDivisionError()
        with pytest.raises(RefusedCommand, match="begun anew"):
            stage.writer.execute_now(Mine())
        assert not stage.writer.is_at_rest
        assert not stage.writer.submit_now(transfer(0, 0), may_replace=True)

    with pytest.raises(ZeroDivisionError):
        at_rest(scene, stops=False)


def test_what_is_due_sooner_after_something_done_at_once_is_done_in_time() -> None:
    async def run() -> int:
        stage = Stage()
        stage.source.short = True
        running = asyncio.create_task(stage.writer.run())
        async with asyncio.timeout(PATIENCE):
            while not stage.writer.is_at_rest:  # noqa: ASYNC110, what is waited for has no event
                await asyncio.sleep(0)
            stage.writer.submit_now(transfer(0, 0), may_replace=True)  # which makes a tick due
            while not stage.source.ticks:  # noqa: ASYNC110, the same
                await asyncio.sleep(0)
        stage.writer.stop()
        await running
        await stage.writer.close()
        return stage.source.ticks

    assert asyncio.run(run()) == 1
