"""A chain filled from an endpoint: from the start, by hash, across reorgs and failures."""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from foreblock._engine import Block
from foreblock.backoff import Waits
from foreblock.clock import SystemClock
from foreblock.service.running import free_port
from foreblock.upstream import http
from foreblock.upstream.block_fetcher import CanonicalHead
from foreblock.upstream.canonical_source import CanonicalOptions, CanonicalSource
from support.each_case import each_case
from support.servers.in_loop import run, until
from support.servers.toy_endpoint import ToyError, block_json, grow, toy_endpoint

QUICK = CanonicalOptions(
    poll=0.001, patience=0, retry=0.001, waits=Waits(0.001, 0.01), depth=20, portion=4
)


class Canonical:
    """An endpoint's chain, which a test may change."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.blocks = list(blocks)
        self.asked: list[str] = []  # whole blocks
        self.compared: list[int] = []  # hashes by number
        self.failing = 0

    def methods(self) -> dict[str, Callable[[list[Any]], object]]:
        return {
            "debug_getRawBlock": self.raw,
            "eth_getBlockByNumber": self.shown,
            "eth_getBlockByHash": lambda _: None,
        }

    def raw(self, params: list[Any]) -> object:
        self.asked.append(params[0])
        if self.failing:
            self.failing -= 1
            raise ToyError({"code": -32005, "message": "come back later"})
        return f"0x{self._find(params[0]).encode().hex()}"

    def shown(self, params: list[Any]) -> object:
        name, is_whole = params
        if is_whole:
            return None
        at = {"latest": -1, "safe": len(self.blocks) // 2, "finalized": 0}.get(name)
        if at is None:
            self.compared.append(int(name, 16))
        block = self._find(name) if at is None else self.blocks[at]
        return block_json(block)

    def _find(self, name: str) -> Block:
        for block in self.blocks:
            if name in (hex(block.header.number), f"0x{block.hash.hex()}"):
                return block
        raise ToyError({"code": -32000, "message": "header not found"})


class Filled:
    """A chain that trusts its input."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.blocks = list(blocks)
        self.marks: tuple[bytes | None, bytes | None] = (None, None)
        self.portions: list[int] = []
        self.oldest = 0

    async def latest(self) -> CanonicalHead:
        return CanonicalHead(self.blocks[-1].header.number, self.blocks[-1].hash)

    async def earliest(self) -> int:
        return self.oldest

    async def knows(self, hash: bytes) -> bool:
        return any(block.hash == hash for block in self.blocks)

    async def add(self, blocks: Sequence[Block]) -> None:
        self.portions.append(len(blocks))
        for block in blocks:
            parents = [at for at, each in enumerate(self.blocks) if each.hash == parent_of(block)]
            assert parents, "each is handed over after its parent"
            self.blocks = [*self.blocks[: parents[0] + 1], block]

    async def heads(self, safe: bytes | None, finalized: bytes | None) -> None:
        self.marks = (safe, finalized)


def parent_of(block: Block) -> bytes:
    return block.header.parent_hash


@contextmanager
def endpoint(blocks: Sequence[Block]) -> Iterator[tuple[Canonical, str]]:
    canonical = Canonical(blocks)
    with toy_endpoint(canonical.methods()) as url:
        yield canonical, url


@asynccontextmanager
async def filling(
    url: str, chain: Filled, options: CanonicalOptions = QUICK
) -> AsyncIterator[CanonicalSource]:
    source = CanonicalSource.at(url, chain, SystemClock(), options, Random(1))
    task = asyncio.create_task(source.run())
    try:
        yield source
    finally:
        assert not task.done(), "nothing that an endpoint does ends a source"
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


GENESIS = grow(None, 1)
LONG = [*GENESIS, *grow(GENESIS[0], 50)]


def test_a_chain_is_brought_up_from_its_start_in_portions() -> None:
    async def body() -> None:
        chain = Filled(GENESIS)
        with endpoint(LONG) as (_, url):
            async with filling(url, chain) as source:
                await until(lambda: chain.blocks == LONG)
                assert max(chain.portions) == 4
                assert source.fetched == 50
                await until(lambda: chain.marks == (LONG[25].hash, LONG[0].hash))

    run(body)


