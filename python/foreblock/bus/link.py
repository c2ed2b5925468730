"""A worker's end of the bus: hands in transactions, and remembers hints.

It connects by itself and again whenever the writer has gone; while there is none, a
submission is refused at once and reads go on.
"""

import asyncio
from itertools import count
from typing import Final

from foreblock.bus.frames import (
    Accepted,
    Frames,
    NextNonce,
    Rejected,
    SourceFacts,
    Submit,
    ToWorker,
    frame,
)
from foreblock.errors import BusBroken, RejectedTransaction, SequencerUnavailable

ANSWER_SECONDS: Final = 2.0  # a writer that is stuck keeps nobody waiting for longer
SHORTEST_DELAY: Final = 0.05
LONGEST_DELAY: Final = 1.0
HINTS: Final = 100_000  # senders remembered; beyond that all are forgotten


class WriterLink:
    """The way to the writer, for all networks of a worker."""

    def __init__(self, path: str) -> None:
        self._path: Final = path
        self._ids: Final = count(1)
        self._waiting: dict[int, asyncio.Future[None]] = {}
        self._nonces: dict[tuple[str, bytes], int] = {}
        self._facts: dict[str, SourceFacts] = {}
        self._transport: asyncio.Transport | None = None
        self._task: asyncio.Task[None] | None = None
        self._tried: Final = asyncio.Event()

    def start(self) -> None:
        """Begin to keep up a connection, in the running loop."""
        self._task = asyncio.create_task(self._keep_connected())

    async def tried(self) -> None:
        """Return when it has connected, or could not for the first time.

        Whoever serves before that refuses transactions although there is a writer.
        """
        await self._tried.wait()

    def close(self) -> None:
        """Give it up."""
        if self._task is not None:
            self._task.cancel()
        if self._transport is not None:
            self._transport.abort()

    async def submit(self, network: str, raw: bytes, sender: bytes) -> None:
        """Return when the pool has the transaction.

        Raises `RejectedTransaction` with the pool's reason, and `SequencerUnavailable`.
        """
        if self._transport is None or self._transport.is_closing():
            raise SequencerUnavailable
        number = next(self._ids)
        answer = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        self._transport.write(frame(Submit(number, network, raw, sender)))
        try:
            await asyncio.wait_for(answer, ANSWER_SECONDS)
        except TimeoutError:
            raise SequencerUnavailable from None
        finally:
            self._waiting.pop(number, None)

    def next_nonce(self, network: str, sender: bytes) -> int:
        """The nonce after a sender's transactions in the pool; 0 where nothing is known."""
        return self._nonces.get((network, sender), 0)

    def source_facts(self, network: str) -> SourceFacts | None:
        """What the writer said last about the source of a network."""
        return self._facts.get(network)

    async def _keep_connected(self) -> None:
        loop, delay = asyncio.get_running_loop(), SHORTEST_DELAY
        while True:
            ended = loop.create_future()
            try:
                transport, _ = await loop.create_unix_connection(
                    lambda ended=ended: _Incoming(self, ended),  # type: ignore[misc]
                    self._path,
                )
            except OSError:
                self._tried.set()
                await asyncio.sleep(delay)
                delay = min(delay * 2, LONGEST_DELAY)
                continue
            self._transport, delay = transport, SHORTEST_DELAY
            self._tried.set()
            await ended
            self._disconnected()

    def _disconnected(self) -> None:
        self._transport = None
        self._nonces.clear()  # the pool of the next writer is another
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(SequencerUnavailable())

    def hear(self, message: ToWorker) -> None:
        """Take in what the writer says."""
        match message:
            case NextNonce(network, sender, nonce):
                if len(self._nonces) >= HINTS:
                    self._nonces.clear()
                self._nonces[network, sender] = nonce
            case SourceFacts(network):
                self._facts[network] = message
            case Accepted(number):
                answer = self._waiting.get(number)
                if answer is not None and not answer.done():
                    answer.set_result(None)
            case Rejected(number, why):
                answer = self._waiting.get(number)
                if answer is not None and not answer.done():
                    answer.set_exception(RejectedTransaction(why))
            case _:
                pass  # commits concern nobody yet


class _Incoming(asyncio.Protocol):
    """One connection to one writer."""

    def __init__(self, link: WriterLink, ended: asyncio.Future[None]) -> None:
        self._link = link
        self._ended = ended
        self._frames = Frames(ToWorker)
        self._transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        try:
            for message in self._frames.feed(data):
                self._link.hear(message)  # type: ignore[arg-type]  # the decoder's own kind
        except BusBroken:
            assert self._transport is not None, "data comes over a transport"
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002, asyncio's signature
        if not self._ended.done():
            self._ended.set_result(None)
