"""Data before the anchor of a followed chain: as from a complete store, or an error."""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from foreblock.follow import pre_anchor
from foreblock.follow.passthrough import MARK
from foreblock.follow.pre_anchor import VerifiedHistory
from foreblock.ledger.reading.view import Ledger
from support.servers.asking import Asker, request
from support.servers.cold_follower import Follower, follower

Answer = Callable[[str, list[Any]], Any]


class Reaching:
    """A follower whose upstream is a service over the whole chain."""

    def __init__(self, cold: Follower, whole: Asker) -> None:
        self.cold = cold
        self.asked: list[str] = []
        self.whole = whole
        self.change: Callable[[str, Any], Any] = lambda _, result: result
        state = cold.state
        assert state is not None
        self.beyond = VerifiedHistory(cold.ledger, state, self.ask)
        self.beyond.add(cold.service.methods)

    async def ask(self, method: str, params: bytes) -> bytes:
        self.asked.append(method)
        # It has a separate loop, which cannot run inside of this one.
        result = await asyncio.to_thread(self.whole.ask, method, *json.loads(params))
        return json.dumps(self.change(method, result)).encode()


@pytest.fixture
def reaching(long_ledger: Ledger, ethereum: Asker, tmp_path: Path) -> Iterator[Reaching]:
    with follower(long_ledger, tmp_path / "store") as cold:
        yield Reaching(cold, ethereum)


@pytest.fixture
def trusting(long_ledger: Ledger, ethereum: Asker, tmp_path: Path) -> Iterator[Reaching]:
    with follower(long_ledger, tmp_path / "store", trust="trusted") as cold:
        yield Reaching(cold, ethereum)


def recent(ledger: Ledger) -> list[Any]:
    """Earlier blocks whose hashes are in the contract of EIP-2935."""
    with closing(ledger.view()) as view:
        blocks = [view.resolve(number) for number in range(view.latest.number)]
    return [
        block
        for block, child in pairwise(blocks)
        if child.header.requests_hash is not None  # from Prague on
    ]


def test_old_blocks_are_as_a_whole_store_has_them(
    long_ledger: Ledger, ethereum: Asker, reaching: Reaching
) -> None:
    for block in recent(long_ledger):
        named = "0x" + block.hash.hex()
        for body in (
            request("eth_getBlockByHash", named, True),
            request("eth_getBlockByHash", named, False),
            request("eth_getBlockReceipts", named),
        ):
            reply = reaching.cold.reply(body)
            assert json.loads(reply.body) == json.loads(ethereum.reply(body).body)
            assert reply.headers.endswith(MARK)


def test_a_block_with_hashes_needs_no_receipts(
    long_ledger: Ledger, ethereum: Asker, reaching: Reaching
) -> None:
    """An upstream that replays a recording has none."""
    for block in recent(long_ledger):
        body = request("eth_getBlockByNumber", hex(block.number), False)
        assert json.loads(reaching.cold.reply(body).body) == json.loads(ethereum.reply(body).body)
    assert "eth_getBlockByHash" in reaching.asked
    assert "eth_getBlockReceipts" not in reaching.asked


def test_an_anchor_of_which_only_the_header_is_stored_is_read_from_an_upstream(
    long_ledger: Ledger, ethereum: Asker, tmp_path: Path
) -> None:
    with closing(long_ledger.view()) as view:
        anchor = view.latest
    shown = ethereum.ask("eth_getBlockByNumber", hex(anchor.number), False)
    named, (first, *_) = shown["hash"], shown["transactions"]
    with follower(long_ledger, tmp_path / "store", has_body=False) as cold:
        reaching = Reaching(cold, ethereum)
        for body in (
            request("eth_getBlockByNumber", hex(anchor.number), False),
            request("eth_getBlockByNumber", "latest", True),
            request("eth_getBlockByHash", named, True),
            request("eth_getBlockReceipts", named),
            request("eth_getBlockReceipts", "latest"),
            request("eth_getTransactionByHash", first),
            request("eth_getTransactionReceipt", first),
        ):
            assert json.loads(cold.reply(body).body) == json.loads(ethereum.reply(body).body)
        assert {"eth_getBlockByHash", "eth_getBlockReceipts"} <= set(reaching.asked)


def test_old_transactions_are_as_a_whole_store_has_them(
    long_ledger: Ledger, ethereum: Asker, reaching: Reaching
) -> None:
    seen = 0
    for block in recent(long_ledger):
        shown = ethereum.ask("eth_getBlockByNumber", hex(block.number), False)
        for each in shown["transactions"]:
            for method in ("eth_getTransactionByHash", "eth_getTransactionReceipt"):
                body = request(method, each)
                found = json.loads(reaching.cold.reply(body).body)
                assert found == json.loads(ethereum.reply(body).body)
                seen += 1
        for body in (
            request("eth_getBlockByNumber", hex(block.number), True),
            request("eth_getBlockReceipts", hex(block.number)),
        ):
            found = json.loads(reaching.cold.reply(body).body)
            assert found == json.loads(ethereum.reply(body).body)
    assert seen > 10
    assert "eth_getBlockByNumber" not in reaching.asked, "the hash of a number is proven"


