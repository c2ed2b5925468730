"""The parent of all processes: start, watch, restart and stop them.

The supervisor keeps the listening sockets open, so a connection that arrives while its process
is dead waits for the next one. It opens no store.

A process that ends, hangs or cannot be started is replaced after a growing wait, while the
others go on. Only a process that never becomes ready ends the service, with its reason. How one
process is started and observed is in `child`.

Workers serve and a writer, if there is one, writes. Both are started at once, since a process
needs some time before it can take an order; workers get theirs when the writer is ready. It
stops after the last of them has ended.
"""

import asyncio
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

import structlog

from foreblock.backoff import Backoff, Waits
from foreblock.errors import StopForced, WorkerFailed
from foreblock.server.child import CANNOT_START, FAILED, READY, TURN_SECONDS, Child, Silence, Slot
from foreblock.server.sockets import refuse_new

WAITS: Final = Waits(shortest=0.1, longest=5.0)  # before a restart
STARTING: Final = 6  # the time for a restart, as a multiple of the timeout
TELL_SECONDS: Final = 1.0  # after a signal to stop
KILL_MARGIN: Final = 1.0  # seconds beyond the grace before a kill

log = structlog.get_logger()


class End(NamedTuple):
    """Why a process ended: the log event, and the reason as text."""

    event: str
    facts: dict[str, object]
    why: str