def test_a_wanted_block_comes_with_its_missing_ancestors_and_nothing_else() -> None:
    async def body() -> None:
        chain = Filled(LONG[:-2])
        patient = CanonicalOptions(poll=0.001, patience=1_000, waits=Waits(0.001, 0.01))
        with endpoint(LONG) as (canonical, url):
            async with filling(url, chain, patient) as source:
                await until(lambda: source.tip)
                assert canonical.asked == []
                source.want(LONG[-1].hash)
                await until(lambda: chain.blocks == LONG)
                assert chain.portions == [2]
                assert canonical.asked == [f"0x{each.hash.hex()}" for each in LONG[:-3:-1]]

    run(body)


def test_a_wanted_block_that_the_endpoint_lacks_comes_when_it_has_it() -> None:
    async def body() -> None:
        chain = Filled(LONG[:-1])
        with endpoint(LONG[:-1]) as (canonical, url):
            async with filling(url, chain) as source:
                source.want(LONG[-1].hash)
                await until(lambda: source.failures >= 3)
                assert "0x" + LONG[-1].hash.hex() in source.last_error
                canonical.blocks = list(LONG)
                await until(lambda: chain.blocks == LONG)

    run(body)


def test_a_wanted_block_that_never_comes_holds_nothing_else_up_and_is_forgotten() -> None:
    async def body() -> None:
        chain, gone = Filled(LONG[:-1]), grow(LONG[-2], 1, b"given up")[0].hash
        with endpoint(LONG) as (canonical, url):
            async with filling(url, chain) as source:
                source.want(gone)
                await until(lambda: chain.blocks == LONG)
                await until(lambda: source.failures == QUICK.tries)
                looks = len(canonical.asked)
                canonical.blocks = [*LONG, *grow(LONG[-1], 3)]
                await until(lambda: chain.blocks == canonical.blocks)
                assert f"0x{gone.hex()}" not in canonical.asked[looks:]

    run(body)


def test_a_branch_that_the_endpoint_left_is_left() -> None:
    async def body() -> None:
        ours = [*LONG[:40], *grow(LONG[39], 6, b"ours")]
        for theirs in (
            [*LONG[:40], *grow(LONG[39], 5, b"theirs")],
            [*LONG[:40], *grow(LONG[39], 9, b"theirs")],
        ):
            chain = Filled(ours)
            with endpoint(theirs) as (_, url):
                async with filling(url, chain):
                    await until(lambda: chain.blocks == theirs)  # noqa: B023

    run(body)


def test_a_fork_deeper_than_blocks_are_walked_is_searched_for() -> None:
    async def body() -> None:
        ours = [*LONG[:10], *grow(LONG[9], 300, b"ours")]
        for count, portions in ((200, [200]), (400, [301, *[4] * 24, 3])):
            theirs = [*LONG[:10], *grow(LONG[9], count, b"theirs")]
            chain = Filled(ours)
            with endpoint(theirs) as (canonical, url):
                async with filling(url, chain):
                    await until(lambda: chain.blocks == theirs)  # noqa: B023
                    assert chain.portions == portions, "the chain goes over at once"
                    assert len(canonical.compared) <= 12

    run(body)


def test_no_more_of_a_branch_is_fetched_than_fits() -> None:
    async def body() -> None:
        ours = [*LONG[:10], *grow(LONG[9], 60, b"ours")]
        theirs = [*LONG[:10], *grow(LONG[9], 60, b"theirs")]
        size = theirs[-1].size
        for narrow in (replace(QUICK, branch_blocks=30), replace(QUICK, branch_bytes=29 * size)):
            chain = Filled(ours)
            with endpoint(theirs) as (_, url):
                async with filling(url, chain, narrow):
                    await until(lambda: chain.blocks == theirs)  # noqa: B023
                    assert chain.portions[0] == 30

    run(body)


