"""The parent of all processes: starts them, watches them, stops them.

It makes the listening sockets and keeps them open, so a connection that arrives while its
process is dead waits for the next one instead of being refused. Processes are started by
exec and never forked, since a store opened before a fork would be shared in ways it must
not be. The supervisor itself opens no store.

Between the supervisor and a process lies a socket pair, the line: the order goes down as
one line, then `ready` or `failed: WHY` comes up. It stays open, and its end tells a process
that nobody watches it any more.

Workers serve and a writer, where there is one, writes what they serve. The writer is ready
before the first worker starts, and is told to stop when the last of them is gone.
"""

import asyncio
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

import structlog

from foreblock.errors import WorkerFailed
from foreblock.server.sockets import turn_away

READY: Final = b"ready\n"
FAILED: Final = b"failed: "

SHORTEST_DELAY: Final = 0.1  # seconds until a dead worker's successor is started
LONGEST_DELAY: Final = 5.0
STEADY: Final = 10.0  # a worker that lived so long did not die of its start
KILL_MARGIN: Final = 1.0  # beyond the grace, before a worker that drains is killed

TCACHE_COUNT: Final = "glibc.malloc.tcache_count"
PIECES_AT_HAND: Final = 256

log = structlog.get_logger()


def backoff() -> Iterator[float]:
    """Delays before one start after the other."""
    delay = SHORTEST_DELAY
    while True:
        yield delay
        delay = min(delay * 2, LONGEST_DELAY)


class Slot(NamedTuple):
    """A place for one process after the other, each started in the same way."""

    name: str
    command: Sequence[str]
    sockets: Sequence[socket.socket]  # handed down
    order: Callable[[Sequence[int]], bytes]  # what it is told, given their descriptors


