"""A small balancing proxy: HTTP requests to one node after the other, WebSockets to one of them.

A request that a node refuses with 503, or that does not reach it, goes to the next one; so a
client with `Foreblock-Min-Commit` gets its answer from a node that is far enough. All headers
pass in both directions, those of foreblock too. It is for `foreblock cluster demo`; in front of
a service that others use, take a proxy that is made for it (`docs/cluster.md`).
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from foreblock.cli.cluster.rotation import Rotation

END: Final = b"\r\n\r\n"
_NO_BODY: Final = frozenset({204, 304})


@dataclass(frozen=True, slots=True)
class HttpHead:
    """The head of a request or an answer."""

    raw: bytes
    start: bytes  # the first line
    fields: dict[bytes, bytes]  # names in lower case

    @property
    def length(self) -> int | None:
        """Bytes of the body, if the head says so. Raises `ValueError`."""
        text = self.fields.get(b"content-length")
        if text is None:
            return None
        if not text.isdigit():
            raise ValueError("a length that is no number")
        return int(text)

    @property
    def is_chunked(self) -> bool:
        return self.fields.get(b"transfer-encoding", b"").lower().endswith(b"chunked")

    @property
    def is_upgrade(self) -> bool:
        return self.fields.get(b"upgrade", b"").lower() == b"websocket"

    @property
    def closes(self) -> bool:
        """Whether the connection ends after this message."""
        said = self.fields.get(b"connection", b"").lower()
        return said == b"close" or (self.start.endswith(b"HTTP/1.0") and said != b"keep-alive")

    @property
    def status(self) -> int:
        """The status of an answer. Raises `ValueError`."""
        return int(self.start.split(b" ")[1])

    @property
    def has_no_body(self) -> bool:
        """Whether an answer ends with its head, whatever else that says."""
        return self.status < 200 or self.status in _NO_BODY


def read_head(raw: bytes) -> HttpHead:
    """A head, with the empty line that ends it. Raises `ValueError`."""
    start, *lines = raw.removesuffix(END).split(b"\r\n")
    if len(start.split(b" ")) < 3 and not start.startswith(b"HTTP/"):
        raise ValueError("no head of HTTP")
    fields: dict[bytes, bytes] = {}
    for line in lines:
        name, colon, value = line.partition(b":")
        if not colon:
            raise ValueError("a line without a colon")
        fields[name.strip().lower()] = value.strip()
    return HttpHead(raw, start, fields)


HEAD_BYTES: Final = 1 << 16
BODY_BYTES: Final = 32 << 20
PIECE: Final = 1 << 16
CONNECT_SECONDS: Final = 1.0
ANSWER_SECONDS: Final = 90.0  # longer than any request of JSON-RPC may take
IDLE_SECONDS: Final = 300.0
_FAILURES: Final = (
    OSError,
    ValueError,
    TimeoutError,
    asyncio.IncompleteReadError,
    asyncio.LimitOverrunError,
)

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Balancer:
    """Passes what comes to one address on to several nodes."""

    def __init__(self, rotation: Rotation) -> None:
        self._rotation: Final = rotation
        self._clients: Final[set[asyncio.Task[None]]] = set()

    @asynccontextmanager
    async def listening(self, host: str, port: int) -> AsyncIterator[int]:
        """Serve at an address; gives the port. Raises `OSError`."""
        server = await asyncio.start_server(self._serve, host, port, limit=HEAD_BYTES)
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            server.close()
            for client in self._clients:
                client.cancel()
            if self._clients:
                await asyncio.wait(self._clients)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None, "it runs in one"
        self._clients.add(task)
        try:
            with suppress(*_FAILURES, asyncio.CancelledError):
                while await self._pass_on(reader, writer):
                    pass
        finally:
            self._clients.discard(task)
            writer.close()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; false where the connection ends."""
        async with asyncio.timeout(IDLE_SECONDS):
            head = await _head(reader)
        if head.is_upgrade:
            await self._tunnel(head, reader, writer)
            return False
        if head.is_chunked or (head.length or 0) > BODY_BYTES:
            why = "a length up to 32 MiB is needed"
            writer.write(_said(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, why))
            return False
        async with asyncio.timeout(IDLE_SECONDS):
            body = await reader.readexactly(head.length or 0)
        return await self._exchange(head, body, writer) and not head.closes

    async def _exchange(self, head: HttpHead, body: bytes, writer: asyncio.StreamWriter) -> bool:
        """Ask nodes in turn; the answer of the last one counts, whatever it is."""
        nodes = self._rotation.order(time.monotonic())
        for number, node in enumerate(nodes, 1):
            try:
                async with asyncio.timeout(ANSWER_SECONDS), _connected(node) as (source, sink):
                    sink.write(head.raw + body)
                    await sink.drain()
                    answer = await _head(source)
                    if answer.status == HTTPStatus.SERVICE_UNAVAILABLE and number < len(nodes):
                        self._rotation.failed(node, time.monotonic())
                        continue
                    self._rotation.answered(node)
                    is_head = head.start.startswith(b"HEAD ")
                    return await _relay(answer, source, writer, has_body=not is_head)
            except _FAILURES:
                if writer.transport.is_closing():
                    return False
                self._rotation.failed(node, time.monotonic())
        writer.write(_said(HTTPStatus.SERVICE_UNAVAILABLE, "no node answers"))
        await writer.drain()
        return True

    async def _tunnel(
        self, head: HttpHead, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Connect a client with one node until either of them ends."""
        for node in self._rotation.order(time.monotonic()):
            try:
                async with _connected(node) as (source, sink):
                    sink.write(head.raw)
                    ways = [
                        asyncio.create_task(_copy(source, writer)),
                        asyncio.create_task(_copy(reader, sink)),
                    ]
                    try:
                        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                    finally:
                        for way in ways:
                            way.cancel()
                        await asyncio.wait(ways)
                    return
            except OSError:
                self._rotation.failed(node, time.monotonic())
        writer.write(_said(HTTPStatus.SERVICE_UNAVAILABLE, "no node answers"))


@asynccontextmanager
async def _connected(node: str) -> AsyncIterator[Streams]:
    host, _, port = node.rpartition(":")
    async with asyncio.timeout(CONNECT_SECONDS):
        source, sink = await asyncio.open_connection(host, int(port), limit=HEAD_BYTES)
    try:
        yield source, sink
    finally:
        sink.close()


async def _head(reader: asyncio.StreamReader) -> HttpHead:
    return read_head(await reader.readuntil(END))


async def _relay(
    answer: HttpHead, source: asyncio.StreamReader, writer: asyncio.StreamWriter, *, has_body: bool
) -> bool:
    """Pass an answer on; false where the connection has to end with it.

    What was begun is not tried elsewhere: a client that has got a part sees the end.
    """
    writer.write(answer.raw)
    try:
        if not has_body or answer.has_no_body:
            await writer.drain()
        elif answer.is_chunked:
            await _relay_chunks(source, writer)
        elif answer.length is not None:
            await _relay_bytes(source, writer, answer.length)
        else:
            await _copy(source, writer)
            return False
    except _FAILURES:
        writer.transport.abort()
        return False
    return not answer.closes


async def _relay_bytes(
    source: asyncio.StreamReader, writer: asyncio.StreamWriter, length: int
) -> None:
    while length:
        piece = await source.read(min(PIECE, length))
        if not piece:
            raise ConnectionResetError("the node has ended")
        writer.write(piece)
        await writer.drain()
        length -= len(piece)


async def _relay_chunks(source: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    size = 1
    while size:
        line = await source.readuntil(b"\r\n")
        size = int(line.split(b";")[0], 16)
        writer.write(line)
        await _relay_bytes(source, writer, size + 2)  # and the end of its line


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while piece := await source.read(PIECE):
        sink.write(piece)
        await sink.drain()


def _said(status: HTTPStatus, why: str) -> bytes:
    text = f"{why}\n"
    phrase = f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: text/plain\r\n"
    return f"{phrase}Retry-After: 1\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode()
