"""The supervisor's reaction to processes that end, hang, or cannot be started."""

import asyncio
import errno
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from foreblock.backoff import Waits
from foreblock.errors import WorkerFailed
from foreblock.server import child, supervisor
from foreblock.server.child import Slot
from foreblock.server.supervisor import Supervisor
from support.servers.waiting import PATIENCE

ANSWERING = """
import socket, sys
line = socket.socket(fileno=int(sys.argv[1]))
lines = line.makefile("rb")
lines.readline()
line.sendall(b"ready\\n")
for _ in lines: line.sendall(b"alive\\n")
"""
STAYING = """
import signal, socket, sys
line = socket.socket(fileno=int(sys.argv[1]))
signal.signal(signal.SIGTERM, lambda *_: line.sendall(b"told to stop\\n"))
lines = line.makefile("rb")
lines.readline()
line.sendall(b"ready\\n")
for _ in lines: pass
"""
LONG_STORY = """
import socket, sys
line = socket.socket(fileno=int(sys.argv[1]))
line.makefile("rb").readline()
line.sendall(b"failed: " + b"x" * 200_000 + b"\\n")
"""

Event = tuple[str, dict[str, Any]]


class Log:
    """The supervisor's log events, to wait for."""

    def __init__(self) -> None:
        self._events: asyncio.Queue[Event] = asyncio.Queue()

    def __getattr__(self, _level: str) -> Callable[..., None]:
        return lambda event, **facts: self._events.put_nowait((event, facts))

    def told(self, name: str) -> list[dict[str, Any]]:
        """The fields of the events of a name so far."""
        events = [self._events.get_nowait() for _ in range(self._events.qsize())]
        return [facts for event, facts in events if event == name]

    async def next(self, name: str) -> dict[str, Any]:
        """The fields of the next event of a name."""
        while True:
            event, facts = await asyncio.wait_for(self._events.get(), PATIENCE)
            if event == name:
                return facts


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    """Without delays between starts, and with minimal intervals."""
    found = Log()
    monkeypatch.setattr(supervisor, "log", found)
    monkeypatch.setattr(supervisor, "WAITS", Waits(0.0, 0.0))
    monkeypatch.setattr(supervisor, "TURN_SECONDS", 0.01)
    return found


def slot(program: str = ANSWERING, timeout: float = 0.0) -> Slot:
    return Slot("worker", [sys.executable, "-ISc", program], [], lambda _: b"{}", timeout)


def supervised(
    slots: list[Slot],
    test: Callable[[Supervisor], Awaitable[None]],
    before: Callable[[], None] = lambda: None,
) -> None:
    """Run a test beside slots that all serve, then stop."""

    async def run() -> None:
        before()
        ready = asyncio.Event()
        kept = Supervisor(slots, grace=PATIENCE, ready=ready.set)
        running = asyncio.create_task(kept.run())
        begun = asyncio.create_task(ready.wait())
        await asyncio.wait([running, begun], return_when=asyncio.FIRST_COMPLETED)
        begun.cancel()
        if not running.done():
            await test(kept)
            os.kill(os.getpid(), signal.SIGTERM)
        await running

    asyncio.run(run())


def pids(kept: Supervisor) -> list[int]:
    return [each.pid for each in kept.running()]


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def children() -> list[str]:
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text("ascii").split()


async def filled(kept: Supervisor, without: int) -> None:
    while len(set(pids(kept)) - {without}) < 2:  # noqa: ASYNC110, there is no event for it
        await asyncio.sleep(0.005)


BREAKS = [
    (socket, "socketpair", OSError(errno.EMFILE, "Too many open files")),
    (subprocess, "Popen", BlockingIOError(errno.EAGAIN, "no more processes")),
    (subprocess, "Popen", MemoryError()),
    (os, "pidfd_open", OSError(errno.EMFILE, "Too many open files")),
]


@pytest.mark.parametrize(("module", "name", "failure"), BREAKS)
def test_failed_start_is_tried_again_and_leaves_nothing_behind(
    log: Log, monkeypatch: pytest.MonkeyPatch, module: object, name: str, failure: Exception
) -> None:
    async def break_and_kill(kept: Supervisor) -> None:
        healthy, victim = pids(kept)
        files, processes = open_files(), len(children())

        def broken(*_: object, **__: object) -> None:
            raise failure

        with monkeypatch.context() as patched:
            patched.setattr(getattr(child, module.__name__), name, broken)  # type: ignore[attr-defined]
            os.kill(victim, signal.SIGKILL)
            assert (await log.next("process_ended"))["code"] == -signal.SIGKILL
            for _ in range(3):
                assert (await log.next("process_not_started"))["why"]
            assert pids(kept) == [healthy]
        await filled(kept, without=victim)
        assert healthy in pids(kept)
        assert (open_files(), len(children())) == (files, processes)

    supervised([slot(), slot()], break_and_kill)


