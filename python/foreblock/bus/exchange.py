"""The writer's end of the bus: receives submissions, questions and commands, answers and hints.

After a command nothing that workers remember of the chain may be wrong, so its answer waits
until each has heard of the change, or is gone.
"""

import asyncio
import socket
from collections.abc import Callable, Iterable
from functools import partial
from itertools import count
from typing import Final, cast

import structlog
from msgspec import Struct

from foreblock.bus.direct import DirectEnd, DirectTransport, say
from foreblock.bus.frames import (
    AskPool,
    ChainChanged,
    Committed,
    Frames,
    Heard,
    Order,
    Print,
    Submit,
    ToWorker,
    ToWriter,
    WantCommits,
    frame,
)
from foreblock.bus.state_frames import AskState, AskUpstream, StateNotFound
from foreblock.errors import BusBroken

# A worker with more unread bytes misses hints.
UNREAD_LIMIT: Final = 1 << 20
HEARD_SECONDS: Final = 2.0  # for a worker to hear of a change; one that hangs is replaced

log = structlog.get_logger()

# Sends a message to one worker; false if the kernel did not take it at once.
Respond = Callable[[ToWorker], bool | None]

# Answers questions about state, on the loop; it must not block.
AnswerState = Callable[[AskState | AskUpstream, Respond], None]


class Exchange:
    """The connected workers."""

    def __init__(
        self,
        submitted: Callable[[Submit, Respond], None],
        greeting: Callable[[], Iterable[ToWorker]],
        asked: Callable[[AskPool, Respond], None] | None = None,
        ordered: Callable[[Order, Respond], None] | None = None,
        printed: Callable[[Print], None] | None = None,
    ) -> None:
        """`submitted` is called for each transaction; a new worker gets the `greeting`.

        `asked` is called for each question about a pool, `ordered` for each command; without
        them there is no answer. `printed` is called for what workers have to print.
        """
        self._submitted: Final = submitted
        self._asked: Final = asked or _ignore
        self._ordered: Final = ordered or _ignore
        self._printed: Final = printed or _ignore
        self._state_of: Final[dict[str, AnswerState]] = {}
        self._hearing: dict[int, _Hearing] = {}
        self._changes: Final = count(1)
        self._greeting: Final = greeting
        self._workers: set[_Worker] = set()
        self._following: Final[set[_Worker]] = set()  # commits
        self._server: asyncio.Server | None = None

    async def listen(self, sock: socket.socket) -> None:
        """Accept workers."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(partial(_Worker, self), sock=sock)

    def accept(self, transport: asyncio.Transport) -> DirectEnd:
        """Take up a worker at the other end of this transport."""
        worker = _Worker(self)
        worker.connection_made(transport)
        return worker

    def answer_state(self, network: str, answer: AnswerState | None) -> None:
        """Call this from now on for state of a network that workers want; without, none is had."""
        if answer is None:
            self._state_of.pop(network, None)
        else:
            self._state_of[network] = answer

    def tell(self, message: ToWorker) -> None:
        """Send a hint to all workers, of a commit to those that follow commits.

        Those that are behind miss it.
        """
        workers = self._following if isinstance(message, Committed) else self._workers
        data = b""
        for worker in workers:
            if worker.here is not None:
                worker.here.hand_over(message)
            else:
                data = data or frame(message)
                worker.tell(data)

    async def tell_of_change(self, network: str) -> None:
        """Return when every worker has forgotten what it knew of a network."""
        number, hearing = next(self._changes), _Hearing(set(self._workers))
        self._hearing[number] = hearing
        try:
            data = frame(ChainChanged(number, network))
            for worker in list(hearing.missing):
                worker.send(data)
            hearing.check()
            async with asyncio.timeout(HEARD_SECONDS):
                await hearing.all_heard
        except TimeoutError:
            pass  # it hangs, and will be killed
        finally:
            del self._hearing[number]

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for worker in list(self._workers):
            worker.close()

    def joined(self, worker: "_Worker") -> None:
        """Add a worker and send it the greeting."""
        self._workers.add(worker)
        for message in self._greeting():
            worker.tell(frame(message))

    def left(self, worker: "_Worker") -> None:
        self._workers.discard(worker)
        self._following.discard(worker)
        for hearing in self._hearing.values():
            hearing.heard(worker)

    def received(self, message: ToWriter, worker: "_Worker") -> None:
        """Hand a message of a worker on."""
        match message:
            case Submit():
                self._submitted(message, worker.respond)
            case AskPool():
                self._asked(message, worker.respond)
            case AskState() | AskUpstream():
                self._state_of.get(message.network, _have_no_state)(message, worker.respond)
            case Order():
                self._ordered(message, worker.respond)
            case Print():
                self._printed(message)
            case Heard(number):
                if number in self._hearing:
                    self._hearing[number].heard(worker)
            case WantCommits(is_on):
                (self._following.add if is_on else self._following.discard)(worker)


def _have_no_state(message: AskState | AskUpstream, respond: Respond) -> None:
    respond(StateNotFound(message.id, "unavailable", "the chain is not followed at the moment"))


def _ignore(*_: object) -> None:
    """Give no answer."""


class _Hearing:
    """The workers that have not heard of a change yet."""

    def __init__(self, missing: set["_Worker"]) -> None:
        self.missing: Final = missing
        self.all_heard: Final[asyncio.Future[None]] = asyncio.get_running_loop().create_future()

    def heard(self, worker: "_Worker") -> None:
        self.missing.discard(worker)
        self.check()

    def check(self) -> None:
        if not self.missing and not self.all_heard.done():
            self.all_heard.set_result(None)


class _Worker(DirectEnd):
    """The connection of one worker."""

    _transport: asyncio.Transport

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._frames = Frames(ToWriter)
        self.here: DirectTransport | None = None  # of a worker in this process

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        if isinstance(transport, DirectTransport):
            self.here = transport
        self._exchange.joined(self)

    def data_received(self, data: bytes) -> None:
        try:
            for message in self._frames.feed(data):
                assert isinstance(message, ToWriter)
                self._exchange.received(message, self)
        except BusBroken as why:
            log.warning("bus_broken", why=str(why))
            self._transport.close()

    def heard(self, message: Struct) -> None:
        self._exchange.received(message, self)  # type: ignore[arg-type]  # one of a worker's

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002, asyncio's signature
        self._exchange.left(self)

    def tell(self, data: bytes) -> None:
        if self._transport.get_write_buffer_size() <= UNREAD_LIMIT:
            self._transport.write(data)

    def send(self, data: bytes) -> None:
        self._transport.write(data)

    def close(self) -> None:
        self._transport.close()

    def respond(self, message: ToWorker) -> bool:
        if self._transport.is_closing():
            return False
        say(self._transport, message)
        return not self._transport.is_closing() and not self._transport.get_write_buffer_size()
