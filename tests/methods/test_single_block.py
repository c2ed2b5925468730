"""The fast path of a single block, compared with the ordinary path of simulations."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreblock.bench.rpc import chain as cancun
from foreblock.ledger.calls import simulation
from foreblock.ledger.importing.importer import import_files
from foreblock.ledger.reading.view import Ledger
from foreblock.scheduling.thresholds import THRESHOLDS
from support.chains.simulation_chain import build_optimism
from support.payloads.bytecode import LOOP, returning
from support.servers.asking import A0, A1, Asker, asker, funded, request, word
from support.strategies.simulation_strategy import CODES, CONTRACTS, PEOPLE

SHA256 = "0x" + "00" * 19 + "02"
PLACES = ["0x" + each.hex() for each in (*PEOPLE, *CONTRACTS)]
PEOPLE_ARE_FUNDED = funded(*("0x" + each.hex() for each in PEOPLE))
CONTRACTS_HAVE_CODE: dict[str, dict[str, Any]] = {
    "0x" + who.hex(): {"code": "0x" + code.hex(), "balance": "0x3e8"}
    for who, code in zip(CONTRACTS, CODES, strict=True)
}
TEXTS = st.sampled_from(["0x", "0x1", "0x01", "", "nope", None])
CALLS = st.fixed_dictionaries(
    {"from": st.sampled_from(PLACES)},
    optional={
        "to": st.sampled_from([*PLACES, A1, SHA256]) | TEXTS,
        "value": st.integers(0, 60).map(hex) | st.just(hex(2**255)) | TEXTS,
        "data": st.binary(max_size=40).map(lambda data: "0x" + data.hex()) | TEXTS,
        "input": st.just("0x12"),
        "gas": st.integers(20_000, 300_000).map(hex) | TEXTS,
        "nonce": st.just("0x0"),
    },
)
CONTRACTS_CODE = returning(1, "SLOAD")
SLOTS = st.sampled_from([{}, {word(1): word(2)}, {word(1): word(2), word(3): "0x4"}, None])
MORE = st.fixed_dictionaries(
    {},
    optional={
        A0: st.just(None),
        SHA256: st.sampled_from([{"code": "0x"}, {"movePrecompileToAddress": A1}]),
        A1: st.fixed_dictionaries(
            {},
            optional={
                "balance": st.sampled_from(["0x5", "0x01", None, 5]),
                "nonce": st.sampled_from(["0x7", hex(2**64 - 1), hex(2**64)]),
                "code": st.sampled_from(["0x00", "0x", "", "0x1", CONTRACTS_CODE]),
                "state": SLOTS,
                "stateDiff": SLOTS,
                "storage": SLOTS,
                "other": st.just(1),
            },
        ),
        A1.upper().replace("X", "x"): st.just({"balance": "0x6"}),
    },
)


@pytest.fixture(scope="module", params=["cancun", "jovian", "long_chain"])
def client_ledger(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Ledger]:
    """Ledgers of chains with and without queues of requests, on Ethereum and on an OP chain."""
    folder: Path = tmp_path_factory.mktemp("chain")
    store = folder / "store"
    if request.param == "cancun":
        (folder / "genesis.json").write_bytes(cancun.genesis())
        import_files(folder / "genesis.json", cancun.BLOCKS, store, None, lambda _: None)
    elif request.param == "jovian":
        build_optimism(store)
    else:
        files = request.getfixturevalue("long_chain")
        import_files(files.genesis, files.chain, store, files.fork_choice, lambda _: None)
    ledger = Ledger.open(str(store))
    yield ledger
    ledger.close()


@pytest.fixture(scope="module")
def client(client_ledger: Ledger) -> Iterator[Asker]:
    """A client of a service on the chain."""
    with asker(client_ledger) as made:
        yield made


def both_ways(client: Asker, block: dict[str, Any], at: str = "latest") -> tuple[bytes, bytes]:
    """The response by the fast path if it has one, and without it."""
    return all_both_ways(client, [block], at)


def all_both_ways(
    client: Asker, blocks: list[dict[str, Any]], at: str = "latest"
) -> tuple[bytes, bytes]:
    """The responses for several blocks, by the fast path and without it."""
    body = request("eth_simulateV1", {"blockStateCalls": blocks}, at)
    client.reply(body)  # from now on the block after this one is cached
    short = client.reply(body).body
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulation, "plain_simulation", lambda *_: None)
        return short, client.reply(body).body


@given(st.lists(CALLS, max_size=4), MORE, st.sampled_from(["latest", "pending", "0x0", "0x01"]))
def test_both_ways_give_the_same_bytes(
    client: Asker, calls: list[dict[str, Any]], more: dict[str, Any], at: str
) -> None:
    accounts = PEOPLE_ARE_FUNDED | CONTRACTS_HAVE_CODE | more
    short, long = both_ways(client, {"calls": calls, "stateOverrides": accounts}, at)
    assert short == long


@given(
    st.lists(st.tuples(st.lists(CALLS, max_size=3), MORE), min_size=2, max_size=4),
    st.sampled_from(["latest", "pending", "0x0"]),
)
def test_both_ways_give_the_same_bytes_for_several_blocks(
    client: Asker, contents: list[tuple[list[dict[str, Any]], dict[str, Any]]], at: str
) -> None:
    first = PEOPLE_ARE_FUNDED | CONTRACTS_HAVE_CODE
    blocks = [
        {"calls": calls, "stateOverrides": more if place else first | more}
        for place, (calls, more) in enumerate(contents)
    ]
    short, long = all_both_ways(client, blocks, at)
    assert short == long


def test_several_blocks_see_the_ones_before(client: Asker) -> None:
    code = {A1: {"code": returning("NUMBER", "TIMESTAMP", "ADD")}}
    blocks: list[dict[str, Any]] = [
        {"calls": [{"to": A1}, {"from": A0, "to": PLACES[0], "value": "0x1"}]} for _ in range(20)
    ]
    blocks[0]["stateOverrides"] = code | funded(A0)
    short, long = all_both_ways(client, blocks)
    assert short == long
    assert len(json.loads(short)["result"]) == len(blocks)


@pytest.mark.parametrize("count", [1, 3])
def test_blocks_do_take_the_fast_path(
    client: Asker, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, count: int
) -> None:
    """Except if requests wait in contracts, which need the ordinary path."""
    blocks: list[dict[str, Any]] = [{"calls": [{"to": A1}]}] * count
    all_both_ways(client, blocks)
    monkeypatch.setattr(simulation, "SimulatedChain", None)
    found = client.ask("eth_simulateV1", {"blockStateCalls": blocks}, "latest")
    assert ("code" in found) == ("long_chain" in request.node.name)


def test_a_simulation_without_calls_or_overrides_is_a_block_like_others(client: Asker) -> None:
    blocks: list[dict[str, Any]] = [{}, {"calls": []}, {"stateOverrides": {}}, {"calls": None}]
    for block in blocks:
        short, long = both_ways(client, block)
        assert short == long
        assert json.loads(short)["result"][0]["calls"] == []


def test_what_takes_long_leaves_the_short_way(client: Asker) -> None:
    loops = {"calls": [{"to": A1, "gas": "0x989680"}], "stateOverrides": {A1: {"code": LOOP}}}
    short, long = both_ways(client, loops)
    assert short == long
    assert json.loads(short)["result"][0]["calls"][0]["error"] == "out of gas"


def test_many_calls_leave_the_short_way(client: Asker) -> None:
    code = {A1: {"code": returning("NUMBER")}}
    for count in (50, 2_000, THRESHOLDS.long_params_bytes // len(A1)):
        short, long = both_ways(client, {"calls": [{"to": A1}] * count, "stateOverrides": code})
        assert short == long


def test_limits_are_an_operators_here_as_well(client_ledger: Ledger) -> None:
    with asker(client_ledger, simulate_block_calls=2) as client:
        for count in (2, 3):
            short, long = both_ways(client, {"calls": [{}] * count})
            assert short == long
            assert ("error" in json.loads(short)) == (count == 3)
