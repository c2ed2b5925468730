"""Calls on the fast path of the engine, compared with the ordinary path."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreblock.ledger.reading.view import Ledger
from foreblock.ledger.rules.transaction_rules import created_address
from foreblock.settings import Settings
from foreblock.settings.service_settings import CallLimits
from support.chains.long_chain import DELEGATED, EMITTER, REVERTER, SURROUNDED
from support.chains.preconfirming import COUNTER, SENDER, PreconfirmingChain
from support.payloads.bytecode import LOOP
from support.servers.asking import asker, request
from support.servers.long_work import thresholds
from support.servers.two_ways import UNHURRIED_US, PathPair
from support.servers.wire import post

CONTRACTS = [
    SURROUNDED,
    REVERTER,
    DELEGATED,
    EMITTER,
    "0x" + "00" * 19 + "04",
    "0x" + "00" * 20,
]
TEXTS = st.sampled_from([*CONTRACTS, "0x", "0x12", "0xabc", "", "nope", "0X" + "00" * 20])
USUAL = st.fixed_dictionaries(
    {"to": st.sampled_from(CONTRACTS) | TEXTS},
    optional={
        "data": st.binary(max_size=40).map(lambda data: "0x" + data.hex()) | TEXTS,
        "from": TEXTS,
        "input": st.just("0x12345678"),
        "gas": st.sampled_from(["0x5208", "0x186a0", "0x0"]),
        "value": st.sampled_from(["0x0", "0x1"]),
    },
)
BLOCKS = st.sampled_from(["latest", "pending", "latest", "0x1", "safe"])


PRESENT = {"to": CONTRACTS[0], "data": "0x12345678", "from": CONTRACTS[1]}


@pytest.fixture(scope="module", params=["preconf", "ethereum"])
def ways(long_ledger: Ledger, request: pytest.FixtureRequest) -> Iterator[PathPair]:
    found = PathPair(long_ledger, Settings(dialect=request.param))
    yield found
    found.scheduler.close()
    long_ledger.fast_path = None


def called(call: dict[str, Any] | None = None, block: str = "latest") -> bytes:
    return request("eth_call", PRESENT if call is None else call, block)


@given(USUAL, BLOCKS)
def test_both_ways_give_the_same_bytes(ways: PathPair, call: dict[str, Any], block: str) -> None:
    short, long = ways.both(called(call, block))
    assert short == long


def test_call_of_a_known_kind_does_take_the_short_way(ways: PathPair) -> None:
    kinds = [PRESENT, {"to": CONTRACTS[0]}, {"input": "0x12345678", "to": CONTRACTS[3]}]
    for call in kinds:
        ways.long.send(post(called(call)))
        found = ways.at_once(called(call))
        assert found is not None
        assert found == ways.long.send(post(called(call)))
        longer = call | {"data": call.get("data", "0x") + "00"}
        if "data" in call:
            assert ways.at_once(called(longer)) is not None, "the beginning makes the kind"
    assert ways.at_once(called(PRESENT | {"data": "0x12345679"})) is None


def test_calls_in_a_batch_take_the_short_way_with_balances(ways: PathPair) -> None:
    ways.long.send(post(called()))
    balance = request("eth_getBalance", CONTRACTS[0], "latest")
    body = b"[%b,%b,%b]" % (called(), balance, called())
    found = ways.at_once(body)
    assert found is not None
    assert found == ways.long.send(post(body))


def test_call_that_reverts_goes_the_long_way(ways: PathPair) -> None:
    reverting = {"to": CONTRACTS[1]}
    ways.long.send(post(called(reverting)))
    assert ways.at_once(called(reverting)) is None


def test_call_with_overrides_says_nothing_of_its_kind(ways: PathPair) -> None:
    call = {"to": CONTRACTS[2], "data": "0x99999999"}
    overrides = {CONTRACTS[2]: {"code": "0x"}}
    ways.long.send(post(request("eth_call", call, "latest", overrides)))
    ways.long.send(post(request("eth_call", call, "latest", None, {"number": "0x1"})))
    assert ways.at_once(called(call)) is None


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[PreconfirmingChain]:
    found = PreconfirmingChain(tmp_path / "store")
    found.begin()
    yield found
    found.close()


# Ends immediately if the word after its selector is zero, and otherwise never.
SOMETIMES_LONG = bytes.fromhex("600435600757005b600756")
DEPLOY = bytes.fromhex("6a" + SOMETIMES_LONG.hex() + "5f52600b6015f3")


def test_kind_that_takes_long_once_is_short_no_more(chain: PreconfirmingChain) -> None:
    """From then on the scheduler decides, which knows the slow kinds."""
    contract = created_address(SENDER, chain.nonce)
    chain.extend([chain.pay(None, 0, DEPLOY)])
    ways = PathPair(Ledger(chain.store, clock=chain.clock), Settings(call=CallLimits(gas_cap=0)))
    short, long = (
        post(called({"to": f"0x{contract.hex()}", "data": f"0x12345678{word:064x}"}, "pending"))
        for word in (0, 1)
    )
    for _ in range(2):
        assert b'"result":"0x"' in ways.short.send(short)
    assert ways.fast_path.answer(short, b"") is not None
    assert ways.fast_path.answer(long, b"") is None
    assert ways.fast_path.answer(short, b"") is None
    ways.scheduler.close()


def test_call_sees_the_block_that_it_names(chain: PreconfirmingChain) -> None:
    """Storage and properties of the block; a new flashblock needs no new kind."""
    ways = PathPair(Ledger(chain.store, clock=chain.clock), Settings())
    call = {"to": f"0x{COUNTER.hex()}"}
    for _ in range(3):
        chain.extend([chain.pay(COUNTER, 7)])
        short, long = ways.both(called(call, "pending"))
        assert short == long
    assert ways.at_once(called(call, "pending")) is not None
    ways.scheduler.close()


def test_loop_with_an_override_does_not_make_the_usual_call_slow(long_ledger: Ledger) -> None:
    with (
        thresholds(call_us=UNHURRIED_US),
        asker(long_ledger, call_timeout=0.05, call_gas_cap=0, pool_queue=1) as client,
    ):
        contract = CONTRACTS[0]
        loop = request("eth_call", {"to": contract}, "latest", {contract: {"code": LOOP}})
        usual = request("eth_call", {"to": contract}, "latest")
        replies = client.replies([loop, loop, loop, usual])
        assert "result" in json.loads(replies[3].body)
