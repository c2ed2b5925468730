"""The TCP proxy of the demo between real sockets."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from foreblock.cli.cluster.balancer import REST_SECONDS, Balancer, Rotation
from support.servers.waiting import PATIENCE

UNREACHABLE = "127.0.0.1:1"


def test_nodes_take_turns_and_those_that_fail_rest() -> None:
    rotation = Rotation(["a", "b", "c"], ["r"])
    assert [rotation.order(0.0)[0] for _ in range(4)] == ["b", "c", "a", "b"]
    rotation.failed("a", 10.0)
    for _ in range(3):
        order = rotation.order(10.0)
        assert sorted(order) == ["a", "b", "c", "r"]
        assert order[2:] == ["r", "a"]
    rotation.connected("a")
    assert rotation.order(10.0)[-1] == "r"
    rotation.failed("a", 10.0)
    assert "a" in rotation.order(10.0 + REST_SECONDS)[:3]


@asynccontextmanager
async def node(name: bytes) -> AsyncIterator[str]:
    """A server that sends its name, and echoes until the client ends or sends end."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(name)
        while (piece := await reader.read(1 << 16)) and piece != b"end":
            writer.write(piece)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, PATIENCE))


async def said(port: int, *sent: bytes) -> bytes:
    """The whole output of a connection, after each text was echoed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    found = b""
    for text in sent:
        writer.write(text)
        while not found.endswith(text):
            found += await reader.read(1 << 16)
    writer.write(b"end")
    found += await reader.read()
    writer.close()
    return found


def test_connections_take_turns_and_bytes_pass_in_both_directions() -> None:
    async def work() -> None:
        long = bytes(range(256)) * 4096
        async with (
            node(b"one") as one,
            node(b"two") as two,
            Balancer(Rotation([one, two])).listening("127.0.0.1", 0) as port,
        ):
            assert await said(port, b"x") == b"twox"
            assert await said(port, b"first", b"second") == b"onefirstsecond"
            assert await said(port, long) == b"two" + long

    run(work())


def test_nodes_that_cannot_be_reached_are_passed_over() -> None:
    async def work() -> None:
        async with (
            node(b"last") as last,
            Balancer(Rotation([UNREACHABLE], [last])).listening("127.0.0.1", 0) as port,
        ):
            assert [await said(port) for _ in range(3)] == [b"last"] * 3

    run(work())


def test_a_connection_ends_if_no_node_can_be_reached() -> None:
    async def work() -> None:
        async with Balancer(Rotation([UNREACHABLE])).listening("127.0.0.1", 0) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            assert await reader.read() == b""
            writer.close()

    run(work())


def test_open_connections_end_with_the_proxy() -> None:
    async def work() -> None:
        async with node(b"one") as one:
            async with Balancer(Rotation([one])).listening("127.0.0.1", 0) as port:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                assert await reader.readexactly(3) == b"one"
            assert await reader.read() == b""
            writer.close()

    run(work())
