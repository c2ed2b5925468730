"""Malicious WebSocket clients, and invalid frames.

Attacks are run by `attackers`; `fuzz_frames` is a function of its seed, so a failure can be
reproduced. Frames are encoded and decoded by the websockets library.
"""

import asyncio
import random
import socket
from collections.abc import Iterator

from websockets.client import ClientProtocol
from websockets.protocol import State
from websockets.uri import parse_uri

from abuse.wire import Address, Closed, Connection, request
from support.servers.websocket_wire import masked

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]

HANDSHAKE = (
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
DRIP_SECONDS = 0.5
PING = b"\x89\x00"
LARGE_BLOCK = request("eth_getBlockByNumber", "0x1", True)


PONG = masked(b"", 10)


async def _upgrade(streams: Streams) -> None:
    reader, writer = streams
    writer.write(HANDSHAKE)
    await reader.readuntil(b"\r\n\r\n")


async def ws_idle(streams: Streams) -> None:
    """A client that only answers pings."""
    await _upgrade(streams)
    reader, writer = streams
    while data := await reader.read(1024):
        if PING in data:
            writer.write(PONG)


async def ws_half_handshake(streams: Streams) -> None:
    """An unfinished handshake."""
    streams[1].write(HANDSHAKE[:-2] + b"X-Slow: ")
    await _drip(streams, b"x")


async def ws_slow_message(streams: Streams) -> None:
    """An announced message, sent byte by byte."""
    await _upgrade(streams)
    streams[1].write(masked(bytes(1_000_000))[:10] + bytes(4))  # a mask without effect
    await _drip(streams, b"x")


async def ws_pings(streams: Streams) -> None:
    """Endless pings."""
    await _flood(streams, masked(b"x" * 125, 9) * 1000)


async def ws_fragments(streams: Streams) -> None:
    """A message of endless empty fragments."""
    await _flood(streams, masked(b"", 0, final=False) * 1000, masked(b"", final=False))


async def ws_never_reads(streams: Streams) -> None:
    """Many requests for a large block, with unread responses."""
    await _flood(streams, masked(LARGE_BLOCK) * 64)


async def _flood(streams: Streams, data: bytes, first: bytes = b"") -> None:
    await _upgrade(streams)
    _, writer = streams
    writer.write(first)
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    while not writer.is_closing():
        writer.write(data)
        await writer.drain()


async def _drip(streams: Streams, byte: bytes) -> None:
    reader, writer = streams
    ended = asyncio.ensure_future(reader.read())
    try:
        while not ended.done():
            writer.write(byte)
            await writer.drain()
            await asyncio.wait([ended], timeout=DRIP_SECONDS)
    finally:
        ended.cancel()


ATTACKS = {
    each.__name__: each
    for each in (
        ws_idle, ws_half_handshake, ws_slow_message, ws_pings, ws_fragments, ws_never_reads,
    )
}  # fmt: skip


def fuzzed(source: random.Random) -> bytes:
    """Frames, most of them valid, with bytes changed, removed or inserted."""
    data = bytearray()
    for _ in range(source.randint(1, 4)):
        payload = source.choice((source.randbytes(source.randrange(200)), LARGE_BLOCK, b"{}"))
        opcode = source.choice((0, 1, 1, 1, 2, 8, 9, 10))
        payload = payload[:125] if opcode >= 8 else payload
        data += masked(payload, opcode, final=opcode >= 8 or source.random() < 0.8)
    for _ in range(source.randrange(4)):
        at = source.randrange(len(data))
        match source.randrange(3):
            case 0:
                data[at : at + 1] = source.randbytes(1)
            case 1:
                del data[at : at + source.randint(1, 20)]
            case _:
                data[at:at] = source.randbytes(source.randint(1, 20))
        data = data or bytearray(b"x")
    return bytes(data)


def fuzz_frames(address: Address, seed: int, count: int) -> Iterator[str]:
    """Send frames, each group on a separate connection; the responses must be frames."""
    source = random.Random(seed)
    for _ in range(count):
        data = fuzzed(source)
        connection = Connection(address)
        try:
            connection.socket.sendall(HANDSHAKE + data)
            connection.socket.shutdown(socket.SHUT_WR)
            if wrong := _complaint(_all_of(connection)):
                yield f"{wrong} to {data[:300]!r}"
        except (Closed, OSError):
            pass
        finally:
            connection.close()


def _all_of(connection: Connection) -> bytes:
    found = bytearray()
    while piece := connection.socket.recv(1 << 20):
        found += piece
    return bytes(found)


def _complaint(said: bytes) -> str | None:
    head, end, frames = said.partition(b"\r\n\r\n")
    if not end or not head.startswith(b"HTTP/1.1 101 "):
        return f"no handshake: {said[:200]!r}"
    library = ClientProtocol(parse_uri("ws://127.0.0.1/"), state=State.OPEN, max_size=None)
    if frames:
        library.receive_data(frames)
    if library.parser_exc is not None:
        return f"not frames: {library.parser_exc}"
    if library.close_rcvd is not None and library.close_rcvd.code == 1011:
        return "an internal error"
    return None
