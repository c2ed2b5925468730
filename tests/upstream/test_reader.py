"""Blocks and heads from endpoints of every kind."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from conftest import ChainFiles
from foreblock._engine import Block, decode_block
from foreblock.errors import NoSuchBlock, NotAnAnswer
from foreblock.upstream.reader import BlockReader, CanonicalHead, CanonicalHeads
from foreblock.upstream.rpc_client import Endpoint
from support.servers.asking import Asker
from support.servers.toy_endpoint import ToyError, toy_endpoint

Methods = dict[str, Callable[[list[Any]], object]]


@pytest.fixture(scope="module")
def block(long_chain: ChainFiles) -> Block:
    return decode_block(long_chain.items()[-1])[0]


@pytest.fixture
def methods(ethereum: Asker) -> Methods:
    """An endpoint with the long chain that gives blocks in both ways."""
    return {
        name: lambda params, name=name: _ask(ethereum, name, params)  # type: ignore[misc]
        for name in ("debug_getRawBlock", "eth_getBlockByHash", "eth_getBlockByNumber")
    }


def _ask(client: Asker, method: str, params: list[Any]) -> object:
    found = client.ask(method, *params)
    if isinstance(found, dict) and "code" in found:
        raise ToyError(found)
    return found


@contextmanager
def reading(methods: Methods) -> Iterator[BlockReader]:
    with toy_endpoint(methods) as url, Endpoint(url) as endpoint:
        yield BlockReader(endpoint)


def test_a_block_comes_as_its_bytes(methods: Methods, block: Block) -> None:
    methods["eth_getBlockByHash"] = lambda _: pytest.fail("nobody needs it")
    with reading(methods) as reader:
        assert reader.block(block.hash) == block
        assert reader.block_at(block.header.number) == block


def test_and_is_rebuilt_where_the_endpoint_gives_none(methods: Methods, block: Block) -> None:
    del methods["debug_getRawBlock"]
    with reading(methods) as reader:
        assert reader.block(block.hash) == block
        assert reader.block_at(block.header.number) == block


def test_an_endpoint_without_the_method_is_asked_for_it_once(
    methods: Methods, block: Block
) -> None:
    asked = []

    def refuse(_: list[Any]) -> object:
        asked.append(1)
        raise ToyError({"code": -32601, "message": "the method is not available"})

    methods["debug_getRawBlock"] = refuse
    with reading(methods) as reader:
        for _ in range(3):
            assert reader.block(block.hash) == block
    assert len(asked) == 1


def test_a_block_that_is_not_there(methods: Methods) -> None:
    with reading(methods) as reader:
        with pytest.raises(NoSuchBlock, match="has no block 0xabab"):
            reader.block(b"\xab" * 32)
        with pytest.raises(NoSuchBlock, match="has no block 0xffff"):
            reader.block_at(0xFFFF)
        assert reader.block_at(1).header.number == 1


def test_null_is_no_block_either(methods: Methods, block: Block) -> None:
    methods["debug_getRawBlock"] = lambda _: None
    with reading(methods) as reader, pytest.raises(NoSuchBlock):
        reader.block(block.hash)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("0x", "debug_getRawBlock"),
        ("0xzz", "not all characters"),
        (7, "expected hex text"),
        ({}, "expected hex text"),
    ],
)
def test_what_is_no_block_is_no_answer(
    methods: Methods, block: Block, answer: object, why: str
) -> None:
    methods["debug_getRawBlock"] = lambda _: answer
    with reading(methods) as reader, pytest.raises(NotAnAnswer, match=why):
        reader.block(block.hash)


def test_another_block_than_asked_for_is_no_answer(methods: Methods, block: Block) -> None:
    raw = f"0x{block.encode().hex()}"
    methods["debug_getRawBlock"] = lambda _: raw
    with reading(methods) as reader:
        with pytest.raises(NotAnAnswer, match=r"gave 0x\w+ for 0xabab"):
            reader.block(b"\xab" * 32)
        with pytest.raises(NotAnAnswer, match="for block 1"):
            reader.block_at(1)


def test_a_block_with_other_transactions_is_no_answer(
    methods: Methods, long_chain: ChainFiles
) -> None:
    full = next(
        each for each in map(decode_block, long_chain.items()) if len(each[0].transactions) > 1
    )[0]
    cut = Block(full.header, full.transactions[1:], full.uncles, full.withdrawals)
    methods["debug_getRawBlock"] = lambda _: f"0x{cut.encode().hex()}"
    with reading(methods) as reader, pytest.raises(NotAnAnswer, match="not those of its header"):
        reader.block(full.hash)


def test_bytes_after_a_block_are_no_answer(methods: Methods, block: Block) -> None:
    methods["debug_getRawBlock"] = lambda _: f"0x{block.encode().hex()}00"
    with reading(methods) as reader, pytest.raises(NotAnAnswer, match="after the block"):
        reader.block(block.hash)


def test_heads_are_what_the_endpoint_says(methods: Methods, block: Block, ethereum: Asker) -> None:
    safe = ethereum.ask("eth_getBlockByNumber", "safe", False)
    with reading(methods) as reader:
        heads = reader.heads()
        assert heads.latest == CanonicalHead(block.header.number, block.hash)
        assert heads.safe == CanonicalHead(int(safe["number"], 16), bytes.fromhex(safe["hash"][2:]))
        assert heads.finalized is not None


def test_an_endpoint_need_not_know_safe_and_finalized(methods: Methods, block: Block) -> None:
    by_number = methods["eth_getBlockByNumber"]

    def latest_only(params: list[Any]) -> object:
        if params[0] == "safe":
            raise ToyError({"code": -39001, "message": "unknown block"})
        return None if params[0] == "finalized" else by_number(params)

    methods["eth_getBlockByNumber"] = latest_only
    with reading(methods) as reader:
        latest = CanonicalHead(block.header.number, block.hash)
        assert reader.heads() == CanonicalHeads(latest, None, None)