@pytest.mark.parametrize(("module", "name", "failure"), BREAKS)
def test_first_start_that_fails_is_told_at_once(
    monkeypatch: pytest.MonkeyPatch, module: object, name: str, failure: Exception
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise failure

    async def never(_: Supervisor) -> None:
        raise AssertionError("it cannot serve")

    files = open_files()
    where = getattr(child, module.__name__)  # type: ignore[attr-defined]
    with pytest.raises(WorkerFailed, match="a worker cannot be started: "):
        supervised([slot()], never, lambda: monkeypatch.setattr(where, name, broken))
    assert open_files() == files


def test_failure_of_any_length_is_told() -> None:
    async def never(_: Supervisor) -> None:
        raise AssertionError("it cannot serve")

    with pytest.raises(WorkerFailed, match=r"^x+$"):
        supervised([slot(LONG_STORY)], never)


def test_what_hangs_is_killed_and_replaced(log: Log) -> None:
    async def stop_one(kept: Supervisor) -> None:
        hung = pids(kept)[0]
        os.kill(hung, signal.SIGSTOP)
        while (await log.next("process_hung"))["pid"] != hung:
            pass  # on a busy machine others may miss intervals as short as these
        await filled(kept, without=hung)

    supervised([slot(timeout=20), slot(timeout=20)], stop_one)


def test_what_hangs_while_it_is_started_again_is_killed_and_replaced(log: Log) -> None:
    async def stop_the_next(kept: Supervisor) -> None:
        first = pids(kept)[0]
        os.kill(first, signal.SIGKILL)
        while pids(kept) in ([], [first]):  # noqa: ASYNC110, there is no event for it
            await asyncio.sleep(0)
        second = pids(kept)[0]
        os.kill(second, signal.SIGSTOP)
        assert (await log.next("process_hung"))["pid"] == second

    supervised([slot(timeout=1)], stop_the_next)


class DrivenLoop(asyncio.SelectorEventLoop):
    """An event loop whose time is set by the test; descriptors and signals work as ever."""

    now = 0.0

    def time(self) -> float:
        return self.now


@pytest.mark.parametrize("stays", [True, False])
def test_a_process_that_still_runs_a_second_after_the_signal_is_told_of(
    log: Log, *, stays: bool
) -> None:
    """Driven by hand: the line comes after exactly that time, and only while a process runs."""
    loop = DrivenLoop()

    async def told_after(seconds: float) -> list[dict[str, Any]]:
        loop.now += seconds
        for _ in range(3):  # turns of the loop: the timer is due in the first
            await asyncio.sleep(0)
        return log.told("still_stopping")

    async def run() -> None:
        ready = asyncio.Event()
        kept = Supervisor([slot(STAYING)], grace=9.0, ready=ready.set)
        running = asyncio.create_task(kept.run())
        await ready.wait()
        (only,) = kept.running()
        os.kill(os.getpid(), signal.SIGTERM)
        while only.word != b"told to stop":  # noqa: ASYNC110, there is no event for it
            await asyncio.sleep(0)
        before = await told_after(supervisor.TELL_SECONDS - 0.01)
        then = await told_after(0.01) if stays else []
        os.kill(only.pid, signal.SIGKILL)
        assert not await running
        assert (before, await told_after(0.01)) == ([], [])
        assert len(then) == stays
        for facts in then:
            assert (facts["processes"], facts["seconds"]) == (1, 9.0 + supervisor.KILL_MARGIN)
            assert "a second signal stops at once" in facts["why"]

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(run())


# Both report when they have loaded; the writer is ready when there is a worker.
WRITER = """
import os, socket, sys, time
line = socket.socket(fileno=int(sys.argv[1]))
lines = line.makefile("rb")
lines.readline()
while not os.path.exists("loaded"): time.sleep(0.001)
open("writing", "w").close()
line.sendall(b"ready\\n")
for _ in lines: line.sendall(b"alive\\n")
"""
WORKER = """
import os, socket, sys
open("loaded", "w").close()
line = socket.socket(fileno=int(sys.argv[1]))
lines = line.makefile("rb")
lines.readline()
if not os.path.exists("writing"): sys.exit("an order before the writer was ready")
line.sendall(b"ready\\n")
for _ in lines: line.sendall(b"alive\\n")
"""


def test_workers_load_beside_the_writer_and_get_their_orders_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    async def run() -> None:
        ready = asyncio.Event()
        kept = Supervisor([slot(WORKER)], PATIENCE, ready.set, slot(WRITER))
        running = asyncio.create_task(kept.run())
        await asyncio.wait_for(ready.wait(), PATIENCE)
        os.kill(os.getpid(), signal.SIGTERM)
        await running

    asyncio.run(run())


def test_a_writer_that_fails_ends_workers_that_wait_for_their_orders() -> None:
    async def run() -> None:
        with pytest.raises(WorkerFailed, match="xxx"):
            await Supervisor([slot(), slot()], PATIENCE, lambda: None, slot(LONG_STORY)).run()

    before = children()  # of others
    asyncio.run(run())
    assert children() == before