def test_what_is_here_is_not_asked_for(
    long_ledger: Ledger, ethereum: Asker, reaching: Reaching
) -> None:
    with closing(long_ledger.view()) as view:
        latest = view.latest
    shown = ethereum.ask("eth_getBlockByNumber", "latest", False)
    bodies = [
        request("eth_getBlockByHash", "0x" + latest.hash.hex(), True),
        request("eth_getBlockByNumber", "latest", False),
        request("eth_getBlockByNumber", hex(latest.number + 1), False),
        *(request("eth_getTransactionReceipt", each) for each in shown["transactions"]),
    ]
    for body in bodies:
        reply = reaching.cold.reply(body)
        assert json.loads(reply.body) == json.loads(ethereum.reply(body).body)
        assert MARK not in reply.headers
    assert reaching.asked == []


def test_unknown_transaction_is_asked_for_once_in_a_while(reaching: Reaching) -> None:
    body = request("eth_getTransactionReceipt", "0x" + "12" * 32)
    for _ in range(3):
        assert json.loads(reaching.cold.reply(body).body)["result"] is None
    assert reaching.asked == ["eth_getTransactionByHash"]


@pytest.mark.parametrize(
    ("method", "field", "value"),
    [
        ("eth_getBlockByHash", "gasUsed", "0x1"),
        ("eth_getBlockByHash", "stateRoot", "0x" + "11" * 32),
        ("eth_getBlockByHash", "transactions", []),
        ("eth_getBlockReceipts", "status", "0x0"),
        ("eth_getBlockReceipts", "cumulativeGasUsed", "0x1"),
    ],
)
def test_false_blocks_are_refused(
    long_ledger: Ledger, reaching: Reaching, method: str, field: str, value: object
) -> None:
    def lie(asked: str, result: Any) -> Any:  # noqa: ANN401, JSON
        if asked != method:
            return result
        if isinstance(result, list):
            return [{**each, field: value} for each in result]
        return {**result, field: value}

    reaching.change = lie
    for block in recent(long_ledger):
        if len(block.header.logs_bloom.strip(b"\0")) == 0:
            continue
        body = request("eth_getBlockByHash", "0x" + block.hash.hex(), True)
        error = json.loads(reaching.cold.reply(body).body)["error"]
        assert error["code"] == -32002
        assert "is not proven" in error["message"]
        return
    pytest.fail("no block has logs")


def test_ancestors_of_the_anchor_are_proven_by_their_children(
    ethereum: Asker, reaching: Reaching
) -> None:
    uncles = 0
    for number in range(int(ethereum.ask("eth_blockNumber"), 16)):  # most are before EIP-2935
        params = (hex(number), True)
        reply = reaching.cold.reply(request("eth_getBlockByNumber", *params))
        block = ethereum.ask("eth_getBlockByNumber", *params)
        assert json.loads(reply.body)["result"] == block
        assert reply.headers.endswith(MARK)
        uncles += len(block["uncles"])
    assert uncles


def test_a_batch_says_that_an_upstream_had_some_of_it(reaching: Reaching) -> None:
    old = json.loads(request("eth_getBlockByNumber", "0x1", False))
    here = json.loads(request("eth_blockNumber"))
    assert reaching.cold.reply(json.dumps([here, old]).encode()).headers.endswith(MARK)
    assert MARK not in reaching.cold.reply(json.dumps([here, here]).encode()).headers


def test_ancestor_that_is_not_proven_is_refused(
    reaching: Reaching, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pre_anchor, "MOST_ANCESTORS", 10)
    body = request("eth_getBlockByNumber", "0x1", False)  # before the contract of EIP-2935
    error = json.loads(reaching.cold.reply(body).body)["error"]
    assert error["code"] == 4444


def test_ancestor_is_believed_where_upstreams_are_trusted(
    ethereum: Asker, trusting: Reaching
) -> None:
    block = ethereum.ask("eth_getBlockByNumber", "0x1", False)
    body = request("eth_getBlockByNumber", "0x1", False)
    found = json.loads(trusting.cold.reply(body).body)["result"]
    assert found["hash"] == block["hash"]


def test_all_questions_of_one_request_have_one_deadline(
    long_ledger: Ledger, tmp_path: Path
) -> None:
    async def never(_: str, __: bytes) -> bytes:
        await asyncio.Event().wait()
        return b""

    with follower(long_ledger, tmp_path / "store", fetch_timeout=0.05) as cold:
        assert cold.state is not None
        VerifiedHistory(cold.ledger, cold.state, never).add(cold.service.methods)
        error = cold.ask("eth_getBlockByHash", "0x" + "5a" * 32, True)
        assert error["code"] == -32002
        assert "nothing in 0.05 s" in error["message"]
