"""The balancing proxy between real sockets."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from foreblock.cli.cluster.balancer import Balancer, read_head
from foreblock.cli.cluster.rotation import REST_SECONDS, Rotation
from support.servers.waiting import PATIENCE

POST = b"POST / HTTP/1.1\r\nHost: x\r\nForeblock-Min-Commit: 7\r\nContent-Length: 4\r\n\r\nbody"
Answer = Callable[[bytes], bytes]


def test_nodes_take_turns_and_those_that_fail_rest() -> None:
    rotation = Rotation(["a", "b", "c"], ["r"])
    assert [rotation.order(0.0)[0] for _ in range(4)] == ["b", "c", "a", "b"]
    rotation.failed("a", 10.0)
    for _ in range(3):
        order = rotation.order(10.0)
        assert sorted(order) == ["a", "b", "c", "r"]
        assert order[2:] == ["r", "a"]
    rotation.answered("a")
    assert rotation.order(10.0)[-1] == "r"
    rotation.failed("a", 10.0)
    assert "a" in rotation.order(10.0 + REST_SECONDS)[:3]


def test_heads_say_where_their_message_ends() -> None:
    head = read_head(b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\nConnection: close\r\n\r\n")
    assert (head.status, head.length, head.closes, head.is_chunked) == (200, 12, True, False)
    assert read_head(b"HTTP/1.1 304 x\r\nTransfer-Encoding: chunked\r\n\r\n").has_no_body
    assert read_head(b"GET / HTTP/1.1\r\nUpgrade: WebSocket\r\n\r\n").is_upgrade
    assert read_head(b"GET / HTTP/1.0\r\n\r\n").closes
    for bad in (b"nothing\r\n\r\n", b"GET / HTTP/1.1\r\nno colon\r\n\r\n"):
        with pytest.raises(ValueError, match=r"no head|colon"):
            read_head(bad)
    with pytest.raises(ValueError, match="no number"):
        _ = read_head(b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n").length


@asynccontextmanager
async def node(answer: Answer, heard: list[bytes]) -> AsyncIterator[str]:
    """A server that answers each request of four bytes, and echoes once it is upgraded."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if b"Upgrade" not in head:
            head += await reader.readexactly(4)
        heard.append(head)
        writer.write(answer(head))
        while b"Upgrade" in head and (piece := await reader.read(100)):
            writer.write(piece)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


def said(text: bytes, status: bytes = b"200 OK") -> bytes:
    return b"HTTP/1.1 %b\r\nForeblock-Snapshot: s\r\nContent-Length: %d\r\n\r\n%b" % (
        status,
        len(text),
        text,
    )


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, PATIENCE))


async def asked(port: int, *requests: bytes, end: Callable[[bytes], bool]) -> list[bytes]:
    """The answers to requests on one connection; `end` says when one is whole."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    answers = []
    for request in requests:
        writer.write(request)
        answer = b""
        while not end(answer) and (piece := await reader.read(1 << 16)):
            answer += piece
        answers.append(answer)
    writer.close()
    return answers


async def behind(
    nodes: list[str], reserve: list[str], then: Callable[[int], Awaitable[None]]
) -> None:
    async with Balancer(Rotation(nodes, reserve)).listening("127.0.0.1", 0) as port:
        await then(port)


def test_requests_take_turns_and_every_header_passes() -> None:
    async def work() -> None:
        heard: list[bytes] = []
        async with (
            node(lambda _: said(b"one"), heard) as one,
            node(lambda _: said(b"two"), heard) as two,
        ):

            async def then(port: int) -> None:
                answers = await asked(
                    port, POST, POST, POST, end=lambda a: a.endswith((b"one", b"two"))
                )
                assert [each[-3:] for each in answers] == [b"two", b"one", b"two"]
                assert all(b"\r\nForeblock-Snapshot: s\r\n" in each for each in answers)

            await behind([one, two], [], then)
        assert heard == [POST] * 3

    run(work())


def test_a_node_that_is_behind_or_gone_is_passed_over() -> None:
    async def work() -> None:
        heard: list[bytes] = []
        late = said(b"commit 7 is not here yet", b"503 Service Unavailable")
        async with (
            node(lambda _: late, heard) as behind_it,
            node(lambda _: said(b"end"), heard) as last,
        ):

            async def then(port: int) -> None:
                answers = await asked(port, *[POST] * 4, end=lambda a: a.endswith(b"end"))
                assert [each[-3:] for each in answers] == [b"end"] * 4

            await behind(["127.0.0.1:1", behind_it], [last], then)

            async def all_late(port: int) -> None:
                (answer,) = await asked(port, POST, end=lambda a: a.endswith(b"yet"))
                assert answer == late  # the last one's own words

            await behind([behind_it], [], all_late)

    run(work())


def test_where_nobody_is_there_it_says_so() -> None:
    async def work() -> None:
        async def then(port: int) -> None:
            (answer,) = await asked(port, POST, end=lambda a: a.endswith(b"answers\n"))
            assert answer.startswith(b"HTTP/1.1 503 ")
            assert b"\r\nRetry-After: 1\r\n" in answer

        await behind(["127.0.0.1:1"], [], then)

    run(work())


def test_chunks_pass_and_an_answer_that_is_cut_ends_the_connection() -> None:
    async def work() -> None:
        heard: list[bytes] = []
        async with (
            node(lambda _: CHUNKED, heard) as chunked,
            node(lambda _: CHUNKED[:-9], heard) as cut,
        ):

            async def whole(port: int) -> None:
                answers = await asked(port, POST, POST, end=lambda a: a.endswith(b"0\r\n\r\n"))
                assert answers == [CHUNKED, CHUNKED]

            async def half(port: int) -> None:
                with suppress(ConnectionResetError):
                    (answer,) = await asked(port, POST, end=lambda _: False)
                    assert not answer.endswith(b"0\r\n\r\n")

            await behind([chunked], [], whole)
            await behind([cut], [], half)

    run(work())


def test_a_websocket_is_a_tunnel_to_one_node() -> None:
    async def work() -> None:
        heard: list[bytes] = []
        upgrade = b"GET / HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
        accepted = b"HTTP/1.1 101 Switching Protocols\r\n\r\n"
        async with node(lambda _: accepted, heard) as one:

            async def then(port: int) -> None:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(upgrade)
                assert await reader.readexactly(len(accepted)) == accepted
                for frame in (b"first", b"second"):
                    writer.write(frame)
                    assert await reader.readexactly(len(frame)) == frame
                writer.close()

            await behind(["127.0.0.1:1", one], [], then)
        assert heard == [upgrade]

    run(work())


@pytest.mark.parametrize(
    "request_",
    [
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n",
    ],
)
def test_what_is_too_long_is_refused_before_it_is_read(request_: bytes) -> None:
    async def work() -> None:
        async def then(port: int) -> None:
            (answer,) = await asked(port, request_, end=lambda _: False)
            assert answer.startswith(b"HTTP/1.1 413 ")

        await behind(["127.0.0.1:1"], [], then)

    run(work())
