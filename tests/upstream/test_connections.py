"""Slots for posts to one endpoint: urgent ones have reserved slots."""

import asyncio
from contextlib import suppress

import pytest

from foreblock.errors import RefusedAnswer
from foreblock.upstream.http import Connections

SECONDS = 30.0
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nwell"


answering: list[asyncio.Task[None]] = []


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Respond unless the response is held, until the client has gone."""
    task = asyncio.current_task()
    assert task is not None
    answering.append(task)
    with suppress(asyncio.IncompleteReadError):
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
            if await reader.readexactly(length) != b"held":
                writer.write(ANSWER)
    writer.close()


def test_what_is_urgent_waits_for_nothing_else() -> None:
    async def post() -> None:
        server = await asyncio.start_server(_answer, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        connections = Connections(url, most=1)
        holding = asyncio.ensure_future(connections.post(b"held", SECONDS))
        await asyncio.sleep(0)  # it has its slot
        with pytest.raises(RefusedAnswer, match="no connection was free"):
            await connections.post(b"plain", 0.0)
        reply = await connections.post(b"urgent", SECONDS, is_urgent=True)
        assert (reply.status, reply.body) == (200, b"well")
        holding.cancel()
        await asyncio.gather(holding, return_exceptions=True)
        reply = await connections.post(b"plain", SECONDS)
        assert reply.body == b"well"
        connections.close()
        server.close()
        await asyncio.gather(*answering)

    asyncio.run(post())
