"""The parent of the workers: starts them, watches them, stops them.

It makes the listening sockets and keeps them open, so a connection that arrives while its
worker is dead waits for the next one instead of being refused. Workers are started by exec
and never forked, since a store opened before a fork would be shared in ways it must not be.
The supervisor itself opens no store.

Between the supervisor and a worker lies a socket pair, the line: the worker's order goes
down as one line, then `ready` or `failed: WHY` comes up. It stays open, and its end tells a
worker that nobody watches it any more.
"""

import asyncio
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Final

import structlog

from foreblock.errors import WorkerFailed
from foreblock.server.sockets import turn_away

READY: Final = b"ready\n"
FAILED: Final = b"failed: "

SHORTEST_DELAY: Final = 0.1  # seconds until a dead worker's successor is started
LONGEST_DELAY: Final = 5.0
STEADY: Final = 10.0  # a worker that lived so long did not die of its start
KILL_MARGIN: Final = 1.0  # beyond the grace, before a worker that drains is killed

log = structlog.get_logger()


def backoff() -> Iterator[float]:
    """Delays before one start after the other."""
    delay = SHORTEST_DELAY
    while True:
        yield delay
        delay = min(delay * 2, LONGEST_DELAY)


class Supervisor:
    """Keeps one worker running for each group of sockets."""

    def __init__(
        self,
        slots: Sequence[Sequence[socket.socket]],
        command: Sequence[str],
        order: Callable[[Sequence[int]], bytes],
        grace: float,
        ready: Callable[[], None],
    ) -> None:
        self._slots: Final = slots
        self._command: Final = command
        self._order: Final = order
        self._grace: Final = grace
        self._ready: Final = ready
        self._stopping: Final = asyncio.Event()
        self._processes: set[subprocess.Popen[bytes]] = set()
        self._waiting_for = len(slots)  # slots that have not served yet
        self._cut_short = False

    async def run(self) -> bool:
        """Run until told to stop by SIGTERM or SIGINT; true if a second one cut that short.

        Raises `WorkerFailed` when a slot never comes to serve.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop_or_kill)
        keepers = [asyncio.create_task(self._keep(sockets)) for sockets in self._slots]
        try:
            await asyncio.wait(keepers, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            self._stopping.set()
            self._kill()
        for outcome in await asyncio.gather(*keepers, return_exceptions=True):
            if isinstance(outcome, Exception):
                raise outcome
        return self._cut_short

    async def _keep(self, sockets: Sequence[socket.socket]) -> None:
        """Keep a slot served, by one worker after the other."""
        loop = asyncio.get_running_loop()
        served, delays = False, backoff()
        while not self._stopping.is_set():
            begun = loop.time()
            process, up, down = await self._start(sockets)
            word = await _first_word(up)
            if word == READY and not served:
                served = True
                self._count_ready()
            code = await _end_of(process)
            self._processes.discard(process)
            down.close()  # and no sooner: its end would tell the worker to stop
            if self._stopping.is_set():
                return
            if not served:
                raise WorkerFailed(_reason(word, code))
            log.warning("worker_ended", pid=process.pid, code=code, said=word.decode().strip())
            if loop.time() - begun > STEADY:
                delays = backoff()
            await self._pause(next(delays))

    async def _start(
        self, sockets: Sequence[socket.socket]
    ) -> tuple[subprocess.Popen[bytes], asyncio.StreamReader, asyncio.StreamWriter]:
        ours, theirs = socket.socketpair()
        inherited = [sock.fileno() for sock in sockets]
        with theirs:
            process = self._execute(theirs.fileno(), inherited)
        self._processes.add(process)
        reader, writer = await asyncio.open_connection(sock=ours)
        writer.write(self._order(inherited) + b"\n")
        if self._stopping.is_set():
            process.terminate()
        return process, reader, writer

    def _execute(self, line: int, inherited: Sequence[int]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603, the command is our own
            [*self._command, str(line)],
            stdin=subprocess.DEVNULL,
            pass_fds=[line, *inherited],
            process_group=0,  # Ctrl-C on the terminal is for the supervisor alone
        )

    def _count_ready(self) -> None:
        self._waiting_for -= 1
        if self._waiting_for == 0:
            self._ready()

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), seconds)

    def _stop_or_kill(self) -> None:
        if self._stopping.is_set():
            self._cut_short = True
            self._kill()
            return
        self._stopping.set()
        for sockets in self._slots:
            for sock in sockets:
                turn_away(sock)
        for process in self._alive():
            process.terminate()
        asyncio.get_running_loop().call_later(self._grace + KILL_MARGIN, self._kill)

    def _kill(self) -> None:
        for process in self._alive():
            process.kill()

    def _alive(self) -> list[subprocess.Popen[bytes]]:
        return [process for process in self._processes if process.returncode is None]


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


def _reason(word: bytes, code: int) -> str:
    if word.startswith(FAILED):
        return word.removeprefix(FAILED).decode().rstrip("\n")
    return f"a worker ended with code {code} before it served"
