"""Requests about blocks before the anchor, passed to the upstream: as from a complete chain."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from foreblock.errors import ErrorAnswer
from foreblock.follow.passthrough import MARK, Passthrough
from foreblock.follow.pre_anchor import VerifiedHistory
from foreblock.ledger.reading.view import Ledger
from support.payloads.bytecode import code
from support.servers.asking import Asker, request
from support.servers.cold_follower import Follower, follower

SOMEBODY = "0x" + "00" * 20
REVERTING = code(0xABCD, 0, "MSTORE", 2, 30, "REVERT")
SIMULATED: dict[str, Any] = {"blockStateCalls": [{}]}


@pytest.fixture
def passing(long_ledger: Ledger, ethereum: Asker, tmp_path: Path) -> Iterator[Follower]:
    async def ask(method: str, params: bytes) -> bytes:
        # It has a separate loop, which cannot run inside of this one.
        body = request(method, *json.loads(params))
        said = json.loads((await asyncio.to_thread(ethereum.reply, body)).body)
        if "error" in said:
            raise ErrorAnswer(**said["error"])
        return json.dumps(said["result"]).encode()

    with follower(long_ledger, tmp_path / "store") as cold:
        assert cold.state is not None
        VerifiedHistory(cold.ledger, cold.state, ask, believes=True).add(cold.service.methods)
        Passthrough(ask).add(cold.service.methods)
        yield cold


@pytest.mark.parametrize(
    "asked",
    [
        ("eth_getBalance", SOMEBODY, "0x3"),
        ("eth_getBalance", SOMEBODY, {"blockNumber": "0x3"}),
        ("eth_getBlockByNumber", "earliest", True),
        ("eth_getBlockReceipts", "earliest"),
        ("eth_getTransactionByBlockNumberAndIndex", "0x1", "0x0"),
        ("eth_call", {"to": SOMEBODY}, "0x3"),
        ("eth_simulateV1", SIMULATED, "0x3"),
        ("eth_getLogs", {"fromBlock": "0x1", "toBlock": "0x4"}),
        ("debug_getRawHeader", "0x0"),
    ],
)
def test_what_is_before_the_anchor_is_passed_on(
    ethereum: Asker, passing: Follower, asked: tuple[str, Any]
) -> None:
    reply = passing.reply(request(*asked))
    assert json.loads(reply.body)["result"] == ethereum.ask(*asked)
    assert reply.headers.endswith(MARK)


@pytest.mark.parametrize(
    "asked",
    [
        ("eth_getBalance", SOMEBODY, "latest"),
        ("eth_getBalance", SOMEBODY),
        ("eth_getLogs", {"fromBlock": "latest"}),
        ("eth_getBlockByNumber", "0x36", False),
        ("eth_getBalance", SOMEBODY, "0xzz"),
    ],
)
def test_the_rest_is_answered_here(
    ethereum: Asker, passing: Follower, asked: tuple[str, Any]
) -> None:
    reply = passing.reply(request(*asked))
    assert json.loads(reply.body) == json.loads(ethereum.reply(request(*asked)).body)
    assert MARK not in reply.headers


@pytest.mark.parametrize("params", [b"", b',"params":[]', b',"params":null'])
def test_the_forks_are_those_of_the_upstream_with_or_without_params(
    ethereum: Asker, passing: Follower, params: bytes
) -> None:
    reply = passing.reply(b'{"jsonrpc":"2.0","id":1,"method":"eth_config"%b}' % params)
    assert json.loads(reply.body)["result"] == ethereum.ask("eth_config")
    assert reply.headers.endswith(MARK)


def test_a_block_that_is_named_by_a_hash_of_old_is_passed_on(
    ethereum: Asker, passing: Follower
) -> None:
    block = ethereum.ask("eth_getBlockByNumber", "0x2", False)
    asked = ("eth_getBalance", SOMEBODY, {"blockHash": block["hash"]})
    assert passing.ask(*asked) == ethereum.ask(*asked)


@pytest.mark.parametrize(
    "asked",
    [
        ("eth_call", {"data": REVERTING}, "0x3"),
        ("eth_call", {"to": SOMEBODY, "gas": "0x1"}, "0x3"),
    ],
)
def test_errors_are_those_of_the_upstream(
    ethereum: Asker, passing: Follower, asked: tuple[str, Any]
) -> None:
    said = json.loads(ethereum.reply(request(*asked)).body)
    assert "error" in said
    assert json.loads(passing.reply(request(*asked)).body) == said


def test_many_blocks_of_a_simulation_take_few_rounds(ethereum: Asker, passing: Follower) -> None:
    """Each block begins with its own slots, all of which are requested with the first."""
    asked = ("eth_simulateV1", {"blockStateCalls": [{"blockOverrides": {"number": "0x80"}}]})
    mine = passing.ask(*asked, "latest")
    theirs = ethereum.ask(*asked, "latest")
    assert [each["number"] for each in mine] == [each["number"] for each in theirs]
