"""eth_getLogs: forms of filters, errors, blocks in progress, limits."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from foreblock.ledger.reading.view import Ledger
from support.chains.preconfirming import COUNTER, PreconfirmingChain
from support.chains.writing import PASSER
from support.each_case import each_case
from support.servers.asking import Asker, asker, error
from support.servers.long_work import thresholds

ALL = {"fromBlock": "0x0", "toBlock": "latest"}
LONG_CHAIN = "0x" + "e1" * 20  # the contract that logs on it
TOPIC = f"0x{0xAA:064x}"
BOTH = (
    "invalid argument 0: cannot specify both BlockHash and FromBlock/ToBlock,"
    " choose one or the other"
)
MANY_TOPICS = "invalid argument 0: exceed max topics"
SHORT = "invalid argument 0: $.address: hex string has length 2, want 40 for an address"
MANY_VALUES = "exceed max addresses or topics per search position"
FUTURE = "block range extends beyond current head block"
REVERSED = "invalid block range params"


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[PreconfirmingChain]:
    found = PreconfirmingChain(tmp_path / "store")
    yield found
    found.close()


def numbers(logs: list[dict[str, Any]]) -> list[int]:
    return [int(log["blockNumber"], 16) for log in logs]


def test_logs_are_those_of_the_receipts(ethereum: Asker) -> None:
    found = ethereum.ask("eth_getLogs", ALL)
    receipts = [
        receipt
        for number in range(int(ethereum.ask("eth_blockNumber"), 16) + 1)
        for receipt in ethereum.ask("eth_getBlockReceipts", hex(number))
    ]
    assert found == [log for receipt in receipts for log in receipt["logs"]]
    assert len(found) > 50


@each_case(
    ("asked", "expected"),
    [
        ({"topics": [TOPIC, None, None, None, None]}, (-32602, MANY_TOPICS)),
        ({"topics": [[TOPIC] * 1001]}, (-32602, MANY_TOPICS)),
        ({"address": [LONG_CHAIN] * 1001}, (-32000, MANY_VALUES)),
        ({"fromBlock": "0x5", "toBlock": "0x4"}, (-32602, REVERSED)),
        ({"fromBlock": "latest", "toBlock": "0x4"}, (-32602, REVERSED)),
        ({"fromBlock": "latest", "toBlock": "0x36"}, (-32602, REVERSED)),
        ({"fromBlock": "0x100"}, (-32602, REVERSED)),
        ({"fromBlock": "0x5", "toBlock": "0x100"}, (-32602, FUTURE)),
        ({"fromBlock": "0x100", "toBlock": "0x101"}, (-32602, FUTURE)),
        ({"blockHash": "0x" + "11" * 32}, (-32000, "unknown block")),
        ({"blockHash": "0x" + "11" * 32, "toBlock": "0x4"}, (-32602, BOTH)),
        ({"address": "0x12"}, (-32602, SHORT)),
    ],
)  # fmt: skip
def test_refusals(ethereum: Asker, asked: dict[str, Any], expected: tuple[int, str]) -> None:
    assert ethereum.ask("eth_getLogs", asked) == error(*expected)


def test_ends_that_are_left_out_are_the_latest_block(ethereum: Asker) -> None:
    last = ethereum.ask("eth_blockNumber")
    plain = ethereum.ask("eth_getLogs", {"fromBlock": last, "toBlock": last})
    assert plain
    assert ethereum.ask("eth_getLogs", {}) == plain
    assert ethereum.ask("eth_getLogs", {"fromBlock": None, "toBlock": None}) == plain
    assert ethereum.ask("eth_getLogs", {"fromBlock": last}) == plain


def test_a_null_among_topics_matches_all(ethereum: Asker) -> None:
    asked = ALL | {"topics": [["0x" + "01" * 32, None]]}
    assert ethereum.ask("eth_getLogs", asked) == ethereum.ask(
        "eth_getLogs", ALL | {"topics": [None]}
    )


def test_one_block_may_be_named_by_its_hash(ethereum: Asker) -> None:
    block = ethereum.ask("eth_getBlockByNumber", "0x3", False)
    by_number = ethereum.ask("eth_getLogs", {"fromBlock": "0x3", "toBlock": "0x3"})
    assert by_number
    assert ethereum.ask("eth_getLogs", {"blockHash": block["hash"]}) == by_number


def test_earliest_is_the_first_block_though_its_state_is_not_kept(ethereum: Asker) -> None:
    assert ethereum.ask("eth_getLogs", ALL | {"fromBlock": "earliest"}) == ethereum.ask(
        "eth_getLogs", ALL
    )


def test_the_block_in_progress_is_shown_where_pending_is_named(
    chain: PreconfirmingChain, client: Asker
) -> None:
    chain.begin()
    chain.extend([chain.pay(COUNTER, 5)])
    chain.begin()
    chain.extend([chain.pay(COUNTER, 1)])
    first = client.ask("eth_getBlockByNumber", "pending", False)["hash"]
    chain.extend([chain.pay(), chain.pay(PASSER, 3)])
    pending = client.ask("eth_getBlockByNumber", "pending", False)
    assert numbers(client.ask("eth_getLogs", ALL)) == [1]
    found = client.ask("eth_getLogs", {"fromBlock": "0x0", "toBlock": "pending"})
    assert numbers(found) == [1, 2, 2]
    assert {log["blockHash"] for log in found[1:]} == {pending["hash"]}
    assert [log["logIndex"] for log in found] == ["0x0", "0x0", "0x1"]
    assert [log["transactionIndex"] for log in found] == ["0x1", "0x1", "0x3"]
    assert all(log["blockTimestamp"] == pending["timestamp"] for log in found[1:])
    only = {"address": "0x" + PASSER.hex()}
    assert client.ask("eth_getLogs", only | {"fromBlock": "pending"}) == found[2:]
    # One flashblock, by its hash and by its position.
    by_hash = client.ask("eth_getLogs", {"blockHash": first})
    assert [log["blockHash"] for log in by_hash] == [first]
    place = {"blockNumber": "0x2", "flashblockIndex": "0x1"}
    assert client.ask("eth_getLogs", {"fromBlock": "0x2", "toBlock": place}) == by_hash
    chain.begin()
    assert client.ask("eth_getLogs", {"blockHash": first}) == by_hash
    assert numbers(client.ask("eth_getLogs", {"fromBlock": "0x1", "toBlock": place})) == [1, 2]


def test_without_a_block_in_progress_pending_is_latest(ethereum: Asker) -> None:
    pending = ALL | {"toBlock": "pending"}
    assert ethereum.ask("eth_getLogs", pending) == ethereum.ask("eth_getLogs", ALL)


def test_the_number_of_the_block_in_progress_is_beyond_the_head(
    chain: PreconfirmingChain, client: Asker
) -> None:
    chain.begin()
    asked = {"fromBlock": "0x1", "toBlock": "0x1"}
    assert client.ask("eth_getLogs", asked) == error(-32602, FUTURE)


def test_too_many_results_name_a_range_that_works(long_ledger: Ledger) -> None:
    with asker(long_ledger, "ethereum", logs_results=10) as client:
        refused = client.ask("eth_getLogs", ALL)
        assert refused["code"] == -32005
        start, _, end = refused["message"].partition(" [")
        assert start == "query returned more than 10 results. Try with this block range"
        first, last = end.removesuffix("].").split(", ")
        found = client.ask("eth_getLogs", {"fromBlock": first, "toBlock": last})
        assert 0 < len(found) <= 10
        beyond = {"fromBlock": first, "toBlock": hex(int(last, 16) + 1)}
        assert client.ask("eth_getLogs", beyond)["code"] == -32005


def test_one_block_is_answered_however_much_it_has(long_ledger: Ledger) -> None:
    with asker(long_ledger, "ethereum", logs_results=0) as client, thresholds(logs_bytes=10):
        assert client.ask("eth_getLogs", ALL)["code"] == -32005
        assert len(client.ask("eth_getLogs", {"fromBlock": "0x2", "toBlock": "0x2"})) == 1


def test_too_many_bytes_are_refused(long_ledger: Ledger) -> None:
    with asker(long_ledger, "ethereum") as client, thresholds(logs_bytes=10_000):
        refused = client.ask("eth_getLogs", ALL)
        assert refused["code"] == -32005
        assert refused["message"].startswith("Log response size exceeded: more than 10000 bytes.")


def test_too_many_blocks_are_refused_as_by_geth(long_ledger: Ledger) -> None:
    with asker(long_ledger, "ethereum", logs_blocks=5) as client:
        assert isinstance(client.ask("eth_getLogs", {"fromBlock": "0x1", "toBlock": "0x6"}), list)
        asked = {"fromBlock": "0x1", "toBlock": "0x7"}
        message = "exceed maximum block range: 5. Try with this block range [0x1, 0x6]."
        assert client.ask("eth_getLogs", asked) == error(-32005, message)


def test_a_query_that_takes_too_long_says_how_far_it_came(long_ledger: Ledger) -> None:
    with asker(long_ledger, "ethereum") as client, thresholds(logs_time=0.0):
        message = "query timeout exceeded. Try with this block range [0x0, 0x0]."
        assert client.ask("eth_getLogs", ALL) == error(-32005, message)


def test_long_answers_are_cut_into_pieces_and_stay_the_same(ethereum: Asker) -> None:
    whole = ethereum.ask("eth_getLogs", ALL)
    small = {"scanned_receipts": 1, "found_logs_bytes": 1, "scanned_headers": 1}
    with thresholds(**small, piece_bytes=100, pieces_bytes=1000, slice_seconds=0.0):
        assert ethereum.ask("eth_getLogs", ALL) == whole
