"""The writer's end of the bus: receives calls of workers, and sends replies and hints.

A command may invalidate hints, so its result waits until every worker has acknowledged the
change or has disconnected.
"""

import asyncio
import socket
from collections.abc import Callable, Iterable
from functools import partial
from itertools import count
from typing import Final, cast

import structlog
from msgspec import Struct

from foreblock.bus.frames import BusEnd, DirectTransport, Frames, frame, send
from foreblock.bus.messages import (
    Ack,
    BusCall,
    BusRequest,
    ChainChanged,
    Committed,
    Print,
    ToWorker,
    ToWriter,
    WantCommits,
)
from foreblock.errors import BusBroken

# A worker with more unread bytes misses hints.
UNREAD_LIMIT: Final = 1 << 20
ACK_SECONDS: Final = 2.0  # for a worker to acknowledge a change; one that hangs is replaced

log = structlog.get_logger()


class BusServer:
    """The connected workers."""

    def __init__(
        self,
        on_call: Callable[[BusRequest], None],
        greeting: Callable[[], Iterable[ToWorker]],
        on_print: Callable[[Print], None] = lambda _: None,
    ) -> None:
        """`on_call` must not block; a new worker gets the `greeting`."""
        self._on_call: Final = on_call
        self._on_print: Final = on_print
        self._greeting: Final = greeting
        self._changes: dict[int, _Change] = {}
        self._change_ids: Final = count(1)
        self._workers: set[_Worker] = set()
        self._wanting_commits: Final[set[_Worker]] = set()
        self._server: asyncio.Server | None = None

    async def listen(self, sock: socket.socket) -> None:
        """Accept workers."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(partial(_Worker, self), sock=sock)

    def accept(self, transport: asyncio.Transport) -> BusEnd:
        """Add a worker at the other end of this transport."""
        worker = _Worker(self)
        worker.connection_made(transport)
        return worker

    @property
    def sends_commits(self) -> bool:
        """Return true if a worker wants commits."""
        return bool(self._wanting_commits)

    def broadcast(self, message: ToWorker) -> None:
        """Send a hint to all workers; a commit to those that want commits.

        Workers that are behind miss it.
        """
        workers = self._wanting_commits if isinstance(message, Committed) else self._workers
        data = b""
        for worker in workers:
            if worker.direct is not None:
                worker.direct.pass_message(message)
            else:
                data = data or frame(message)
                worker.send_hint(data)

    async def announce_change(self, network: str) -> None:
        """Return when every worker has dropped its hints about a network."""
        number, change = next(self._change_ids), _Change(set(self._workers))
        self._changes[number] = change
        try:
            data = frame(ChainChanged(number, network))
            for worker in list(change.missing):
                worker.write(data)
            change.check()
            async with asyncio.timeout(ACK_SECONDS):
                await change.acknowledged
        except TimeoutError:
            pass  # it hangs, and will be killed
        finally:
            del self._changes[number]

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for worker in list(self._workers):
            worker.close()

    def joined(self, worker: "_Worker") -> None:
        """Add a worker and send it the greeting."""
        self._workers.add(worker)
        for message in self._greeting():
            worker.send_hint(frame(message))

    def left(self, worker: "_Worker") -> None:
        self._workers.discard(worker)
        self._wanting_commits.discard(worker)
        for change in self._changes.values():
            change.acknowledge(worker)

    def on_message(self, message: ToWriter, worker: "_Worker") -> None:
        match message:
            case BusCall():
                self._on_call(BusRequest(message, worker.respond))
            case Print():
                self._on_print(message)
            case Ack(number):
                if number in self._changes:
                    self._changes[number].acknowledge(worker)
            case WantCommits(is_on):
                wanting = self._wanting_commits
                (wanting.add if is_on else wanting.discard)(worker)


class _Change:
    """The workers that have not acknowledged a change yet."""

    def __init__(self, missing: set["_Worker"]) -> None:
        self.missing: Final = missing
        self.acknowledged: Final[asyncio.Future[None]] = asyncio.get_running_loop().create_future()

    def acknowledge(self, worker: "_Worker") -> None:
        self.missing.discard(worker)
        self.check()

    def check(self) -> None:
        if not self.missing and not self.acknowledged.done():
            self.acknowledged.set_result(None)


class _Worker(BusEnd):
    """The connection of one worker."""

    _transport: asyncio.Transport

    def __init__(self, server: BusServer) -> None:
        self._server = server
        self._frames = Frames(ToWriter)
        self.direct: DirectTransport | None = None  # to a worker in this process

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        if isinstance(transport, DirectTransport):
            self.direct = transport
        self._server.joined(self)

    def data_received(self, data: bytes) -> None:
        try:
            for message in self._frames.feed(data):
                assert isinstance(message, ToWriter)
                self._server.on_message(message, self)
        except BusBroken as why:
            log.warning("bus_broken", why=str(why))
            self._transport.close()

    def on_message(self, message: Struct) -> None:
        self._server.on_message(message, self)  # type: ignore[arg-type]  # one of a worker's

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002, asyncio's signature
        self._server.left(self)

    def send_hint(self, data: bytes) -> None:
        if self._transport.get_write_buffer_size() <= UNREAD_LIMIT:
            self._transport.write(data)

    def write(self, data: bytes) -> None:
        self._transport.write(data)

    def close(self) -> None:
        self._transport.close()

    def respond(self, message: ToWorker) -> bool:
        if self._transport.is_closing():
            return False
        send(self._transport, message)
        return not self._transport.is_closing() and not self._transport.get_write_buffer_size()
