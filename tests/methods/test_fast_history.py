"""Receipts and logs on the fast path, compared with the ordinary path."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreblock.ledger.reading.view import Ledger
from foreblock.metrics.catalogue import OUTCOMES
from foreblock.metrics.counter_file import CounterFile
from foreblock.metrics.meters import RequestMeter
from foreblock.settings import Settings
from foreblock.settings.service_settings import LogLimits
from support.chains.preconfirming import COUNTER, PAID, PreconfirmingChain
from support.servers.asking import request
from support.servers.two_ways import PathPair, bounds
from support.servers.wire import answer, post

BLOCKS = 40  # so that some are indexed


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[PreconfirmingChain]:
    """Sealed blocks of two indices each, every third with a log; one in progress."""
    found = PreconfirmingChain(tmp_path / "store")
    for number in range(BLOCKS):
        found.begin()
        to = PAID if number % 3 else COUNTER
        found.extend([found.pay(to, 1), found.pay(value=2)])
    found.run_until_idle()
    yield found
    found.close()


@pytest.fixture(
    params=[
        Settings(),
        Settings(dialect="ethereum"),
        Settings(dialect="ethereum", view="sealed"),
        Settings(logs=LogLimits(results=5, blocks=20)),
    ]
)
def ways(chain: PreconfirmingChain, request: pytest.FixtureRequest) -> Iterator[PathPair]:
    found = PathPair(Ledger(chain.store, clock=chain.clock), request.param)
    yield found
    found.scheduler.close()


def receipt(transaction_hash: str) -> bytes:
    return request("eth_getTransactionReceipt", transaction_hash)


def logs(**wanted: Any) -> bytes:  # noqa: ANN401, as JSON
    return request("eth_getLogs", wanted)


def result(sent: bytes) -> Any:  # noqa: ANN401, as JSON
    return json.loads(answer(sent).body)["result"]


def block(ways: PathPair, name: str) -> Any:  # noqa: ANN401, as JSON
    return result(ways.long.send(post(request("eth_getBlockByNumber", name, False))))


def test_receipts_of_known_sealed_blocks_are_answered_at_once(ways: PathPair) -> None:
    for number in (1, 4, BLOCKS - 1):
        first, *others = block(ways, hex(number))["transactions"]
        assert ways.at_once(receipt(first)) is None, "its block is not known yet"
        for each in (first, *others):
            short, long = ways.both(receipt(each))
            assert short == long == ways.at_once(receipt(each))
            assert result(short)["transactionHash"] == each


def test_pending_and_unknown_transactions_take_the_ordinary_path(ways: PathPair) -> None:
    for each in (*block(ways, "pending")["transactions"], "0x" + "12" * 32):
        short, long = ways.both(receipt(each))
        assert short == long
        is_sealed = result(long) is not None and int(result(long)["blockNumber"], 16) < BLOCKS
        assert (ways.at_once(receipt(each)) is not None) == is_sealed


def test_receipts_follow_a_reorganisation(chain: PreconfirmingChain) -> None:
    ways = PathPair(Ledger(chain.store, clock=chain.clock), Settings())
    gone = block(ways, hex(BLOCKS - 1))["transactions"]
    for each in gone:
        ways.both(receipt(each))
        assert ways.at_once(receipt(each)) is not None
    chain.rewind(2)
    for each in gone:
        short, long = ways.both(receipt(each))
        assert short == long
    ways.scheduler.close()


def test_logs_of_sealed_blocks_are_answered_at_once(ways: PathPair) -> None:
    emitter = f"0x{COUNTER.hex()}"
    hashes = [block(ways, name)["hash"] for name in ("0x1", "0x2", hex(BLOCKS - 1))]
    wanted: list[dict[str, Any]] = [
        {"fromBlock": "0x1", "toBlock": "0xa"},
        {"fromBlock": "0x1", "toBlock": "0xa", "address": emitter},
        {"fromBlock": "0x1", "toBlock": "0xa", "address": f"0x{PAID.hex()}"},
        {"fromBlock": "0x11", "toBlock": hex(BLOCKS - 1), "address": [emitter, f"0x{PAID.hex()}"]},
        {"address": emitter},
        *({"blockHash": each} for each in hashes),
    ]
    assert ways.at_once(logs(**wanted[0])) is None, "the limits are not known yet"
    for each in wanted:
        short, long = ways.both(logs(**each))
        assert short == long
        is_long = int(each.get("toBlock", "0x0"), 16) - int(each.get("fromBlock", "0x0"), 16) > 20
        if not is_long:
            assert ways.at_once(logs(**each)) == long
    found = result(ways.both(logs(**wanted[1]))[0])
    assert [int(each["blockNumber"], 16) for each in found] == [1, 4, 7, 10]


_hashes = st.sampled_from(["0x" + "12" * 32, "0x12", "", "latest"])
_ends = st.sampled_from(
    [None, "latest", "earliest", "pending", "safe", "0x0", "0x1", "0x01", "0x14", "0x27", "0x28",
     "0x29", "0xff", "12", "", 3]
)  # fmt: skip
_addresses = st.sampled_from([f"0x{COUNTER.hex()}", f"0X{PAID.hex().upper()}", "0x12", None, 1])
_topics: st.SearchStrategy[Any] = st.sampled_from(["0x" + "00" * 32, None, "0x12", []])


@st.composite
def _filters(draw: st.DrawFn) -> dict[str, Any]:
    members = {
        "blockHash": _hashes,
        "fromBlock": _ends,
        "toBlock": _ends,
        "address": _addresses | st.lists(_addresses, max_size=3),
        "topics": st.none() | st.lists(_topics | st.lists(_topics, max_size=2), max_size=5),
        "extra": st.just(1),
    }
    chosen = draw(st.lists(st.sampled_from(sorted(members)), max_size=4, unique=True))
    return {name: draw(members[name]) for name in chosen}


@given(_filters())
def test_a_search_at_once_is_that_of_the_ordinary_path(
    ways: PathPair, wanted: dict[str, Any]
) -> None:
    ways.renew()
    ways.both(logs(fromBlock="0x1", toBlock="0x1"))
    short, long = ways.both(logs(**wanted))
    assert short == long


def test_batches_of_receipts_and_logs_are_answered_at_once(ways: PathPair) -> None:
    names = block(ways, "0x4")["transactions"]
    ways.both(receipt(names[0]))
    ways.both(logs(fromBlock="0x1", toBlock="0x1"))
    items = [*map(receipt, names), logs(fromBlock="0x1", toBlock="0x8")]
    body = b"[%b]" % b",".join(items)
    assert ways.at_once(body) == ways.long.send(post(body))


def test_answers_are_counted_by_their_methods(chain: PreconfirmingChain) -> None:
    ways, counters = PathPair(Ledger(chain.store, clock=chain.clock), Settings()), CounterFile()
    meter = RequestMeter(counters, "main")
    fast_path = ways.ledger.open_fast_path(bounds(), meter)
    bodies = {
        "eth_getTransactionReceipt": receipt(block(ways, "0x4")["transactions"][0]),
        "eth_getLogs": logs(fromBlock="0x1", toBlock="0x8"),
    }
    for body in bodies.values():
        ways.long.send(post(body))
        fast_path.cache_head(b"head", len(body), b"HTTP/1.1 200 OK\r\n", b"")
        assert fast_path.answer(b"head\r\n\r\n" + body, b"Date: now\r\n") is not None
    for method in bodies:
        assert counters.cells[meter.row(method) + OUTCOMES.index("ok")] == 1
    ways.scheduler.close()