def test_a_chain_that_parts_below_what_is_kept_is_named_once_and_left_alone() -> None:
    async def body() -> None:
        theirs = [*LONG[:10], *grow(LONG[9], 50, b"theirs")]
        chain = Filled(LONG)
        chain.oldest = 15
        with endpoint(theirs) as (canonical, url), capture_logs() as logs:
            async with filling(url, chain) as source:
                await until(lambda: len(canonical.compared) > 20)
                assert f"its block 15 is 0x{theirs[15].hash.hex()}" in source.last_error
                assert "cannot be followed" in source.last_error
                assert len(canonical.asked) <= QUICK.depth + 3 + len(canonical.compared)
                assert set(canonical.compared) == {15}
                assert sum(each["event"] == "canonical_failed" for each in logs) == 1
                assert chain.blocks == LONG
                # The endpoint's current blocks can be followed.
                canonical.blocks = [*LONG, *grow(LONG[-1], 20)]
                await until(lambda: chain.blocks == canonical.blocks)

    run(body)


def test_failures_are_followed_by_waits_and_then_by_the_blocks() -> None:
    async def body() -> None:
        chain = Filled(GENESIS)
        with endpoint(LONG) as (canonical, url):
            canonical.failing = 5
            async with filling(url, chain) as source:
                await until(lambda: chain.blocks == LONG)
                assert source.failures >= 5

    run(body)


def test_an_endpoint_that_is_not_there_is_tried_again() -> None:
    async def body() -> None:
        async with filling(f"http://127.0.0.1:{free_port()}", Filled(GENESIS)) as source:
            await until(lambda: source.failures >= 3)
            assert "connection refused" in source.last_error

    run(body)


@contextmanager
def dripping() -> Iterator[str]:
    """A server that sends a byte shortly before each of a client's timeouts."""
    over = threading.Event()

    def serve() -> None:
        while not over.is_set():
            with suppress(OSError):
                connection, _ = listener.accept()
                with connection:
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
                    while not over.wait(0.005):
                        connection.sendall(b" ")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            over.set()
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def test_an_endpoint_that_drips_is_cut_off() -> None:
    async def body() -> None:
        options = CanonicalOptions(timeout=0.05, waits=Waits(0.001, 0.01))
        with dripping() as url:
            async with filling(url, Filled(GENESIS), options) as source:
                await until(lambda: source.failures >= 2)
                assert source.last_error.endswith("no response in 0.05 s")

    run(body)


def test_an_answer_that_is_too_long_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "LONGEST_ANSWER", 1_000)

    async def body() -> None:
        options = CanonicalOptions(waits=Waits(0.001, 0.01))
        methods = {"eth_getBlockByNumber": lambda _: "x" * 1_000_000}
        with toy_endpoint(methods) as url:
            async with filling(url, Filled(GENESIS), options) as source:
                await until(lambda: source.failures >= 2)
                assert "more than 1000 bytes" in source.last_error

    run(body)


class Stubborn(Filled):
    """A chain that accepts nothing, and requests it again."""

    want: Callable[[bytes], None]

    async def add(self, blocks: Sequence[Block]) -> None:
        self.portions.append(len(blocks))
        self.want(blocks[-1].hash)


@each_case("is_far", [False, True])
def test_what_did_not_help_is_not_fetched_without_end(is_far: bool) -> None:
    async def body() -> None:
        chain = Stubborn(GENESIS if is_far else LONG[:-1])
        slow = CanonicalOptions(poll=0.1, patience=0 if is_far else 1_000, portion=1)
        with endpoint(LONG) as (_, url):
            async with filling(url, chain, slow) as source:
                chain.want = (lambda _: None) if is_far else source.want
                source.want(None if is_far else LONG[-1].hash)
                loop = asyncio.get_running_loop()
                begun = loop.time()
                await until(lambda: len(chain.portions) >= 4)
                assert loop.time() - begun >= 3 * 0.1

    run(body)
