"""A child process of the supervisor: start it, exchange messages, observe its end.

It is started by exec and never forked, since a store must not be shared across a fork. A start
that fails leaves no descriptor and no process behind. The supervisor decides when to start and
stop.

The line to a child is a socket pair. First the supervisor sends the order, one line of text.
The process answers `ready` or `failed: WHY`. From then on the supervisor asks once a second and
the process answers `alive`, which shows that its loop runs. A process sends nothing unasked, so
a supervisor that does not read cannot block it. The line stays open; its end shows a process
that its supervisor is gone.

Silence is counted in turns of the supervisor, not by a clock: a supervisor that was suspended
or got no CPU does not take processes for hung that had no more CPU than itself.
"""

import asyncio
import math
import os
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Final, NamedTuple

READY: Final = b"ready"
FAILED: Final = b"failed: "
ASK: Final = b"?"
ALIVE: Final = b"alive"
END: Final = b"\n"  # of each message

TURN_SECONDS: Final = 1.0  # between two requests


class Silence:
    """Counts the turns in which a process did not answer."""

    def __init__(self, most_seconds: float) -> None:
        """A process may be silent for `most_seconds`; 0 disables the limit."""
        self._most_turns: Final = math.ceil(most_seconds / TURN_SECONDS)
        self._turns = 0

    def is_too_long(self, *, answered: bool) -> bool:
        """Count one more turn; return whether the process hangs."""
        self._turns = 0 if answered else self._turns + 1
        return 0 < self._most_turns < self._turns


# Raised when the system cannot start another process.
CANNOT_START: Final = (OSError, subprocess.SubprocessError, MemoryError)

LONGEST_WORD: Final = 1 << 16  # bytes of a message that are kept

TCACHE_COUNT: Final = "glibc.malloc.tcache_count"
TCACHE_ENTRIES: Final = 256


class Slot(NamedTuple):
    """The command that starts the processes of one role, one after the other."""

    name: str
    command: Sequence[str]
    sockets: Sequence[socket.socket]  # inherited
    order: Callable[[Sequence[int]], bytes]  # made from their descriptors
    timeout: float = 0.0  # seconds of silence; 0 disables the limit


class Child:
    """A running process and our end of its line, in an event loop."""

    def __init__(self, slot: Slot) -> None:
        """Start it. Raises one of `CANNOT_START`."""
        self.slot: Final = slot
        self.word = b""  # its last message other than `alive`
        self._rest = b""  # of an incomplete message
        self._answered = False
        self._spoke: Final = asyncio.Event()  # a message arrived, or none will
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
            loop.add_reader(self._line, self._read_line)
            held.callback(loop.remove_reader, self._line)
            self._held: Final = held.pop_all()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Its end has not been noticed."""
        return self._process.returncode is None

    async def send_order(self) -> None:
        """Send the order; kill the process if that fails."""
        order = self.slot.order([sock.fileno() for sock in self.slot.sockets])
        try:
            await asyncio.get_running_loop().sock_sendall(self._line, order + END)
        except OSError:
            self.kill()

    async def started_within(self, seconds: float) -> bool:
        """Wait up to `seconds` for its first message or its end."""
        return await _within(self._spoke, seconds)

    async def ended_within(self, seconds: float | None) -> bool:
        """Wait up to `seconds` for its end."""
        return await _within(self._ended, seconds)

    def answered(self) -> bool:
        """Return whether it sent anything since the last call."""
        answered, self._answered = self._answered, False
        return answered

    def ask(self) -> None:
        """Ask whether it is alive."""
        with suppress(OSError):  # a full buffer holds enough requests
            self._line.send(ASK + END)

    def terminate(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        self._process.kill()

    def close(self) -> int:
        """Release an ended process and return its exit code.

        Not before its end: closing the line would stop it.
        """
        self._read_line()
        code = self._process.wait()
        self._held.close()
        return code

    def _read_line(self) -> None:
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
        """Kill a process whose start failed half-way."""
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
    """The environment of a child, with a larger thread cache for glibc's malloc.

    With the default of 7 entries per size, a simulation with hundreds of calls takes a tenth
    longer. A value set by the operator stays.
    """
    tunables = ours.get("GLIBC_TUNABLES", "")
    if TCACHE_COUNT in tunables:
        return dict(ours)
    kept = f"{TCACHE_COUNT}={TCACHE_ENTRIES}"
    return {**ours, "GLIBC_TUNABLES": f"{tunables}:{kept}" if tunables else kept}
