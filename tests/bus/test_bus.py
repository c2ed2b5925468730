"""Both ends of the bus over a real socket: submissions, rejections, hints, a writer that ends."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from foreblock.bus.bus_client import UNSENT_LIMIT, BusClient
from foreblock.bus.bus_server import BusServer
from foreblock.bus.messages import (
    BusCall,
    BusRequest,
    NextNonce,
    Submit,
    ToWorker,
)
from foreblock.clock import DrivenClock
from foreblock.errors import (
    OutcomeUnknown,
    RejectedTransaction,
    SequencerBusy,
    SequencerUnavailable,
)
from support.servers.in_loop import closed, listening
from support.servers.waiting import PATIENCE

ALICE, BOB = b"\1" * 20, b"\2" * 20


class Pool:
    """Accepts every transaction except bad ones, and reports the number of each sender."""

    def __init__(self) -> None:
        self.taken: list[BusCall] = []
        self.silent = False  # no message is processed
        self.hangs = False  # while processing
        self.full = False
        self.exchange = BusServer(self.on_call, self.greeting)

    def on_call(self, request: BusRequest) -> None:
        submission = request.submission
        if self.silent:
            return
        if self.full:
            request.fail(SequencerBusy())
            return
        assert request.start()
        if self.hangs:
            self.taken.append(request.call)
            return
        if submission.raw == b"bad":
            request.fail(RejectedTransaction("nonce too low"))
            return
        self.taken.append(request.call)
        self.exchange.broadcast(NextNonce(request.call.network, submission.sender, len(self.taken)))
        request.finish()

    def greeting(self) -> Iterable[ToWorker]:
        yield NextNonce("main", BOB, 7)


@asynccontextmanager
async def connected(
    path: str, pool: Pool, *, submit_seconds: float = 2.0, grace_seconds: float = 1.0
) -> AsyncIterator[BusClient]:
    await pool.exchange.listen(listening(path))
    link = BusClient(path, submit_seconds=submit_seconds, grace_seconds=grace_seconds)
    link.start()
    try:
        await until(lambda: link.next_nonce("main", BOB) == 7)
        yield link
    finally:
        link.close()
        pool.exchange.close()
        await closed()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110, what is waited for has no event
            await asyncio.sleep(0)


def test_who_waits_for_the_link_may_submit_at_once(tmp_path: Path) -> None:
    async def scene() -> None:
        pool, path = Pool(), str(tmp_path / "bus")
        await pool.exchange.listen(listening(path))
        link = BusClient(path)
        link.start()
        with pytest.raises(SequencerUnavailable):
            await link.submit("main", b"early", ALICE)
        async with asyncio.timeout(PATIENCE):
            await link.tried()
            await link.submit("main", b"raw", ALICE)
        link.close()
        pool.exchange.close()
        await closed()

    asyncio.run(scene())


def test_nobody_waits_for_a_writer_that_is_not_there(tmp_path: Path) -> None:
    async def scene() -> None:
        link = BusClient(str(tmp_path / "nowhere"))
        link.start()
        async with asyncio.timeout(PATIENCE):
            await link.tried()
        with pytest.raises(SequencerUnavailable):
            await link.submit("main", b"raw", ALICE)
        link.close()
        await closed()

    asyncio.run(scene())


def test_a_submission_is_answered_and_everybody_hears_the_next_nonce(tmp_path: Path) -> None:
    async def scene() -> None:
        pool, path = Pool(), str(tmp_path / "bus")
        async with connected(path, pool) as link:
            other = BusClient(path)
            other.start()
            await until(lambda: other.next_nonce("main", BOB) == 7)
            await link.submit("main", b"good", ALICE)
            assert [(each.network, each.body) for each in pool.taken] == [
                ("main", Submit(b"good", ALICE))
            ]
            assert link.next_nonce("main", ALICE) == 1
            await until(lambda: other.next_nonce("main", ALICE) == 1)
            assert link.next_nonce("test", ALICE) == 0
            with pytest.raises(RejectedTransaction, match="nonce too low"):
                await link.submit("main", b"bad", ALICE)
            other.close()

    asyncio.run(scene())


def test_answers_find_their_submissions_when_many_are_under_way(tmp_path: Path) -> None:
    async def scene() -> None:
        async with connected(str(tmp_path / "bus"), Pool()) as link:
            raws = [b"bad" if number % 3 == 0 else b"%d" % number for number in range(50)]
            outcomes = await asyncio.gather(
                *(link.submit("main", raw, ALICE) for raw in raws), return_exceptions=True
            )
            assert [isinstance(each, RejectedTransaction) for each in outcomes] == [
                raw == b"bad" for raw in raws
            ]

    asyncio.run(scene())


def test_without_a_writer_a_submission_is_refused_at_once(tmp_path: Path) -> None:
    async def scene() -> None:
        link = BusClient(str(tmp_path / "nobody"))
        link.start()
        with pytest.raises(SequencerUnavailable, match="sequencer not available"):
            await link.submit("main", b"good", ALICE)
        link.close()

    asyncio.run(scene())


def test_a_writer_that_goes_takes_nobody_with_it_and_its_successor_is_found(
    tmp_path: Path,
) -> None:
    async def scene() -> None:
        first, path = Pool(), str(tmp_path / "bus")
        first.silent = True
        async with connected(path, first) as link:
            waiting = asyncio.create_task(link.submit("main", b"good", ALICE))
            await asyncio.sleep(0)
            first.exchange.close()
            with pytest.raises(SequencerUnavailable):
                await waiting
            Path(path).unlink()  # noqa: ASYNC240, nothing else waits
            second = Pool()
            await second.exchange.listen(listening(path))
            await until(lambda: link.next_nonce("main", BOB) == 7)
            await link.submit("main", b"good", ALICE)
            assert second.taken
            second.exchange.close()
            await closed()

    asyncio.run(scene())


def test_what_nobody_has_looked_at_by_its_deadline_is_refused_for_certain(tmp_path: Path) -> None:
    async def scene() -> None:
        pool = Pool()
        pool.silent = True
        async with connected(str(tmp_path / "bus"), pool, submit_seconds=0.01) as link:
            with pytest.raises(SequencerUnavailable):
                await link.submit("main", b"good", ALICE)

    asyncio.run(scene())


def test_a_submission_says_until_when_it_counts(tmp_path: Path) -> None:
    async def scene() -> None:
        pool, clock = Pool(), DrivenClock(monotonic_ns=5 * 10**9)
        path = str(tmp_path / "bus")
        await pool.exchange.listen(listening(path))
        link = BusClient(path, clock)
        link.start()
        await link.tried()
        await link.submit("main", b"good", ALICE)
        assert [each.deadline_ns for each in pool.taken] == [7 * 10**9]
        link.close()
        pool.exchange.close()
        await closed()

    asyncio.run(scene())


def test_what_was_taken_up_and_not_answered_is_not_known(tmp_path: Path) -> None:
    async def scene() -> None:
        pool = Pool()
        pool.hangs = True
        options = {"submit_seconds": 0.01, "grace_seconds": 0.01}
        async with connected(str(tmp_path / "bus"), pool, **options) as link:
            with pytest.raises(OutcomeUnknown):
                await link.submit("main", b"good", ALICE)

    asyncio.run(scene())


def test_what_was_taken_up_by_a_writer_that_goes_is_not_known(tmp_path: Path) -> None:
    async def scene() -> None:
        pool = Pool()
        pool.hangs = True
        async with connected(str(tmp_path / "bus"), pool) as link:
            waiting = asyncio.create_task(link.submit("main", b"good", ALICE))
            await until(lambda: bool(pool.taken))
            pool.exchange.close()
            with pytest.raises(OutcomeUnknown):
                await waiting

    asyncio.run(scene())


def test_a_writer_that_goes_and_left_it_unread_will_not_take_it(tmp_path: Path) -> None:
    """The system then reports the end as an error, after all received data."""

    async def scene() -> None:
        path = str(tmp_path / "bus")
        server = listening(path)
        link = BusClient(path)
        link.start()
        await link.tried()
        writer, _ = server.accept()
        waiting = asyncio.create_task(link.submit("main", b"good", ALICE))
        await asyncio.sleep(0)
        writer.close()
        with pytest.raises(SequencerUnavailable):
            await waiting
        server.close()
        link.close()
        await closed()

    asyncio.run(scene())


def test_a_writer_with_too_much_to_do_says_so(tmp_path: Path) -> None:
    async def scene() -> None:
        pool = Pool()
        pool.full = True
        async with connected(str(tmp_path / "bus"), pool) as link:
            with pytest.raises(SequencerBusy):
                await link.submit("main", b"good", ALICE)

    asyncio.run(scene())


def test_what_a_stuck_writer_leaves_unread_is_bounded(tmp_path: Path) -> None:
    """Beyond a mebibyte transactions are refused immediately; the others at their deadline."""

    async def scene() -> None:
        path, size, count = str(tmp_path / "bus"), 126_000, 200
        server = listening(path)
        link = BusClient(path, submit_seconds=0.05)
        link.start()
        await link.tried()
        outcomes = await asyncio.gather(
            *(link.submit("main", bytes(size), ALICE) for _ in range(count)),
            return_exceptions=True,
        )
        kinds = [type(each) for each in outcomes]
        assert set(kinds) == {SequencerBusy, SequencerUnavailable}
        # Sent data is in the link and in the system's buffer of the socket.
        system = server.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
        assert kinds.count(SequencerUnavailable) * size <= UNSENT_LIMIT + system + size
        with pytest.raises(SequencerBusy):
            await link.submit("main", bytes(size), ALICE)
        server.close()
        link.close()
        await closed()

    asyncio.run(scene())


def test_a_peer_that_talks_nonsense_is_let_go(tmp_path: Path) -> None:
    async def scene() -> None:
        pool, path = Pool(), str(tmp_path / "bus")
        async with connected(path, pool):
            reader, writer = await asyncio.open_unix_connection(path)
            writer.write(b"\xff" * 64)
            async with asyncio.timeout(PATIENCE):
                await reader.read()
            writer.close()

    with capture_logs() as logged:
        asyncio.run(scene())
    assert [(each["event"], "frame of" in each["why"]) for each in logged] == [("bus_broken", True)]
