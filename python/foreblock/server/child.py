"""One process of the supervisor's: how it is started, what it says, how it ends.

It is started by exec and never forked, since a store opened before a fork would be shared in
ways it must not be. A start that fails leaves nothing behind: no descriptor, no process.
What is said over the line is in `foreblock.server.heartbeat`; who starts it when is elsewhere.
"""

import asyncio
import os
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Final, NamedTuple

from foreblock.server.heartbeat import ALIVE, ASK, END

# What a start may raise where the system has no room for one more process.
CANNOT_START: Final = (OSError, subprocess.SubprocessError, MemoryError)

LONGEST_WORD: Final = 1 << 16  # bytes of what a process says; more of it is not kept

TCACHE_COUNT: Final = "glibc.malloc.tcache_count"
PIECES_AT_HAND: Final = 256


class Slot(NamedTuple):
    """A place for one process after the other, each started in the same way."""

    name: str
    command: Sequence[str]
    sockets: Sequence[socket.socket]  # handed down
    order: Callable[[Sequence[int]], bytes]  # what it is told, given their descriptors
    timeout: float = 0.0  # seconds that it may be silent; 0 sets no limit


class Child:
    """A process that runs, and our end of its line; for use within a loop."""

    def __init__(self, slot: Slot) -> None:
        """Start it. Raises one of `CANNOT_START`."""
        self.slot: Final = slot
        self.word = b""  # what it has said last, beside that it is alive
        self._rest = b""  # of a word that has not come to its end
        self._answered = False
        self._spoke: Final = asyncio.Event()  # a word has come, or none will
        self._ended: Final = asyncio.Event()
        loop = asyncio.get_running_loop()
        with ExitStack() as held:
            ours, theirs = socket.socketpair()
            self._line: Final = held.enter_context(ours)
            with theirs:
                self._process: Final = _execute(slot, theirs.fileno())
            held.callback(self._discard)
            self._line.setblocking(False)  # noqa: FBT003
            end = os.pidfd_open(self._process.pid)
            held.callback(os.close, end)
            loop.add_reader(end, self._note_end, end)
            held.callback(loop.remove_reader, end)
            loop.add_reader(self._line, self._hear)
            held.callback(loop.remove_reader, self._line)
            self._held: Final = held.pop_all()

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether it has not ended, as far as was noticed."""
        return self._process.returncode is None

    async def give_order(self) -> None:
        """Tell it what to do; one that cannot be told is killed."""
        order = self.slot.order([sock.fileno() for sock in self.slot.sockets])
        try:
            await asyncio.get_running_loop().sock_sendall(self._line, order + END)
        except OSError:
            self.kill()

    async def spoke_within(self, seconds: float) -> bool:
        """Wait for its first word or its end, but no longer than so."""
        return await _within(self._spoke, seconds)

    async def ended_within(self, seconds: float | None) -> bool:
        """Wait for its end, but no longer than so."""
        return await _within(self._ended, seconds)

    def answered(self) -> bool:
        """Whether it has spoken since this was asked last."""
        answered, self._answered = self._answered, False
        return answered

    def ask(self) -> None:
        """Ask whether it is alive."""
        with suppress(OSError):  # one that does not read has enough to answer
            self._line.send(ASK + END)

    def terminate(self) -> None:
        """Ask it to end."""
        self._process.terminate()

    def kill(self) -> None:
        """End it."""
        self._process.kill()

    def close(self) -> int:
        """Let go of a process that has ended, and give its code.

        No sooner: the end of its line would tell it to stop.
        """
        self._hear()
        code = self._process.wait()
        self._held.close()
        return code

    def _hear(self) -> None:
        try:
            heard = self._line.recv(LONGEST_WORD)
        except BlockingIOError:
            return
        except OSError:
            heard = b""  # killed before it had read its order
        if not heard:
            asyncio.get_running_loop().remove_reader(self._line)
            self._spoke.set()
            return
        self._answered = True
        *words, rest = (self._rest + heard).split(END)
        self._rest = rest[:LONGEST_WORD]
        for word in words:
            if word != ALIVE:
                self.word = word
                self._spoke.set()

    def _note_end(self, end: int) -> None:
        asyncio.get_running_loop().remove_reader(end)
        self._ended.set()
        self._spoke.set()

    def _discard(self) -> None:
        """End a process that nobody will watch; one that was waited for has ended."""
        if self.is_running:
            self._process.kill()
            self._process.wait()


async def _within(event: asyncio.Event, seconds: float | None) -> bool:
    with suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), seconds)
    return event.is_set()


def _execute(slot: Slot, line: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603, the command is our own
        [*slot.command, str(line)],
        stdin=subprocess.DEVNULL,
        pass_fds=[line, *(sock.fileno() for sock in slot.sockets)],
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
