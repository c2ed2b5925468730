"""Blocks of 200 ms that state their milliseconds, as those of Base."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from foreblock import Client, DevChain
from foreblock.errors import BadSetting
from support.each_case import each_case

BASE_TIME = "0x4200000000000000000000000000000000000030"
COIN = "0x7E57000000000000000000000000000000000020"
BOB = "0x" + "b0" * 20
PART, MILLISECONDS = "timestampMillisPart()(uint16)", "timestampMs()(uint64)"


@pytest.fixture
def dev() -> Iterator[DevChain]:
    with DevChain(mode="clock", block_time=0.2, base_time=True) as chain:
        yield chain


def full_block(dev: DevChain, number: int | str) -> Any:  # noqa: ANN401, JSON
    name = number if isinstance(number, str) else hex(number)
    return dev.rpc("eth_getBlockByNumber", name, True)


def time_ms(block: Any) -> int:  # noqa: ANN401, JSON
    """The time of a block as its second transaction states it."""
    deposit = block["transactions"][1]
    assert deposit["to"] == BASE_TIME.lower()
    assert deposit["input"].startswith("0x86bdf394")
    return int(block["timestamp"], 16) * 1000 + int(deposit["input"][10:], 16)


def test_a_block_is_200_ms_after_its_parent_and_says_so(dev: DevChain) -> None:
    dev.advance(2)
    blocks = [full_block(dev, number) for number in range(1, 10)]
    assert [later - earlier for earlier, later in pairwise(map(time_ms, blocks))] == [200] * 8
    assert [int(block["timestampMs"], 16) for block in blocks] == list(map(time_ms, blocks))
    for block in (*blocks, full_block(dev, "pending")):
        expected = hex(time_ms(block))
        assert block["timestampMs"] == expected
        assert [each["blockTimestampMs"] for each in block["transactions"]] == [expected] * 2
        deposit = dev.rpc("eth_getTransactionByHash", block["transactions"][1]["hash"])
        assert deposit == block["transactions"][1]
    assert "timestampMs" not in full_block(dev, 0)


def test_contracts_read_the_time_of_their_block(dev: DevChain) -> None:
    dev.advance(1)
    for number in range(1, 4):
        stated = time_ms(full_block(dev, number))
        assert dev.at(number).call(BASE_TIME, MILLISECONDS) == stated
        assert dev.at(number).call(BASE_TIME, PART) == stated % 1000


def test_every_log_has_the_time_of_its_block(dev: DevChain) -> None:
    data = "0xa9059cbb" + BOB[2:].rjust(64, "0") + f"{1:064x}"
    sent = dev.send(COIN, data=bytes.fromhex(data[2:]))
    dev.advance(0.4)
    receipt = dev.rpc("eth_getTransactionReceipt", str(sent.hash))
    block = full_block(dev, receipt["blockNumber"])
    (log,) = receipt["logs"]
    assert log["blockTimestampMs"] == block["timestampMs"]
    assert "blockTimestampMs" not in receipt
    where = {"fromBlock": receipt["blockNumber"], "toBlock": receipt["blockNumber"]}
    assert dev.rpc("eth_getLogs", where) == [log]
    assert dev.rpc("eth_getBlockReceipts", receipt["blockNumber"])[2]["logs"] == [log]
    with dev.serve() as served, Client(served.url) as client:  # the engine answers by itself
        assert client.rpc("eth_getLogs", where) == [log]


def test_a_follower_says_the_same(dev: DevChain) -> None:
    follower = dev.follow()
    dev.advance(1)
    follower.wait()
    number = int(dev.rpc("eth_blockNumber"), 16)
    assert follower.rpc("eth_getBlockByNumber", hex(number), True) == full_block(dev, number)


def test_a_transaction_may_have_the_rest_of_the_gas(dev: DevChain) -> None:
    limit = int(full_block(dev, "pending")["gasLimit"], 16)
    sent = dev.send(BOB, value=1, gas=limit - 130_000)
    dev.advance(0.6)
    assert dev.rpc("eth_getTransactionReceipt", str(sent.hash))["status"] == "0x1"


@each_case("settings", [{"block_time": 1}, {"block_time": 0.2, "rules": "ethereum"}])
def test_other_chains_cannot_have_them(settings: dict[str, Any]) -> None:
    with pytest.raises(BadSetting, match=r"base_time: needs block_time 0\.2"):
        DevChain(mode="clock", base_time=True, **settings)


def test_milliseconds_increase_whatever_commands_do(dev: DevChain) -> None:
    choose = Random(0)
    commands: list[Callable[[], object]] = [
        lambda: dev.advance(choose.choice([0.1, 0.2, 0.35, 1.0])),
        lambda: dev.rpc("evm_mine"),
        lambda: dev.rpc("anvil_mine", hex(choose.randrange(1, 7))),
        lambda: dev.rpc("evm_increaseTime", choose.randrange(1, 50)),
        dev.restart_block,
        lambda: dev.reorg(choose.randrange(1, 3)),
    ]
    dev.advance(1)
    for _ in range(60):
        choose.choice(commands)()
    latest = int(dev.rpc("eth_blockNumber"), 16)
    times = [time_ms(full_block(dev, number)) for number in range(1, latest + 1)]
    assert all(earlier < later for earlier, later in pairwise(times))
