"""Misbehaving servers that a client of a feed may meet."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from hashlib import sha1

Attend = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def bad_server(attend: Attend) -> AsyncIterator[str]:
    """A server with arbitrary behaviour after the handshake."""

    async def shake(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        (key,) = [
            line.split(b": ")[1]
            for line in head.split(b"\r\n")
            if line.lower().startswith(b"sec-websocket-key")
        ]
        accept = sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()  # noqa: S324, RFC 6455
        writer.write(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: " + b64encode(accept) + b"\r\n\r\n"
        )
        await attend(reader, writer)

    async with raw_server(shake) as url:
        yield url


@asynccontextmanager
async def raw_server(attend: Attend) -> AsyncIterator[str]:
    """A server with arbitrary behaviour from the first byte on."""
    attending: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def attended(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        attending[task] = writer
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            await attend(reader, writer)
        writer.close()

    server = await asyncio.start_server(attended, "127.0.0.1", 0)
    try:
        yield f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/ws"
    finally:
        server.close()
        for task, writer in attending.items():
            writer.transport.abort()
            task.cancel()
        await asyncio.gather(*attending, return_exceptions=True)


def frame(payload: bytes, opcode: int = 2, *, final: bool = True, length: int = -1) -> bytes:
    """A server's frame, optionally with a wrong length."""
    size = len(payload) if length < 0 else length
    head = bytes([(0x80 if final else 0) | opcode])
    if size < 126:
        return head + bytes([size]) + payload
    if size < 1 << 16:
        return head + b"\x7e" + size.to_bytes(2) + payload
    return head + b"\x7f" + size.to_bytes(8) + payload


async def receive_until_closed(reader: asyncio.StreamReader) -> None:
    """Receive until the client has disconnected."""
    while await reader.read(1 << 16):
        pass
