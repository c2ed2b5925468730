"""Blocks and heads from endpoints of every kind."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from conftest import ChainFiles
from foreblock._engine import Block, decode_block
from foreblock.clock import SystemClock
from foreblock.errors import EndpointError, NoSuchBlock
from foreblock.upstream import block_fetcher
from foreblock.upstream.block_fetcher import BlockFetcher, CanonicalHead, CanonicalHeads
from foreblock.upstream.endpoint import Upstream
from support.servers.asking import Asker
from support.servers.in_loop import run
from support.servers.toy_endpoint import ToyError, toy_endpoint

Methods = dict[str, Callable[[list[Any]], object]]


@pytest.fixture(scope="module")
def block(long_chain: ChainFiles) -> Block:
    return decode_block(long_chain.items()[-1])[0]


@pytest.fixture
def methods(ethereum: Asker) -> Methods:
    """An endpoint with the long chain that returns blocks in both forms."""
    return {
        name: lambda params, name=name: _ask(ethereum, name, params)  # type: ignore[misc]
        for name in ("debug_getRawBlock", "eth_getBlockByHash", "eth_getBlockByNumber")
    }


def _ask(client: Asker, method: str, params: list[Any]) -> object:
    found = client.ask(method, *params)
    if isinstance(found, dict) and "code" in found:
        raise ToyError(found)
    return found


def reading(methods: Methods, body: Callable[[BlockFetcher], Awaitable[None]]) -> None:
    async def read() -> None:
        with toy_endpoint(methods) as url:
            blocks = BlockFetcher([Upstream(url, SystemClock())], is_unmetered=True)
            try:
                await body(blocks)
            finally:
                blocks.close()

    run(read)


def test_a_block_comes_as_its_bytes(methods: Methods, block: Block) -> None:
    methods["eth_getBlockByHash"] = lambda _: pytest.fail("it is not needed")

    async def body(blocks: BlockFetcher) -> None:
        assert await blocks.block(block.hash) == block
        assert await blocks.block_at(block.header.number) == block

    reading(methods, body)


def test_and_is_rebuilt_where_the_endpoint_gives_none(methods: Methods, block: Block) -> None:
    del methods["debug_getRawBlock"]

    async def body(blocks: BlockFetcher) -> None:
        assert await blocks.block(block.hash) == block
        assert await blocks.block_at(block.header.number) == block

    reading(methods, body)


def test_an_endpoint_without_the_method_is_asked_for_it_once(
    methods: Methods, block: Block
) -> None:
    asked = []

    def refuse(_: list[Any]) -> object:
        asked.append(1)
        raise ToyError({"code": -32601, "message": "the method is not available"})

    methods["debug_getRawBlock"] = refuse

    async def body(blocks: BlockFetcher) -> None:
        for _ in range(3):
            assert await blocks.block(block.hash) == block

    reading(methods, body)
    assert len(asked) == 1


def test_a_block_that_is_not_there(methods: Methods) -> None:
    async def body(blocks: BlockFetcher) -> None:
        with pytest.raises(NoSuchBlock, match="has no block 0xabab"):
            await blocks.block(b"\xab" * 32)
        with pytest.raises(NoSuchBlock, match="has no block 0xffff"):
            await blocks.block_at(0xFFFF)
        assert (await blocks.block_at(1)).header.number == 1

    reading(methods, body)


@pytest.mark.parametrize("answer", [None, "0x", "0xzz", 7, {}])
def test_bytes_that_are_no_block_are_no_answer(
    methods: Methods, block: Block, answer: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(block_fetcher, "TRIES", 1)
    methods["debug_getRawBlock"] = lambda _: answer
    whole = methods.pop("eth_getBlockByHash")

    async def body(blocks: BlockFetcher) -> None:
        with pytest.raises(EndpointError):
            await blocks.block(block.hash)
        methods["eth_getBlockByHash"] = whole
        assert await blocks.block(block.hash) == block, "the other method is asked"

    reading(methods, body)


@pytest.fixture
def only_bytes(methods: Methods, monkeypatch: pytest.MonkeyPatch) -> Methods:
    """An endpoint without blocks in the other form."""
    monkeypatch.setattr(block_fetcher, "TRIES", 1)
    methods["eth_getBlockByHash"] = methods["eth_getBlockByNumber"] = lambda _: None
    return methods


def test_another_block_than_asked_for_is_no_answer(only_bytes: Methods, block: Block) -> None:
    only_bytes["debug_getRawBlock"] = lambda _: f"0x{block.encode().hex()}"

    async def body(blocks: BlockFetcher) -> None:
        with pytest.raises(EndpointError):
            await blocks.block(b"\xab" * 32)
        with pytest.raises(EndpointError):
            await blocks.block_at(1)

    reading(only_bytes, body)


def test_a_block_with_other_transactions_is_no_answer(
    only_bytes: Methods, long_chain: ChainFiles
) -> None:
    full = next(
        each for each in map(decode_block, long_chain.items()) if len(each[0].transactions) > 1
    )[0]
    cut = Block(full.header, full.transactions[1:], full.uncles, full.withdrawals)
    only_bytes["debug_getRawBlock"] = lambda _: f"0x{cut.encode().hex()}"

    async def body(blocks: BlockFetcher) -> None:
        with pytest.raises(EndpointError):
            await blocks.block(full.hash)

    reading(only_bytes, body)


def test_bytes_after_a_block_are_no_answer(only_bytes: Methods, block: Block) -> None:
    only_bytes["debug_getRawBlock"] = lambda _: f"0x{block.encode().hex()}00"

    async def body(blocks: BlockFetcher) -> None:
        with pytest.raises(EndpointError):
            await blocks.block(block.hash)

    reading(only_bytes, body)


def test_heads_are_what_the_endpoint_says(methods: Methods, block: Block, ethereum: Asker) -> None:
    safe = ethereum.ask("eth_getBlockByNumber", "safe", False)

    async def body(blocks: BlockFetcher) -> None:
        for _ in range(2):
            heads = await blocks.heads()
            assert heads.latest == CanonicalHead(block.header.number, block.hash)
            safe_hash = bytes.fromhex(safe["hash"][2:])
            assert heads.safe == CanonicalHead(int(safe["number"], 16), safe_hash)
            assert heads.finalized is not None

    reading(methods, body)


def test_an_endpoint_need_not_know_safe_and_finalized(methods: Methods, block: Block) -> None:
    by_number = methods["eth_getBlockByNumber"]

    def latest_only(params: list[Any]) -> object:
        if params[0] == "safe":
            raise ToyError({"code": -39001, "message": "unknown block"})
        return None if params[0] == "finalized" else by_number(params)

    methods["eth_getBlockByNumber"] = latest_only

    async def body(blocks: BlockFetcher) -> None:
        latest = CanonicalHead(block.header.number, block.hash)
        assert await blocks.heads() == CanonicalHeads(latest, None, None)

    reading(methods, body)
