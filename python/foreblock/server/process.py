"""What a process of the supervisor's does around its work: its order, its surroundings, its end.

Nothing of what an order says is known here; whoever runs decodes it.
"""

import asyncio
import gc
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, Final

import uvloop

from foreblock.errors import ForeblockError
from foreblock.server.heartbeat import ALIVE, END, FAILED, READY
from foreblock.server.lifecycle import Listener, serve
from foreblock.server.memory import keep_freed_memory
from foreblock.server.sockets import turn_away
from foreblock.server.sweep import Ticker

# Descriptors that are not connections: the store, the loop, sockets, logs.
RESERVED_FILES: Final = 128


def run_ordered(run: Callable[[bytes, socket.socket], Coroutine[Any, Any, None]]) -> None:
    """Run what the supervisor orders, on a loop of its own; a failure is told and ends it.

    The one argument of the process is the descriptor of the line, over which the order comes.
    """
    line = socket.socket(fileno=int(sys.argv[1]))
    with line, line.makefile("rb") as lines:
        order = lines.readline()
        if not order:
            return  # the supervisor is gone already
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the supervisor
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            try:
                runner.run(run(order, line))
            except (ForeblockError, OSError) as failure:
                tell_failure(line, str(failure))
                sys.exit(1)


def prepare(nice: int) -> int:
    """Step back behind others, keep freed memory, and raise the limit of open files.

    Gives how many connections that limit has room for.
    """
    os.nice(nice)
    keep_freed_memory()
    return max(1, raise_file_limit() - RESERVED_FILES)


def raise_file_limit() -> int:
    """Let this process open as many files as it may at all; gives how many."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


async def serve_until_told(
    listeners: Sequence[Listener], ticker: Ticker, line: socket.socket, grace: float
) -> None:
    """Serve until SIGTERM, or until the line to the supervisor ends; then drain."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()

    def orphaned() -> None:
        loop.remove_reader(line)
        # Nobody will take over the queue, so nobody new may enter it.
        for listener in listeners:
            turn_away(listener.sock)
        stop.set()

    loop.add_signal_handler(signal.SIGTERM, stop.set)
    loop.add_reader(line, attend(line, orphaned))
    await serve(listeners, ticker, stop, lambda: _begin(line), grace)


def _begin(line: socket.socket) -> None:
    # What was made until now stays; the collector need not look at it again.
    gc.collect()
    gc.freeze()
    tell(line, READY)


def tell_failure(line: socket.socket, why: str) -> None:
    """Say why this worker cannot serve."""
    tell(line, FAILED + why.encode("utf-8", "replace").replace(END, b" "))


def tell(line: socket.socket, word: bytes) -> None:
    """Say a word to the supervisor."""
    with suppress(OSError):  # the supervisor may be gone, and the end of the line says so
        line.sendall(word + END)


def attend(line: socket.socket, ended: Callable[[], None]) -> Callable[[], None]:
    """What to do when the line is readable: it asks whether we are alive, or it has ended."""

    def readable() -> None:
        try:
            asked = line.recv(1024)
        except OSError:
            asked = b""
        if asked:
            tell(line, ALIVE)
        else:
            ended()

    return readable
