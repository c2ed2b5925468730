"""A client of flashblocks: gaps and dropped flashblocks, and a server that is lost."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from itertools import islice
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, serve

from foreblock import AsyncClient, Client
from foreblock.client import FlashblockData, Hex
from foreblock.client.flashblocks import Continuity
from foreblock.client.values import read
from foreblock.errors import EndpointError, ErrorAnswer, NotAnAnswer, Unreachable
from support.each_case import each_case
from support.servers.waiting import PATIENCE

Script = Sequence[str]


def hash_of(name: str) -> str:
    return "0x" + name.encode().hex().zfill(64)


def root_of(name: str) -> str:
    """The transactions root of the flashblock with this hash."""
    return hash_of(f"transactions of {name}")


def flashblock(text: str) -> dict[str, Any]:
    """A flashblock from `NUMBER.INDEX HASH PARENT`."""
    position, name, parent = text.split()
    number, index = position.split(".")
    return {
        "number": hex(int(number)), "flashblockIndex": hex(int(index)), "hash": hash_of(name),
        "parentHash": hash_of(parent), "timestamp": "0x1", "gasUsed": "0x0",
        "transactionsRoot": root_of(name), "transactionCount": "0x0", "transactions": [],
    }  # fmt: skip


A = ["5.0 a o", "5.1 b o", "5.2 c o"]


@each_case(
    "before, after, sealed_with, gap, dropped",
    [
        ([], "5.3 d o", "", False, []),
        (A, "5.3 d o", "", False, []),
        (A, "5.4 e o", "", True, []),  # 5.3 is missing
        (A, "5.3 d x", "", True, []),  # of another job, whose first ones are missing
        (A, "6.0 d c", "", False, []),  # the sealed block has the hash of its last flashblock
        (A, "6.0 d b", "", False, ["5.2"]),
        (A, "6.0 d z", "c", False, []),
        (A, "6.0 d z", "b", False, ["5.2"]),  # sealed without its last flashblock
        (A, "6.0 d z", "y", True, []),  # sealed with others that were not seen
        (A, "6.0 d z", "", False, []),  # it is not known how it was sealed
        (A, "6.1 d z", "", True, []),
        (A, "7.0 d z", "", True, []),
        (A, "5.2 x o", "", False, ["5.2"]),
        (A, "5.0 x o", "", False, ["5.0", "5.1", "5.2"]),  # the job is restarted
        (["5.0 a o", "5.1 a o", "5.2 a o"], "6.0 d z", "a", False, []),  # they are empty
        ([*A, "6.0 d c", "6.1 e c"], "6.0 x y", "b", False, ["5.2", "6.0", "6.1"]),
        ([*A, "6.0 d c"], "5.1 x o", "", False, ["5.1", "5.2", "6.0"]),  # a reorganisation
    ],
)
def test_gaps_and_dropped_flashblocks(
    before: Sequence[str], after: str, sealed_with: str, gap: bool, dropped: Sequence[str]
) -> None:
    chain = Continuity()
    for each in before:
        assert not chain.add(read(FlashblockData, flashblock(each))).gap
    root = Hex(bytes.fromhex(root_of(sealed_with)[2:])) if sealed_with else None
    found = chain.add(read(FlashblockData, flashblock(after)), root)
    assert (found.gap, [f"{number}.{index}" for number, index in found.dropped]) == (gap, dropped)


@each_case(
    "before, after, is_needed",
    [
        (A, "6.0 d z", True),
        (A, "6.0 d c", False),
        (A, "6.1 d z", False),
        (A, "7.0 d z", False),
        ([], "6.0 d z", False),
        ([*A, "6.0 d c", "6.1 e c"], "6.0 x y", True),
    ],
)
def test_the_parent_is_needed_at_the_start_of_a_block(
    before: Sequence[str], after: str, is_needed: bool
) -> None:
    chain = Continuity()
    for each in before:
        chain.add(read(FlashblockData, flashblock(each)))
    assert chain.needs_parent(read(FlashblockData, flashblock(after))) == is_needed


def notice(text: str, cursor: str = "") -> str:
    params = {"subscription": "0x1", "result": flashblock(text), "cursor": cursor or f"c{text[:3]}"}
    return json.dumps({"jsonrpc": "2.0", "method": "eth_subscription", "params": params})


def answer(result: object = "0x1") -> str:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "result": result})


def refused(message: str) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "message": message}})


RECEIVE = "receive a request, and close the connection"
HOLD = "receive a request, and do not respond"


class Server:
    """Serves each connection with the next script: its messages, after which it closes.

    A response is sent when its request has come.
    """

    def __init__(self, *scripts: Script) -> None:
        self.scripts = list(scripts)
        self.requested: list[Any] = []  # methods and parameters
        self.demanded: list[str | None] = []
        self.holds = asyncio.Event()

    async def handle(self, socket: ServerConnection) -> None:
        assert socket.request is not None
        self.demanded.append(socket.request.headers.get("Foreblock-Min-Place"))
        for message in self.scripts.pop(0):
            if message in (RECEIVE, HOLD):
                await socket.recv()
                if message == HOLD:
                    self.holds.set()
                    await socket.wait_closed()
                return
            if "subscription" not in message:
                asked = json.loads(await socket.recv())
                self.requested.append((asked["method"], asked["params"]))
            await socket.send(message)
        if not self.scripts:
            await socket.wait_closed()

    @asynccontextmanager
    async def client(self) -> AsyncIterator[AsyncClient]:
        async with asyncio.timeout(PATIENCE), serve(self.handle, "127.0.0.1", 0) as server:
            port = next(iter(server.sockets)).getsockname()[1]
            async with AsyncClient(f"http://127.0.0.1:{port}") as client:
                yield client


def shown(flashblock: FlashblockData) -> str:
    """Its position; `!` marks a gap, `-` what was dropped."""
    marks = "".join(f"-{number}.{index}" for number, index in flashblock.dropped)
    return f"{flashblock.number}.{flashblock.index}{'!' * flashblock.gap}{marks}"


async def collect(client: AsyncClient, count: int) -> list[str]:
    """The next flashblocks."""
    stream = client.flashblocks(patience=PATIENCE)
    return [shown(await anext(stream)) for _ in range(count)]


async def collect_blocking(client: AsyncClient, count: int) -> list[str]:
    """The same by a blocking client of this endpoint, on a thread."""

    def body() -> list[str]:
        with Client(client.url) as blocking:
            return [shown(each) for each in islice(blocking.flashblocks(PATIENCE), count)]

    return await asyncio.to_thread(body)


Collect = Callable[[AsyncClient, int], Awaitable[list[str]]]
COLLECTORS = [collect, collect_blocking]


def subscribed(*cursor: str) -> tuple[str, list[Any]]:
    kind = ["newFlashblocks", {"newest": 2**31 - 1}]
    return "eth_subscribe", [*kind, *({"cursor": each} for each in cursor)]


@each_case("collect", COLLECTORS)
def test_a_lost_connection_is_resumed(collect: Collect) -> None:
    server = Server(
        [answer(), notice("5.0 a o"), notice("5.1 b o")],
        [answer(), notice("5.2 c o"), notice("6.0 d x"), notice("6.1 e x"), RECEIVE],
        [
            answer(),
            notice("6.0 d x"),
            notice("6.1 e x"),
            answer({"transactionsRoot": root_of("b")}),
        ],
    )

    async def body() -> list[str]:
        async with server.client() as client:
            return await collect(client, 5)

    assert asyncio.run(body()) == ["5.0", "5.1", "5.2", "6.0-5.2", "6.1"]
    assert server.requested == [
        subscribed(), subscribed("c5.1"), subscribed("c5.2"),
        ("eth_getBlockByHash", [hash_of("x"), False]),
    ]  # fmt: skip
    assert server.demanded == [None, "0x5.1", "0x5.2"]


@each_case("collect", COLLECTORS)
def test_events_that_are_no_longer_kept_are_a_gap(collect: Collect) -> None:
    server = Server(
        [answer(), notice("5.0 a o")],
        [refused("they are no longer kept"), answer(), notice("5.1 b o"), notice("5.2 c o")],
    )

    async def body() -> list[str]:
        async with server.client() as client:
            return await collect(client, 3)

    assert asyncio.run(body()) == ["5.0", "5.1!", "5.2"]
    assert server.requested == [subscribed(), subscribed("c5.0"), subscribed()]


@each_case(
    "script, kind",
    [
        ([refused('no "newFlashblocks" subscription')], ErrorAnswer),
        ([answer(), "no JSON, subscription"], NotAnAnswer),
        ([answer(), notice("5.0 a o").replace("gasUsed", "gas")], NotAnAnswer),
    ],
)
def test_a_server_without_flashblocks_is_refused(
    script: Sequence[str], kind: type[Exception]
) -> None:
    async def body() -> None:
        for collect in COLLECTORS:
            async with Server(script).client() as client:
                with pytest.raises(kind):
                    await collect(client, 1)

    asyncio.run(body())


def test_a_blocking_iteration_delays_no_other_call_and_ends_with_its_client() -> None:
    server = Server([answer(), notice("5.0 a o")], [answer(), notice("5.0 a o")])

    def iterate(client: Client) -> list[str]:
        with Client(client.url) as other, other.flashblocks(PATIENCE) as unused:
            assert shown(next(unused)) == "5.0"
        assert list(unused) == []
        seen: list[str] = []
        for each in client.flashblocks(PATIENCE):
            seen.append(shown(each))
            waits.set()  # soon, for another one, which does not come
        return seen

    waits = threading.Event()

    def body(url: str) -> list[str]:
        client = Client(url, tries=1)
        with ThreadPoolExecutor(1) as pool:
            iterating = pool.submit(iterate, client)
            waits.wait(PATIENCE)
            with pytest.raises(EndpointError):
                client.chain_id()  # this server has no methods
            client.close()
            return iterating.result(PATIENCE)

    async def run() -> list[str]:
        async with server.client() as client:
            return await asyncio.to_thread(body, client.url)

    assert asyncio.run(run()) == ["5.0"]


def test_an_address_that_does_not_respond_is_given_up() -> None:
    async def body() -> None:
        async with asyncio.timeout(PATIENCE), AsyncClient("http://127.0.0.1:1") as client:
            with pytest.raises(Unreachable, match="connection refused"):
                await anext(client.flashblocks(patience=0.0))

    asyncio.run(body())


def test_a_server_of_http_alone_is_refused_at_once() -> None:
    def refuse(socket: ServerConnection, _: object) -> Any:  # noqa: ANN401, the library's
        return socket.respond(404, "not found\n")

    async def body() -> None:
        async with (
            asyncio.timeout(PATIENCE),
            serve(Server().handle, "127.0.0.1", 0, process_request=refuse) as server,
        ):
            port = next(iter(server.sockets)).getsockname()[1]
            async with AsyncClient("http://x", websocket=f"ws://127.0.0.1:{port}") as client:
                with pytest.raises(Unreachable, match="404"):
                    await anext(client.flashblocks(patience=PATIENCE))

    asyncio.run(body())


def test_a_cancelled_wait_loses_nothing() -> None:
    """It is cancelled while the client asks for the parent of the new block."""
    server = Server(
        [answer(), notice("5.0 a o"), notice("6.0 d x"), HOLD],
        [answer(), notice("6.0 d x"), answer({"transactionsRoot": root_of("a")})],
    )

    async def body() -> tuple[int, bool]:
        async with server.client() as client:
            stream = client.flashblocks(PATIENCE)
            await anext(stream)
            waiting = asyncio.ensure_future(anext(stream))
            await server.holds.wait()
            waiting.cancel()
            await asyncio.wait([waiting])
            found = await anext(stream)
            return found.number, found.gap

    assert asyncio.run(body()) == (6, False)


def test_the_iteration_ends_with_the_client() -> None:
    server = Server([answer(), notice("5.0 a o")])

    async def body() -> list[int]:
        async with server.client() as client:
            stream = client.flashblocks()
            found = [(await anext(stream)).number]
            waiting = asyncio.ensure_future(anext(stream, None))
            await asyncio.sleep(0)
            await client.aclose()
            assert await waiting is None
            return found

    assert asyncio.run(body()) == [5]
