"""The writer's end of the bus: receives submissions and questions, sends answers and hints."""

import asyncio
import socket
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, cast

from foreblock.bus.frames import AskPool, Frames, Submit, ToWorker, ToWriter, frame
from foreblock.errors import BusBroken

# A worker with more unread bytes misses hints.
UNREAD_LIMIT: Final = 1 << 20

# Sends a message to one worker; false if the kernel did not take it at once.
Respond = Callable[[ToWorker], bool | None]


class Exchange:
    """The connected workers."""

    def __init__(
        self,
        submitted: Callable[[Submit, Respond], None],
        greeting: Callable[[], Iterable[ToWorker]],
        asked: Callable[[AskPool, Respond], None] | None = None,
    ) -> None:
        """`submitted` is called for each transaction; a new worker gets the `greeting`.

        `asked` is called for each question about a pool; without it there is no answer.
        """
        self._submitted: Final = submitted
        self._asked: Final = asked
        self._greeting: Final = greeting
        self._workers: set[_Worker] = set()
        self._server: asyncio.Server | None = None

    async def listen(self, sock: socket.socket) -> None:
        """Accept workers."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(partial(_Worker, self), sock=sock)

    def tell(self, message: ToWorker) -> None:
        """Send a hint to all workers; those that are behind miss it."""
        if self._workers:
            data = frame(message)
            for worker in self._workers:
                worker.tell(data)

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

    def received(self, message: ToWriter, respond: Respond) -> None:
        """Hand a message of a worker on."""
        if isinstance(message, Submit):
            self._submitted(message, respond)
        elif self._asked is not None:
            self._asked(message, respond)


class _Worker(asyncio.Protocol):
    """The connection of one worker."""

    _transport: asyncio.Transport

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._frames = Frames(ToWriter)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._exchange.joined(self)

    def data_received(self, data: bytes) -> None:
        try:
            for message in self._frames.feed(data):
                assert isinstance(message, Submit | AskPool)
                self._exchange.received(message, self._respond)
        except BusBroken:
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002, asyncio's signature
        self._exchange.left(self)

    def tell(self, data: bytes) -> None:
        if self._transport.get_write_buffer_size() <= UNREAD_LIMIT:
            self._transport.write(data)

    def close(self) -> None:
        self._transport.close()

    def _respond(self, message: ToWorker) -> bool:
        if self._transport.is_closing():
            return False
        self._transport.write(frame(message))
        return not self._transport.is_closing() and not self._transport.get_write_buffer_size()
