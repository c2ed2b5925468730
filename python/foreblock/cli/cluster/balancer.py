"""A TCP proxy in front of the nodes of `foreblock cluster demo`.

Each connection goes to one node, one node after the other, and its bytes pass unchanged in both
directions. A node that cannot be reached rests for a moment: it is tried last. Nodes in reserve
are used if no other one can be reached. A client whose node is behind (503) or gone repeats its
request on a new connection. In front of a service that others use, run a proxy that retries
requests (`docs/cluster.md`).
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

REST_SECONDS: Final = 0.5
CONNECT_SECONDS: Final = 1.0
PIECE: Final = 1 << 16  # bytes

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Rotation:
    """The order in which nodes are tried. No I/O; times are of a monotonic clock, passed in."""

    def __init__(self, nodes: Sequence[str], reserve: Sequence[str] = ()) -> None:
        self._nodes: Final = list(nodes)
        self._reserve: Final = list(reserve)
        self._next = 0
        self._resting: Final[dict[str, float]] = {}  # until when

    def order(self, now: float) -> list[str]:
        """All nodes, in the order in which the next connection tries them."""
        at = self._next = (self._next + 1) % max(1, len(self._nodes))
        turned = [*self._nodes[at:], *self._nodes[:at], *self._reserve]
        awake = [each for each in turned if self._resting.get(each, now) <= now]
        return awake + [each for each in turned if each not in awake]

    def failed(self, node: str, now: float) -> None:
        self._resting[node] = now + REST_SECONDS

    def connected(self, node: str) -> None:
        self._resting.pop(node, None)


class Balancer:
    """Forwards connections at one address to several nodes."""

    def __init__(self, rotation: Rotation) -> None:
        self._rotation: Final = rotation
        self._clients: Final[set[asyncio.Task[None]]] = set()

    @asynccontextmanager
    async def listening(self, host: str, port: int) -> AsyncIterator[int]:
        """Serve at an address and yield the port. Raises `OSError`."""
        server = await asyncio.start_server(self._serve, host, port)
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
            with suppress(OSError, asyncio.CancelledError):
                if (node := await self._connect()) is not None:
                    await _forward((reader, writer), node)
        finally:
            self._clients.discard(task)
            writer.close()

    async def _connect(self) -> Streams | None:
        for node in self._rotation.order(time.monotonic()):
            host, _, port = node.rpartition(":")
            try:
                async with asyncio.timeout(CONNECT_SECONDS):
                    streams = await asyncio.open_connection(host, int(port))
            except (OSError, TimeoutError):
                self._rotation.failed(node, time.monotonic())
            else:
                self._rotation.connected(node)
                return streams
        return None


async def _forward(client: Streams, node: Streams) -> None:
    """Copy bytes in both directions until either side ends."""
    copies = [
        asyncio.create_task(_copy(client[0], node[1])),
        asyncio.create_task(_copy(node[0], client[1])),
    ]
    try:
        await asyncio.wait(copies, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in copies:
            each.cancel()
        await asyncio.wait(copies)
        node[1].close()


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while piece := await source.read(PIECE):
            sink.write(piece)
            await sink.drain()
