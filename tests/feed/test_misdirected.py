"""Clients that speak JSON-RPC to a feed get a pointer to the service."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from foreblock.feed.feed_options import FeedServerOptions
from foreblock.feed.outgoing import rpc_answer, rpc_hint, rpc_http_answer
from foreblock.feed.server import FeedServer
from support.each_case import each_case
from support.servers.in_loop import Runner

OPTIONS = FeedServerOptions(rpc="127.0.0.1:8545")
REASON = (
    "this is a feed of flashblocks; JSON-RPC is at http://127.0.0.1:8545 and ws://127.0.0.1:8545"
)
REQUEST = {"jsonrpc": "2.0", "id": "a", "method": "eth_chainId"}
ERROR = {"code": -32601, "message": REASON}


class Feed:
    """A server on a free port."""

    def __init__(self) -> None:
        self.server = FeedServer(OPTIONS)
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.address = self.socket.getsockname()

    def connect(self, target: str) -> connect:
        host, port = self.address
        return connect(f"ws://{host}:{port}{target}", proxy=None)


@asynccontextmanager
async def feed() -> AsyncIterator[Feed]:
    found = Feed()
    await found.server.start(found.socket)
    try:
        yield found
    finally:
        await found.server.stop()


def test_requests_and_batches_are_answered_with_their_ids() -> None:
    text = json.dumps([REQUEST, {"method": "x"}]).encode()
    found = rpc_answer(text, OPTIONS.rpc)
    assert found is not None
    assert json.loads(found) == [
        {"jsonrpc": "2.0", "id": "a", "error": ERROR},
        {"jsonrpc": "2.0", "id": None, "error": ERROR},
    ]


@each_case("text", [b"", b"hello", b"{}", b"[]", b"[1]", b'"x"', b"\xff", b"[" * 4000])
def test_what_is_not_json_rpc_is_not_answered(text: bytes) -> None:
    assert rpc_answer(text, "") is None


def test_a_feed_without_a_service_says_so() -> None:
    assert rpc_hint("") == "this is a feed of flashblocks; it has no JSON-RPC"


@pytest.mark.parametrize("target", ["/", "/eth", "/ws"])
def test_over_websocket(target: str, run: Runner) -> None:
    async def talk() -> None:
        async with feed() as found, found.connect(target) as client:
            await client.send(json.dumps(REQUEST))
            heard = json.loads(await client.recv())
            assert heard == {"jsonrpc": "2.0", "id": "a", "error": ERROR}
            with pytest.raises(ConnectionClosed) as closed:
                await client.recv()
            assert closed.value.rcvd is not None
            assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (1008, REASON)

    run(talk)


def test_who_says_nothing_is_closed_with_the_same_reason(run: Runner) -> None:
    async def talk() -> None:
        async with feed() as found:
            # The timeout of the handshake itself is unchanged.
            found.server.options = replace(OPTIONS, handshake_timeout=0.0)
            async with found.connect("/") as client:
                with pytest.raises(ConnectionClosed) as closed:
                    await client.recv()
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.reason == REASON

    run(talk)


def test_over_http(run: Runner) -> None:
    async def talk() -> None:
        async with feed() as found:
            whole = await _post(found, json.dumps(REQUEST).encode())
            head, _, body = whole.partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200 OK\r\n")
            assert json.loads(body) == {"jsonrpc": "2.0", "id": "a", "error": ERROR}

    run(talk)


async def _post(found: Feed, body: bytes) -> bytes:
    reader, writer = await asyncio.open_connection(*found.address)
    writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
    try:
        return await reader.read()
    finally:
        writer.close()


def test_a_body_that_comes_later_is_not_waited_for() -> None:
    found = rpc_http_answer(b"POST / HTTP/1.1\r\nHost: x\r\n", OPTIONS.rpc)
    assert found is not None
    assert json.loads(found.partition(b"\r\n\r\n")[2])["id"] is None
    assert rpc_http_answer(b"GET /ws HTTP/1.1\r\n", OPTIONS.rpc) is None
