"""Suggested prices and the fee history, compared with the transactions themselves."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from foreblock.methods.fee_methods import LEAST, MOST, suggestion
from support.chains.paying_chain import GWEI, PayingChain, client_of, paying_chain
from support.payloads.dev_state import BOB
from support.servers.asking import Asker, error

TIPS = [5, 1, 3, 2, 4]  # gwei


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[PayingChain]:
    """Block 1 has five tips, block 2 nothing, block 3 is in progress with one transaction."""
    with paying_chain(tmp_path / "store") as found:
        found.extend(*(found.signed(BOB, 1, max_priority_fee_per_gas=tip * GWEI) for tip in TIPS))
        found.begin()
        found.begin()
        found.extend(found.signed(BOB, 1, max_priority_fee_per_gas=7 * GWEI))
        yield found


@pytest.fixture
def client(chain: PayingChain) -> Iterator[Asker]:
    with client_of(chain) as found:
        yield found


def base_fee(client: Asker, block: object) -> int:
    return int(client.ask("eth_getBlockByNumber", block, False)["baseFeePerGas"], 16)


def test_tip_is_the_sixtieth_percentile_of_the_three_lowest(client: Asker) -> None:
    """Of 1, 2 and 3 gwei in block 1; block 2 has none, and block 3 is not sealed."""
    assert client.ask("eth_maxPriorityFeePerGas") == hex(2 * GWEI)


def test_price_is_the_base_fee_and_the_tip(client: Asker) -> None:
    fee = base_fee(client, "pending")
    assert fee == GWEI, "as low as the chain allows"
    assert client.ask("eth_gasPrice") == hex(fee + 2 * GWEI)


def test_price_is_enough_for_the_block_after_a_full_one(chain: PayingChain, client: Asker) -> None:
    """The gas target is a fifth of the limit; a fuller block makes the next one more expensive."""
    burn = bytes.fromhex("5b5f56")  # until the gas runs out
    chain.extend(chain.signed(None, 0, burn, who=1, gas=200_000_000))
    price = int(client.ask("eth_gasPrice"), 16) - 2 * GWEI
    now = base_fee(client, "pending")
    chain.begin()
    assert now < price == base_fee(client, "pending")
    assert int(client.ask("eth_gasPrice"), 16) - 2 * GWEI == price


def test_idle_chain_suggests_a_little(tmp_path: Path) -> None:
    with paying_chain(tmp_path / "store") as chain, client_of(chain) as client:
        chain.begin()
        assert client.ask("eth_maxPriorityFeePerGas") == hex(10**6)
        assert client.ask("eth_gasPrice") == hex(GWEI + 10**6)


def test_legacy_price_counts_as_the_tip_above_the_base_fee(tmp_path: Path) -> None:
    with paying_chain(tmp_path / "store") as chain, client_of(chain) as client:
        chain.extend(chain.signed(BOB, 1, type=0, gas_price=4 * GWEI))
        chain.begin()
        assert client.ask("eth_maxPriorityFeePerGas") == hex(3 * GWEI)


def test_suggestion_stays_between_its_bounds() -> None:
    assert suggestion([]) == suggestion([0]) == LEAST
    assert suggestion([10**15]) == MOST
    assert suggestion([LEAST + each for each in range(60)]) == LEAST + 35


def test_only_the_last_twenty_blocks_count(chain: PayingChain, client: Asker) -> None:
    for _ in range(18):
        chain.begin()
    assert chain.writer.latest.number == 20
    assert client.ask("eth_maxPriorityFeePerGas") == hex(2 * GWEI)
    chain.begin()
    # Block 1 is outside the window, block 3 with its single tip is not.
    assert client.ask("eth_maxPriorityFeePerGas") == hex(7 * GWEI)


def test_who_asks_after_each_block_gets_what_another_gets(
    chain: PayingChain, client: Asker
) -> None:
    for number in range(30):
        if number % 3:
            tip = (number * 7 % 11 + 1) * GWEI
            chain.extend(chain.signed(BOB, 1, max_priority_fee_per_gas=tip))
        chain.begin()
        if number % 5 == 4:
            chain.begin()  # two blocks without a request
        with client_of(chain) as other:
            expected = other.ask("eth_maxPriorityFeePerGas")
        assert client.ask("eth_maxPriorityFeePerGas") == expected


def test_history_has_the_blocks_asked_for(chain: PayingChain, client: Asker) -> None:
    history = client.ask("eth_feeHistory", "0x3", "pending", [0, 50, 100])
    blocks = [client.ask("eth_getBlockByNumber", hex(number), False) for number in (1, 2)]
    blocks.append(client.ask("eth_getBlockByNumber", "pending", False))
    assert history["oldestBlock"] == "0x1"
    assert history["baseFeePerGas"][:3] == [block["baseFeePerGas"] for block in blocks]
    full = [int(block["gasUsed"], 16) / int(block["gasLimit"], 16) for block in blocks]
    assert history["gasUsedRatio"] == full
    assert history["blobGasUsedRatio"] == [0.0] * 3
    assert history["baseFeePerBlobGas"] == ["0x1"] * 4
    rewards = [[1, 3, 5], [0, 0, 0], [7, 7, 7]]
    assert history["reward"] == [[hex(tip * GWEI) for tip in row] for row in rewards]
    chain.begin()
    following = client.ask("eth_getBlockByNumber", "pending", False)
    assert history["baseFeePerGas"][3] == following["baseFeePerGas"]


def test_history_ends_where_it_is_told_to(client: Asker) -> None:
    history = client.ask("eth_feeHistory", "0x2", "latest", [])
    assert history["oldestBlock"] == "0x1"
    assert len(history["baseFeePerGas"]) == 3
    assert "reward" not in history
    whole = client.ask("eth_feeHistory", "0x400", "latest")
    assert whole["oldestBlock"] == "0x0"
    assert len(whole["gasUsedRatio"]) == 3
    pin = {"blockNumber": "0x3", "flashblockIndex": "0x0"}
    early = client.ask("eth_feeHistory", "0x1", pin, [100])
    assert early["reward"] == [["0x0"]], "before its transaction"


@pytest.mark.parametrize("count", [2, "2", "0x2", "0x02"])
def test_count_may_be_written_in_several_ways(client: Asker, count: object) -> None:
    assert len(client.ask("eth_feeHistory", count, "latest")["gasUsedRatio"]) == 2


def test_history_of_no_blocks_is_empty(client: Asker) -> None:
    history: dict[str, Any] = client.ask("eth_feeHistory", "0x0", "latest", [5])
    assert history["oldestBlock"] == "0x0"
    assert history["gasUsedRatio"] == history["baseFeePerGas"] == []


def test_more_blocks_than_there_may_be_are_lowered(client: Asker) -> None:
    history = client.ask("eth_feeHistory", "0xffffffffffffffff", "latest")
    assert len(history["gasUsedRatio"]) == 3


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (["0x1", "0x9"], error(-32000, "header not found")),
        (["0x1"], error(-32602, "missing value for required argument 1 (newestBlock)")),
        ([-1, "latest"], error(-32602, "invalid argument 0: block count below 0")),
        (
            ["0x1", "latest", [101]],
            error(-32602, "invalid argument 2: $[0]: invalid reward percentile: 101"),
        ),
        (
            ["0x1", "latest", [5, 5]],
            error(
                -32602,
                "invalid argument 2: $[1]: reward percentile 5 is not above the one before it",
            ),
        ),
        (
            ["0x1", "latest", [each / 10 for each in range(101)]],
            error(-32602, "invalid argument 2: over the query limit 100"),
        ),
    ],
)
def test_bad_arguments_are_named(client: Asker, arguments: list[object], answer: object) -> None:
    assert client.ask("eth_feeHistory", *arguments) == answer


def test_history_of_a_chain_through_all_forks(ethereum: Asker) -> None:
    """All forks: no base fee, then one, then blob gas; senders are never recovered."""
    history = ethereum.ask("eth_feeHistory", "0x37", "latest", [50])
    assert history["oldestBlock"] == "0x0"
    for number, fee in enumerate(history["baseFeePerGas"][:-1]):
        block = ethereum.ask("eth_getBlockByNumber", hex(number), True)
        base = int(block.get("baseFeePerGas", "0x0"), 16)
        assert int(fee, 16) == base
        tips = [int(each["gasPrice"], 16) - base for each in block["transactions"]]
        (reward,) = history["reward"][number]
        assert int(reward, 16) in (tips or [0])
    assert len(history["baseFeePerBlobGas"]) == 56
    assert history["baseFeePerBlobGas"][-2] == ethereum.ask("eth_blobBaseFee")
    assert int(ethereum.ask("eth_gasPrice"), 16) > int(ethereum.ask("eth_maxPriorityFeePerGas"), 16)
