"""One network in the writer: ticks when due, answers in order, hints that are taken back."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from foreblock.bus.frames import Accepted, NextNonce, Rejected, Submit, TakenUp, ToWorker
from foreblock.clock import DrivenClock
from foreblock.errors import RejectedTransaction
from foreblock.sources.network_writer import NetworkWriter
from support.servers.waiting import PATIENCE

ALICE, BOB = b"\1" * 20, b"\2" * 20
NEVER = 1 << 62
DEADLINE = 2 * 10**9


class Source:
    """Counts what is asked of it, and on which threads."""

    def __init__(self) -> None:
        self.due = NEVER
        self.ticks = 0
        self.nonces: dict[bytes, int] = {}
        self.waiting = 0
        self.threads: set[int] = set()
        self.closed = False
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

    def next_nonce(self, sender: bytes) -> int:
        return self.nonces.get(sender, 0)

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
        assert threading.get_ident() not in self.source.threads

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
