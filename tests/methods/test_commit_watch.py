"""Requests that wait for a commit: on the wire, with driven commits, hints and time."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from foreblock.methods.events.commit_watch import AwaitedCommits, CommitWatch
from foreblock.rpc.subscriptions import Sessions
from foreblock.scheduling.admission import WorkerBudget
from foreblock.scheduling.reply import Client, Minimum, Missing, Reached, Reply
from foreblock.scheduling.thresholds import THRESHOLDS
from foreblock.settings import ServerLimits
from support.servers.in_loop import DrivenLoop, driven_loop, in_driven_loop, turns, until
from support.servers.websocket_wire import handshake, masked
from support.servers.wire import Wire, answer, answers, echo, endpoint_for, post

COMMIT, PLACE = b"Foreblock-Min-Commit: ", b"Foreblock-Min-Place: "
WAIT = 0.25


class Instance:
    """A network whose commits are made by a test."""

    def __init__(self, places: int = 1024, wait: float = WAIT) -> None:
        self.reached: Reached | None = Reached(56, 54, (55, 4))
        self.hints: list[Callable[[], None]] = []
        self.reads = 0
        self.budget = WorkerBudget(places)
        commits = CommitWatch(self._last_commit, self._follow)
        self.awaited = AwaitedCommits(self._read, commits, self.budget, wait)
        self.handled: list[bytes] = []
        self.endpoint = endpoint_for(
            self._handle,
            ServerLimits(body_limit=1000, connections=100),
            budget=self.budget,
            open_session=partial(Sessions().open, echo),
            check_minimum=self.awaited.check,
        )

    def connect(self) -> Wire:
        return Wire(self._handle, endpoint=self.endpoint)

    def commit(self, reached: Reached | None, *, hint: bool = True) -> None:
        self.reached = reached
        for each in self.hints if hint else ():
            each()

    def _handle(self, body: bytes, _: Client) -> Reply:
        self.handled.append(body)
        commit = -1 if self.reached is None else self.reached.commit
        return Reply(b"%b at %d" % (body, commit))

    @property
    def waiting(self) -> int:
        return self.budget.long_waits.total - self.budget.commit_waits.left

    def _read(self) -> Reached | None:
        self.reads += 1
        return self.reached

    def _last_commit(self) -> int | None:
        reached = self._read()
        return None if reached is None else reached.commit

    @contextmanager
    def _follow(self, hint: Callable[[], None]) -> Iterator[None]:
        self.hints.append(hint)
        try:
            yield
        finally:
            self.hints.remove(hint)


@in_driven_loop
async def test_what_is_here_is_answered_at_once() -> None:
    instance = Instance()
    wire = instance.connect()
    for number in (0, 55, 56):
        assert answer(wire.send(post(b"a", COMMIT + b"%d" % number))).text == "a at 56"
    for place in (b"0x36.9", b"0x37.4", b"0x37.0"):
        assert answer(wire.send(post(b"a", PLACE + place))).text == "a at 56"
    assert not instance.hints


@in_driven_loop
async def test_a_commit_that_comes_in_time_is_waited_for() -> None:
    instance = Instance()
    wire = instance.connect()
    assert wire.send(post(b"a", COMMIT + b"58")) == b""
    await driven_loop().advance(0.1)
    instance.commit(Reached(57, 55, None))
    await turns()
    assert (wire.out, instance.waiting) == (b"", 1)
    instance.commit(Reached(58, 55, None))
    await turns()
    assert answer(wire.out).text == "a at 58"
    assert instance.waiting == 0
    assert instance.budget.commit_waits.left == instance.budget.long_waits.total
    await driven_loop().advance(THRESHOLDS.commit_poll_seconds)
    assert instance.hints == []


@in_driven_loop
async def test_without_hints_the_store_is_read_now_and_then() -> None:
    instance = Instance()
    wire = instance.connect()
    wire.send(post(b"a", PLACE + b"0x38.0"))
    await turns()
    instance.commit(Reached(60, 55, (56, 0)), hint=False)
    reads = instance.reads
    await turns()
    assert (wire.out, instance.reads) == (b"", reads), "nothing is read before its time"
    await driven_loop().advance(THRESHOLDS.commit_poll_seconds)
    assert answer(wire.out).text == "a at 60"


@in_driven_loop
async def test_a_wait_does_not_keep_the_worker_busy() -> None:
    instance = Instance()
    wires = [instance.connect() for _ in range(4)]
    for wire in wires:
        wire.send(post(b"a", COMMIT + b"99"))
    await turns()
    reads = instance.reads
    for _ in range(10):
        await driven_loop().advance(THRESHOLDS.commit_poll_seconds)
    assert instance.reads - reads == 10, "one read for all of them"
    await driven_loop().advance(WAIT)
    await driven_loop().advance(THRESHOLDS.commit_poll_seconds)
    reads = instance.reads
    await driven_loop().advance(10.0)
    assert instance.reads == reads, "none without a waiting request"


@in_driven_loop
async def test_after_the_wait_the_answer_says_what_is_here() -> None:
    instance = Instance()
    wire = instance.connect()
    wire.send(post(b"a", COMMIT + b"60"))
    instance.commit(Reached(57, 55, None))
    await driven_loop().advance(WAIT - 0.001)
    assert wire.out == b""
    await driven_loop().advance(0.001)
    found = answer(wire.out)
    assert (found.status, found.headers["retry-after"]) == (503, "1")
    assert found.text == "commit 60 is not here yet, this instance is at 57\n"
    assert "connection" not in found.headers
    assert instance.handled == []
    assert answer(wire.send(post(b"b"))).text == "b at 57"


@in_driven_loop
async def test_a_place_after_the_wait() -> None:
    instance = Instance()
    wire = instance.connect()
    wire.send(post(b"a", PLACE + b"0x37.5"))
    await driven_loop().advance(WAIT)
    found = answer(wire.out)
    assert found.status == 503
    assert found.text == "flashblock 0x37.5 is not here yet, this instance is at 0x37.4\n"


@in_driven_loop
async def test_a_request_may_ask_for_a_shorter_wait_and_not_for_a_longer_one() -> None:
    instance = Instance()
    wire = instance.connect()
    assert answer(wire.send(post(b"a", COMMIT + b"60; wait=0"))).status == 503
    for asked, seconds in ((b"100", 0.1), (b"9999", WAIT)):
        wire = instance.connect()
        wire.send(post(b"a", COMMIT + b"60; wait=" + asked))
        await driven_loop().advance(seconds - 0.001)
        assert wire.out == b""
        await driven_loop().advance(0.002)
        assert answer(wire.out).status == 503


@in_driven_loop
async def test_requests_after_one_that_waits_keep_their_order() -> None:
    instance = Instance()
    wire = instance.connect()
    assert answer(
        wire.send(post(b"a") + post(b"b", COMMIT + b"57") + post(b"c"))
    ).text == "a at 56"  # fmt: skip
    wire.send(post(b"d", COMMIT + b"70; wait=0") + post(b"e", COMMIT + b"58"))
    await turns()
    assert instance.handled == [b"a"]
    instance.commit(Reached(57, 55, None))
    await turns()
    instance.commit(Reached(58, 55, None))
    await turns()
    found = [each.text for each in answers(wire.out)]
    assert found[:3] == ["a at 56", "b at 57", "c at 57"]
    assert found[3].startswith("commit 70 ")
    assert found[4:] == ["e at 58"]


@in_driven_loop
async def test_a_client_that_goes_is_not_waited_for() -> None:
    instance = Instance()
    wire = instance.connect()
    wire.send(post(b"a", COMMIT + b"60"))
    await turns()
    assert instance.waiting == 1
    wire.end()
    await turns()
    assert wire.transport.closed
    assert instance.waiting == 0
    assert instance.budget.commit_waits.left == instance.budget.long_waits.total
    await driven_loop().advance(THRESHOLDS.commit_poll_seconds)
    assert instance.hints == []
    instance.commit(Reached(60, 55, None))
    await turns()
    assert instance.handled == []


@in_driven_loop
async def test_those_without_a_place_are_told_at_once_and_take_none_of_others() -> None:
    instance = Instance(places=8)
    first, second, third = (instance.connect() for _ in range(3))
    first.send(post(b"a", COMMIT + b"60"))
    second.send(post(b"a", COMMIT + b"60"))
    assert answer(third.send(post(b"a", COMMIT + b"60"))).status == 503
    assert answer(third.send(post(b"a", COMMIT + b"56"))).text == "a at 56"
    assert (instance.budget.waits.left, instance.budget.long_waits.left) == (8, 2)
    await driven_loop().advance(WAIT)
    assert answer(first.out).status == answer(second.out).status == 503
    assert third.send(post(b"a", COMMIT + b"60")) == b""


@in_driven_loop
async def test_a_store_that_cannot_be_read_has_no_commit() -> None:
    instance = Instance()
    instance.commit(None)
    wire = instance.connect()
    wire.send(post(b"a", COMMIT + b"56"))
    instance.commit(Reached(56, 54, None))
    await turns()
    assert answer(wire.out).text == "a at 56"
    instance.commit(None)
    found = answer(wire.send(post(b"a", COMMIT + b"56; wait=0")))
    assert found.text == "commit 56 is not here yet, this instance cannot read its store\n"


@in_driven_loop
async def test_a_handshake_waits_for_the_commit_and_messages_for_the_handshake() -> None:
    instance = Instance()
    wire = instance.connect()
    assert wire.send(handshake(target=b"/?min_commit=57") + masked(b"x")) == b""
    instance.commit(Reached(57, 55, None))
    await turns()
    assert wire.out.startswith(b"HTTP/1.1 101 ")
    assert wire.out.endswith(b"\r\n\r\n\x81\x03<x>")


@in_driven_loop
async def test_a_handshake_is_refused_as_a_request_is() -> None:
    instance = Instance()
    for request in (
        handshake(COMMIT + b"60; wait=0"),
        handshake(target=b"/?min_commit=60;wait=0"),
        handshake(target=b"/?min_place=0x99.0%3B%20wait=0"),
    ):
        found = answer(instance.connect().send(request))
        assert (found.status, found.headers["retry-after"]) == (503, "1")
    for target in (b"/?min_commit=x", b"/?min_commit=1&min_commit=2", b"/?min_place="):
        assert answer(instance.connect().send(handshake(target=target))).status == 400
    for target in (b"/", b"/?min_commit=56", b"/?min_place=0x37.4&other=1"):
        assert b" 101 " in instance.connect().send(handshake(target=target))


@in_driven_loop
async def test_a_client_far_ahead_of_its_handshake_is_read_from_again() -> None:
    instance = Instance()
    wire = instance.connect()
    wire.send(handshake(target=b"/?min_commit=57"), *[masked(b"x" * 900)] * 80)
    assert not wire.transport.reading
    instance.commit(Reached(57, 55, None))
    await until(lambda: wire.out.count(b"<xxx") == 80)
    await turns()
    assert wire.transport.reading


@given(st.data())
def test_every_wait_ends_as_a_plain_model_says(data: st.DataObject) -> None:
    """Time and commits advance randomly; the model knows the earliest response of each request."""
    steps = data.draw(
        st.lists(
            st.one_of(
                st.builds(Minimum, st.integers(0, 8), st.none(), st.none() | st.integers(0, 300)),
                st.integers(1, 120),  # elapsed milliseconds
                st.just("commit"),
            ),
            max_size=30,
        )
    )

    async def scene() -> None:
        instance, now, commit = Instance(), 0, 0
        instance.reached = Reached(0, 0, None)
        loop = driven_loop()
        waiting: list[tuple[Minimum, int, asyncio.Future[Missing | None]]] = []
        for step in [*steps, 1000]:
            if isinstance(step, Minimum):
                found = instance.awaited.check(step)
                at_once = step.commit <= commit or step.wait_ms == 0
                assert isinstance(found, Missing | None) == at_once
                assert (found is None) == (step.commit <= commit)
                if found is not None and not isinstance(found, Missing):
                    until = now + min(step.wait_ms if step.wait_ms is not None else 250, 250)
                    waiting.append((step, until, asyncio.ensure_future(found)))
            elif step == "commit":
                commit += 1
                instance.commit(Reached(commit, 0, None))
            else:
                assert isinstance(step, int)
                now += step
                await loop.advance(step / 1000 + 1e-9)
            await turns()
            for each in list(waiting):
                minimum, until, future = each
                assert future.done() == (minimum.commit <= commit or now >= until)
                if future.done():
                    assert (future.result() is None) == (minimum.commit <= commit)
                    waiting.remove(each)
        assert not waiting
        assert instance.budget.commit_waits.left == instance.budget.long_waits.total

    with asyncio.Runner(loop_factory=DrivenLoop) as runner:
        runner.run(scene())