class Supervisor:
    """Keeps one process running in each slot."""

    def __init__(
        self,
        workers: Sequence[Slot],
        grace: float,
        ready: Callable[[], None],
        writer: Slot | None = None,
    ) -> None:
        self._workers: Final = workers
        self._writer: Final = writer
        self._grace: Final = grace
        self._ready: Final = ready
        self._stopping: Final = asyncio.Event()
        self._writing: Final = asyncio.Event()  # the writer is ready
        self._unneeded: Final = asyncio.Event()  # the writer may stop
        self._processes: dict[subprocess.Popen[bytes], Slot] = {}
        self._waiting_for = len(workers)  # workers that have not served yet
        self._cut_short = False

    async def run(self) -> bool:
        """Run until told to stop by SIGTERM or SIGINT; true if a second one cut that short.

        Raises `WorkerFailed` when a slot never comes to serve.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop_or_kill)
        keepers = [asyncio.create_task(self._keep_writer()), asyncio.create_task(self._keep_all())]
        try:
            await asyncio.wait(keepers, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            self._stopping.set()
            self._unneeded.set()
            self._kill()
        _raise_first(await asyncio.gather(*keepers, return_exceptions=True))
        return self._cut_short

    async def _keep_writer(self) -> None:
        if self._writer is None:
            self._writing.set()
        else:
            await self._keep(self._writer, self._writing.set, self._unneeded)

    async def _keep_all(self) -> None:
        """Keep the workers, from when the writer is ready; without them it has no purpose."""
        await _any(self._writing, self._stopping)
        keepers = [
            asyncio.create_task(self._keep(slot, self._count_ready, self._stopping))
            for slot in self._workers
        ]
        try:
            await asyncio.wait(keepers, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            if not self._stopping.is_set():
                self._stopping.set()
                self._kill_workers()
        outcomes = await asyncio.gather(*keepers, return_exceptions=True)
        self._retire_writer()
        _raise_first(outcomes)

    async def _keep(
        self, slot: Slot, first_ready: Callable[[], None], stopping: asyncio.Event
    ) -> None:
        """Keep a slot filled, by one process after the other."""
        loop = asyncio.get_running_loop()
        served, delays = False, backoff()
        while not stopping.is_set():
            begun = loop.time()
            process, up, down = await self._start(slot, stopping)
            word = await _first_word(up)
            if word == READY and not served:
                served = True
                first_ready()
            code = await _end_of(process)
            del self._processes[process]
            down.close()  # and no sooner: its end would tell the process to stop
            if stopping.is_set():
                return
            if not served:
                raise WorkerFailed(_reason(slot.name, word, code))
            said = word.decode().strip()
            log.warning("process_ended", name=slot.name, pid=process.pid, code=code, said=said)
            if loop.time() - begun > STEADY:
                delays = backoff()
            await _pause(stopping, next(delays))

    async def _start(
        self, slot: Slot, stopping: asyncio.Event
    ) -> tuple[subprocess.Popen[bytes], asyncio.StreamReader, asyncio.StreamWriter]:
        ours, theirs = socket.socketpair()
        inherited = [sock.fileno() for sock in slot.sockets]
        with theirs:
            process = _execute(slot.command, theirs.fileno(), inherited)
        self._processes[process] = slot
        reader, writer = await asyncio.open_connection(sock=ours)
        writer.write(slot.order(inherited) + b"\n")
        if stopping.is_set():
            process.terminate()
        return process, reader, writer

    def _count_ready(self) -> None:
        self._waiting_for -= 1
        if self._waiting_for == 0:
            self._ready()

    def _stop_or_kill(self) -> None:
        if self._stopping.is_set():
            self._cut_short = True
            self._kill()
            return
        self._stopping.set()
        for slot in self._workers:
            for sock in slot.sockets:
                turn_away(sock)
        for process, slot in self._alive():
            if slot is not self._writer:
                process.terminate()
        asyncio.get_running_loop().call_later(self._grace + KILL_MARGIN, self._kill_workers)

    def _retire_writer(self) -> None:
        """Let the writer end after the commit that it is at."""
        self._unneeded.set()
        for process, slot in self._alive():
            if slot is self._writer:
                process.terminate()
        asyncio.get_running_loop().call_later(self._grace + KILL_MARGIN, self._kill)

    def _kill_workers(self) -> None:
        for process, slot in self._alive():
            if slot is not self._writer:
                process.kill()

    def _kill(self) -> None:
        for process, _ in self._alive():
            process.kill()

    def _alive(self) -> list[tuple[subprocess.Popen[bytes], Slot]]:
        running = self._processes.items()
        return [(process, slot) for process, slot in running if process.returncode is None]


def _execute(
    command: Sequence[str], line: int, inherited: Sequence[int]
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603, the command is our own
        [*command, str(line)],
        stdin=subprocess.DEVNULL,
        pass_fds=[line, *inherited],
        process_group=0,  # Ctrl-C on the terminal is for the supervisor alone
        env=environment(os.environ),
    )


def environment(ours: Mapping[str, str]) -> dict[str, str]:
    """The environment of a process: ours, and what glibc's malloc reads of it once at its start.

    It keeps so many freed pieces of a size at hand; with its own 7, a simulation with
    hundreds of calls takes a tenth longer. What an operator has set stays.
    """
    tunables = ours.get("GLIBC_TUNABLES", "")
    if TCACHE_COUNT in tunables:
        return dict(ours)
    kept = f"{TCACHE_COUNT}={PIECES_AT_HAND}"
    return {**ours, "GLIBC_TUNABLES": f"{tunables}:{kept}" if tunables else kept}


def _raise_first(outcomes: Sequence[BaseException | None]) -> None:
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            raise outcome


async def _any(*events: asyncio.Event) -> None:
    """Wait for the first of these."""
    waiting = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()


async def _pause(stopping: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(stopping.wait(), seconds)


async def _end_of(process: subprocess.Popen[bytes]) -> int:
    """Wait for the end of a process and give its code.

    Of asyncio's own ways to wait some use a thread that reaps behind Popen's back.
    """
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    descriptor = os.pidfd_open(process.pid)
    loop.add_reader(descriptor, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
    return process.wait()


async def _first_word(up: asyncio.StreamReader) -> bytes:
    """What a worker says first; nothing if it ended instead."""
    try:
        return await up.readline()
    except ConnectionError:
        return b""  # killed before it had read its order


def _reason(name: str, word: bytes, code: int) -> str:
    if word.startswith(FAILED):
        return word.removeprefix(FAILED).decode().rstrip("\n")
    return f"a {name} ended with code {code} before it served"
