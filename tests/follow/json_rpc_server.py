"""A JSON-RPC endpoint around a function: bodies and batches in, answers out."""

import asyncio
import contextlib
import sys
from collections.abc import Callable
from typing import Any, cast

import msgspec
import uvloop

from follow.http_messages import Splitter, with_body

Json = Any
Answer = Callable[[Json], Json]  # a request to its answer
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"


class Connection(asyncio.Protocol):
    """One client of it."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._splitter = Splitter()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        for message in self._splitter.feed(data):
            asked = msgspec.json.decode(message.body)
            found = (
                list(map(self._answer, asked)) if isinstance(asked, list) else self._answer(asked)
            )
            self._transport.write(with_body(HEAD, msgspec.json.encode(found)))


def serve(answer: Answer, port: int = 0) -> None:
    """Serve until this process is ended; prints the address first."""
    with contextlib.suppress(KeyboardInterrupt):
        uvloop.run(_serve(answer, port))


async def _serve(answer: Answer, port: int) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(answer), "127.0.0.1", port)
    sys.stdout.write("http://{}:{}\n".format(*server.sockets[0].getsockname()))
    sys.stdout.flush()
    await server.serve_forever()