class Supervisor:
    """Keeps one process running in each slot."""

    def __init__(
        self,
        workers: Sequence[Slot],
        grace: float,
        ready: Callable[[], None],
        writer: Slot | None = None,
        restarted: Callable[[str], None] = lambda role: None,  # noqa: ARG005
    ) -> None:
        """`restarted` is called with the name of a slot whose process is replaced."""
        self._restarted: Final = restarted
        self._workers: Final = workers
        self._writer: Final = writer
        self._patience: Final = grace + KILL_MARGIN
        self._ready: Final = ready
        self._stopping: Final = asyncio.Event()
        self._writing: Final = asyncio.Event()  # the writer is ready
        self._unneeded: Final = asyncio.Event()  # the writer may stop
        self._children: Final[set[Child]] = set()
        self._waiting_for = len(workers)  # workers that are not ready yet
        self._cut_short = False
        self._overdue: Final[list[str]] = []  # processes that had to be killed

    async def run(self) -> bool:
        """Run until SIGTERM or SIGINT; true if a second signal stopped it at once.

        Raises `WorkerFailed` if a process never becomes ready, and `StopForced` if one had to be
        killed.
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
            _kill(self.running())
        _raise_first(await asyncio.gather(*keepers, return_exceptions=True))
        if self._overdue and not self._cut_short:
            raise StopForced(", ".join(self._overdue))
        return self._cut_short

    async def _keep_writer(self) -> None:
        if self._writer is None:
            self._writing.set()
        else:
            await self._keep(self._writer, self._writing.set, self._unneeded)

    async def _keep_all(self) -> None:
        """Run the workers; then stop the writer."""
        keepers = [
            asyncio.create_task(self._keep(slot, self._count_ready, self._stopping, self._writing))
            for slot in self._workers
        ]
        try:
            await asyncio.wait(keepers, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            if not self._stopping.is_set():
                self._stopping.set()
                _kill(self.running(workers=True))
        outcomes = await asyncio.gather(*keepers, return_exceptions=True)
        self._retire_writer()
        _raise_first(outcomes)

    async def _keep(
        self,
        slot: Slot,
        first_ready: Callable[[], None],
        stopping: asyncio.Event,
        needed: asyncio.Event | None = None,
    ) -> None:
        """Run one process after the other in a slot; each gets its order after `needed`."""
        loop = asyncio.get_running_loop()
        served, backoff = False, Backoff(WAITS)

        def serves() -> None:
            nonlocal served
            if not served:
                served = True
                first_ready()

        while not stopping.is_set():
            begun = loop.time()
            to_start = slot.timeout * STARTING if served else 0.0
            end = await self._fill(slot, to_start, serves, stopping, needed)
            if stopping.is_set():
                return
            if not served:
                raise WorkerFailed(end.why)
            log.warning(end.event, name=slot.name, **end.facts)
            self._restarted(slot.name)
            await _pause(stopping, backoff.after(loop.time() - begun))

    async def _fill(
        self,
        slot: Slot,
        to_start: float,
        serves: Callable[[], None],
        stopping: asyncio.Event,
        needed: asyncio.Event | None,
    ) -> End:
        """Start a process and watch it until it ends."""
        try:
            child = Child(slot)
        except CANNOT_START as failure:
            why = str(failure) or type(failure).__name__
            facts: dict[str, object] = {"why": why}
            return End("process_not_started", facts, f"a {slot.name} cannot be started: {why}")
        self._children.add(child)
        if needed is not None:
            await _any(needed, stopping)
        await child.send_order()
        if stopping.is_set():
            child.terminate()
        if not await _has_started(child, to_start):
            _give_up(child, to_start)
        elif child.word == READY:
            serves()
            await _watch(child, stopping)
        await child.ended_within(None)
        self._children.discard(child)
        code = child.close()
        said = child.word.decode("utf-8", "replace")
        facts = {"pid": child.pid, "code": code, "said": said}
        return End("process_ended", facts, _reason(slot.name, said, code))

    def _count_ready(self) -> None:
        self._waiting_for -= 1
        if self._waiting_for == 0:
            self._ready()

    def _stop_or_kill(self) -> None:
        if self._stopping.is_set():
            self._cut_short = True
            _kill(self.running())
            return
        self._stopping.set()
        asyncio.get_running_loop().call_later(TELL_SECONDS, self._tell)
        for slot in self._workers:
            for sock in slot.sockets:
                refuse_new(sock)
        self._stop(workers=True)

    def _tell(self) -> None:
        """Say what takes long, such as the open connections of a browser."""
        if left := self.running():
            why = "connections are being closed; a second signal stops at once"
            log.info("still_stopping", processes=len(left), seconds=self._patience, why=why)

    def _retire_writer(self) -> None:
        """Stop the writer after its current commit."""
        self._unneeded.set()
        self._stop(workers=False)

    def _stop(self, *, workers: bool) -> None:
        """Terminate processes, and kill them after the grace."""
        for child in self.running(workers=workers):
            child.terminate()
        asyncio.get_running_loop().call_later(self._patience, self._force, workers)

    def _force(self, workers: bool) -> None:  # noqa: FBT001, a callback
        overdue = self.running(workers=workers)
        for child in overdue:
            log.error("process_killed", name=child.slot.name, pid=child.pid, after=self._patience)
            self._overdue.append(child.slot.name)
        _kill(overdue)

    def running(self, *, workers: bool | None = None) -> list[Child]:
        """Running processes: the workers, the writer, or all."""
        return [
            child
            for child in self._children
            if child.is_running and workers in (None, child.slot is not self._writer)
        ]


def _kill(children: Sequence[Child]) -> None:
    for child in children:
        child.kill()


def _raise_first(outcomes: Sequence[BaseException | None]) -> None:
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            raise outcome


async def _any(*events: asyncio.Event) -> None:
    """Wait for the first of these events."""
    if any(event.is_set() for event in events):
        return
    waiting = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()


async def _pause(stopping: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(stopping.wait(), seconds)


async def _has_started(child: Child, seconds: float) -> bool:
    """Return whether a process reported the outcome of its start, or ended, in time."""
    silence = Silence(seconds)
    while not await child.started_within(TURN_SECONDS):
        if silence.is_too_long(answered=False):
            return False
    return True


async def _watch(child: Child, stopping: asyncio.Event) -> None:
    """Wait until a serving process ends or should stop; kill it if it hangs.

    While stopping it sends no heartbeats, since the grace bounds that time.
    """
    silence = Silence(child.slot.timeout)
    while not await child.ended_within(TURN_SECONDS) and not stopping.is_set():
        if silence.is_too_long(answered=child.answered()):
            _give_up(child, child.slot.timeout)
            return
        child.ask()


def _give_up(child: Child, seconds: float) -> None:
    log.error("process_hung", name=child.slot.name, pid=child.pid, silent_seconds=seconds)
    child.kill()


def _reason(name: str, said: str, code: int) -> str:
    failed = FAILED.decode()
    if said.startswith(failed):
        return said.removeprefix(failed)
    return f"a {name} ended with code {code} before it served"
