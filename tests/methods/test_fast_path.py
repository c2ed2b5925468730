"""Responses on the engine's fast path from bytes to bytes, compared with the ordinary path."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from foreblock.bus.commands import SetAccount
from foreblock.errors import InvalidArgument
from foreblock.ledger.reading.fast_path import set_snapshot
from foreblock.ledger.reading.view import Ledger
from foreblock.scheduling.thresholds import THRESHOLDS
from foreblock.server.endpoint import HttpEndpoint
from foreblock.settings import Settings
from support.chains.dev_chain import DevChain
from support.chains.preconfirming import PAID, PreconfirmingChain
from support.payloads.bytecode import returning
from support.servers.asking import request
from support.servers.two_ways import LIMITS, PathPair, bounds
from support.servers.wire import Wire, answer, endpoint_for, post

PAYEE = f"0x{PAID.hex()}"
RETURNS, REVERTS = "0x" + "c0" * 20, "0x" + "c1" * 20
OVERRIDES = {
    PAYEE: {"balance": "0x64"},
    RETURNS: {"code": returning("NUMBER")},
    REVERTS: {"code": "0x5f5ffd"},
}


def balance(who: str = PAYEE, block: str = "latest") -> bytes:
    return request("eth_getBalance", who, block)


def block(tag: str = "latest", *, full: bool = False) -> bytes:
    return request("eth_getBlockByNumber", tag, full)


def simulation(tag: str = "latest", **payload: object) -> bytes:
    calls = [{"from": PAYEE, "to": PAYEE, "value": "0x1"}, {"to": RETURNS}]
    blocks = [{"calls": calls, "stateOverrides": OVERRIDES}, {"calls": calls}]
    return request("eth_simulateV1", {"blockStateCalls": blocks} | payload, tag)


def result(sent: bytes) -> object:
    return json.loads(answer(sent).body)["result"]


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[PreconfirmingChain]:
    """One sealed block; a second one in progress."""
    found = PreconfirmingChain(tmp_path / "store")
    found.begin()
    found.extend([found.pay(value=1)])
    found.begin()
    found.extend([found.pay(value=10)])
    yield found
    found.close()


@pytest.fixture(
    params=[
        Settings(),
        Settings(dialect="ethereum"),
        Settings(dialect="ethereum", view="sealed"),
        Settings(pending_identity="null"),
        Settings(pending_by_number=True),
    ]
)
def ways(chain: PreconfirmingChain, request: pytest.FixtureRequest) -> Iterator[PathPair]:
    found = PathPair(Ledger(chain.store, clock=chain.clock), request.param)
    yield found
    found.scheduler.close()


def test_usual_questions_never_reach_the_long_way(ways: PathPair) -> None:
    for tag, paid in (("latest", "0x1"), ("pending", "0xb")):
        found = ways.at_once(balance(block=tag))
        assert found is not None
        assert result(found) == paid
        for full in (False, True):
            assert ways.at_once(block(tag, full=full)) is None, "it was not rendered before"
            assert ways.at_once(block(tag, full=full)) == ways.long.send(
                post(block(tag, full=full))
            )
    items = [json.loads(balance(block=tag)) | {"id": tag} for tag in ("latest", "pending")]
    found = ways.at_once(json.dumps(items).encode())
    assert found is not None
    assert [item["result"] for item in json.loads(answer(found).body)] == ["0x1", "0xb"]


# Usual and unusual requests of clients.
_ids = st.sampled_from(
    ["1", "0", '"a"', "null", "-1", "1.5", "1e2", "01", '"\\u0041"', "[1]", '"é"']
)
_methods = st.sampled_from(
    ["eth_getBalance", "eth_getBlockByNumber", "eth_simulateV1", "eth_blockNumber", "eth_x"]
)
_calls = st.fixed_dictionaries(
    {},
    optional={
        "from": st.sampled_from([PAYEE, RETURNS, "0x1"]),
        "to": st.sampled_from([PAYEE, RETURNS, REVERTS, None]),
        "value": st.sampled_from(["0x1", "0x65", "1", None]),
        "input": st.sampled_from(["0x", "0x00", "0x60016000f3"]),
        "gas": st.sampled_from(["0x5208", "0x5207", "0xffffff", "0xffffffffff"]),
        "nonce": st.just("0x0"),
        "maxFeePerGas": st.sampled_from(["0x0", "0x1"]),
    },
)
_blocks = st.fixed_dictionaries(
    {},
    optional={
        "calls": st.lists(_calls, max_size=3),
        "stateOverrides": st.sampled_from(
            [OVERRIDES, {}, {PAYEE: {"balance": 1}}, {"0x" + "00" * 19 + "02": {"code": "0x"}}]
        ),
        "blockOverrides": st.sampled_from([{}, {"number": "0x9"}, {"time": "0xffffffffff"}]),
    },
)
_payloads = st.fixed_dictionaries(
    {"blockStateCalls": st.lists(_blocks, max_size=3)},
    optional={
        name: st.booleans() for name in ("validation", "traceTransfers", "returnFullTransactions")
    },
)
_arguments = st.sampled_from(
    [f'"{PAYEE}"', f'"{PAYEE.upper()}"', '"0X' + "Ab" * 20 + '"', '"0x12"', '"latest"', '"pending"',
     '"safe"', '"0x1"', '"Latest"', "true", "false", "null", "{}", '""', '"lat\\u0065st"']
)  # fmt: skip
_spaces = st.sampled_from(["", "", " ", "\n\t", "\r"])


@st.composite
def _requests(draw: st.DrawFn) -> str:
    members = [
        ("jsonrpc", draw(st.sampled_from(['"2.0"', '"2.0"', '"2.0"', '"1.0"', "2.0"]))),
        ("id", draw(_ids)),
        ("method", f'"{draw(_methods)}"'),
        ("params", "[" + ",".join(draw(st.lists(_arguments, max_size=3))) + "]"),
    ]
    if draw(st.booleans()):
        who, tag = draw(_arguments), draw(st.sampled_from(['"latest"', '"pending"']))
        members[3] = ("params", f"[{who},{tag}]")
    if draw(st.booleans()):
        payload, tag = draw(_payloads), draw(st.sampled_from(["latest", "pending"]))
        members[2:] = [("method", '"eth_simulateV1"'), ("params", json.dumps([payload, tag]))]
    for place in draw(st.lists(st.integers(0, 3), max_size=2)):
        members[place:place] = [draw(st.sampled_from(members))] * draw(st.integers(0, 1))
    members = draw(st.permutations(members[: draw(st.integers(3, 6))]))
    space = draw(_spaces)
    inside = f"{space},{space}".join(f'"{name}"{space}:{space}{value}' for name, value in members)
    return f"{space}{{{space}{inside}{space}}}{space}"


_bodies = _requests() | st.builds(
    lambda items, comma: "[" + comma.join(items) + "]",
    st.lists(_requests(), max_size=3),
    st.sampled_from([",", " , ", ",,"]),
)


@given(_bodies, st.lists(st.tuples(st.integers(0, 300), st.integers(0, 255)), max_size=2))
@example(balance().decode(), [])
def test_whatever_the_engine_answers_the_long_way_answers_too(
    ways: PathPair, text: str, changes: list[tuple[int, int]]
) -> None:
    body = bytearray(text.encode())
    for place, byte in changes:
        if place < len(body):
            body[place] = byte
    ways.renew()
    short, long = ways.both(bytes(body))
    assert short == long


@given(_payloads, st.sampled_from(["latest", "pending"]))
def test_simulations_have_the_same_bytes_on_both_ways(
    ways: PathPair, payload: dict[str, object], tag: str
) -> None:
    body = request("eth_simulateV1", payload, tag)
    ways.renew()
    ways.both(simulation(tag))
    short, long = ways.both(body)
    assert short == long


def test_short_simulations_never_reach_the_long_way_after_the_first(ways: PathPair) -> None:
    """But only at the root, whose dialect has no state roots."""
    for tag in ("latest", "pending"):
        assert ways.at_once(simulation(tag)) is None
        found = ways.at_once(simulation(tag))
        assert (found is not None) == (ways.options.dialect == "preconf")
        if found is not None:
            assert found == ways.long.send(post(simulation(tag)))
            assert [len(each["calls"]) for each in json.loads(answer(found).body)["result"]] == [
                2,
                2,
            ]
            for switch in ("validation", "traceTransfers", "returnFullTransactions"):
                assert ways.at_once(simulation(tag, **{switch: True})) is None
    elsewhere = post(simulation()).replace(b"POST / ", b"POST /eth ", 1)
    other = Wire(ways.answer, endpoint=endpoint_at_eth(ways))
    before = ways.asked
    for _ in range(3):
        other.send(elsewhere)
    assert ways.asked == before + 3


def test_simulations_of_many_calls_or_bytes_take_the_long_way(ways: PathPair) -> None:
    many = THRESHOLDS.fast_simulated_calls
    for count in (1, many, many + 1):
        calls = request("eth_simulateV1", {"blockStateCalls": [{"calls": [{}] * count}]}, "latest")
        blocks = request("eth_simulateV1", {"blockStateCalls": [{}] * count}, "latest")
        for body in (calls, blocks):
            ways.both(body)
            assert ways.at_once(body) is None or count <= many
    if ways.options.dialect == "preconf":
        assert ways.at_once(simulation()) is not None
        long = {"blockStateCalls": [{"calls": [{"input": "0x" + "00" * 20_000}]}]}
        assert ways.at_once(request("eth_simulateV1", long, "latest")) is None


def test_next_commit_is_seen_at_once(chain: PreconfirmingChain, ways: PathPair) -> None:
    """The engine has no result until the ordinary path has set the snapshot of the commit."""
    assert ways.at_once(balance(block="pending")) is not None
    ways.both(block("pending"))
    chain.extend([chain.pay(value=100)])
    short = ways.short.send(post(block("pending")))
    assert short == ways.long.send(post(block("pending")))
    found = ways.at_once(balance(block="pending"))
    assert found is not None
    assert result(found) == "0x6f"


def test_past_its_deadline_there_is_no_answer_until_the_long_way_has_seen_it(
    ways: PathPair,
) -> None:
    snapshot = ways.ledger.snapshot
    assert snapshot.pending is not None
    set_snapshot(ways.fast_path, snapshot, snapshot.deadline_ns)
    assert ways.at_once(balance()) is None, "its headers would name the pending block"


def test_text_of_a_pending_block_is_refused_after_its_deadline(
    chain: PreconfirmingChain, ways: PathPair
) -> None:
    """This happens if a batch that saw the block continues after another request saw it expire."""
    early = ways.ledger.view()
    chain.clock.advance(10**12)
    ways.ledger.view().close()
    early.remember_block("pending", b'"stale"', full=False)
    assert ways.at_once(block("pending")) is None
    ways.ledger.view().remember_block("pending", b'"fresh"', full=False)
    found = ways.at_once(block("pending"))
    assert found is not None
    assert result(found) == "fresh"
    early.close()


def test_long_blocks_go_the_long_way(ways: PathPair) -> None:
    view = ways.ledger.view()
    view.remember_block("latest", b'"' + b"x" * THRESHOLDS.fast_text_bytes + b'"', full=True)
    view.remember_block("safe", b'"safe"', full=True)
    view.close()
    assert ways.at_once(block(full=True)) is None


@pytest.mark.parametrize("count", [THRESHOLDS.fast_batch_items, THRESHOLDS.fast_batch_items + 1])
def test_batches_go_the_long_way_beyond_a_number_of_items(ways: PathPair, count: int) -> None:
    body = b"[" + b",".join([balance()] * count) + b"]"
    assert (ways.at_once(body) is not None) == (count <= THRESHOLDS.fast_batch_items)


def test_batches_go_the_long_way_beyond_a_number_of_bytes(chain: PreconfirmingChain) -> None:
    ledger = Ledger(chain.store, clock=chain.clock)
    items = [json.loads(balance())] * 10
    body = json.dumps(items).encode()
    size = len(answer(_known(ledger, body, 10_000) or b"").body)
    assert _known(ledger, body, size) is not None
    assert _known(ledger, body, size - 1) is None


def _known(ledger: Ledger, body: bytes, batch_bytes: int) -> bytes | None:
    fast_path = ledger.open_fast_path(bounds(batch_bytes=batch_bytes))
    fast_path.cache_head(b"head", len(body), b"HTTP/1.1 200 OK\r\n", b"")
    return fast_path.answer(b"head\r\n\r\n" + body, b"Date: now\r\n")


def test_only_a_whole_request_under_a_known_head_is_answered(ways: PathPair) -> None:
    whole = post(balance())
    assert ways.fast_path.answer(whole, b"") is None, "the head was not accepted before"
    ways.short.send(whole)
    assert ways.fast_path.answer(whole, b"") is not None
    for other in (
        whole[:-1],
        whole + b" ",
        whole + whole,
        whole[1:],
        b"",
        whole[: -len(balance())],
    ):
        assert ways.fast_path.answer(other, b"") is None
    ways.fast_path.clear_heads()
    assert ways.fast_path.answer(whole, b"") is None


def test_head_that_closes_the_connection_is_not_known(ways: PathPair) -> None:
    whole = post(balance(), b"Connection: close")
    ways.short.send(whole)
    assert ways.fast_path.answer(whole, b"") is None


def test_connection_that_drains_says_so(ways: PathPair) -> None:
    ways.short.send(post(balance()))
    ways.short.connection.drain()
    assert answer(ways.short.send(post(balance()))).headers["connection"] == "close"


def test_answer_names_the_snapshot_and_the_origin(ways: PathPair) -> None:
    for _ in range(2):
        found = answer(ways.short.send(post(balance(), b"Origin: https://app.example")))
        assert found.headers["foreblock-snapshot"].startswith("commit=")
    assert ways.asked == 1


def test_store_that_was_closed_is_no_answer(chain: PreconfirmingChain) -> None:
    ledger = Ledger(chain.store, clock=chain.clock)
    assert _known(ledger, balance(), 1000) is not None
    chain.store.close()
    fast_path = ledger.open_fast_path(bounds())
    fast_path.cache_head(b"head", len(balance()), b"", b"")
    assert fast_path.answer(b"head\r\n\r\n" + balance(), b"") is None


def test_tag_must_be_one_that_is_answered(ways: PathPair) -> None:
    heads = ways.ledger.snapshot.heads
    with pytest.raises(InvalidArgument, match="latest or pending"):
        ways.fast_path.cache_block(heads, None, "safe", False, b"")


def endpoint_at_eth(ways: PathPair) -> HttpEndpoint:
    """An endpoint with the fast path that answers at a second path too."""
    other = endpoint_for(ways.answer, LIMITS, fast_path=ways.fast_path)
    other.handlers[b"/eth"] = ways.answer
    other.rules = other.rules._replace(paths=frozenset(other.handlers))  # type: ignore[misc]
    return other


def test_engine_answers_at_every_path_alike(ways: PathPair) -> None:
    """The fast path has no paths for requests with the same result in all views."""
    wire = Wire(ways.answer, endpoint=endpoint_at_eth(ways))
    at_root = post(balance())
    elsewhere = at_root.replace(b"POST / ", b"POST /eth ", 1)
    answers = [wire.send(each) for each in (at_root, elsewhere)]
    before = ways.asked
    assert [wire.send(each) for each in (at_root, elsewhere)] == answers
    assert ways.asked == before, "the engine answered both"


@pytest.mark.parametrize("view", ["preconfirmed", "sealed"])
def test_latest_is_read_through_state_edits(
    tmp_path: Path, view: Literal["preconfirmed", "sealed"]
) -> None:
    chain = DevChain(tmp_path / "store", mining="automine")
    ways = PathPair(Ledger(chain.store, clock=chain.clock), Settings(dialect="ethereum", view=view))
    who, code = b"\xab" * 20, bytes.fromhex("5f545f5260205ff3")  # returns its slot 0
    call = request("eth_call", {"to": f"0x{who.hex()}"}, "latest")
    for amount in (7, 8):
        value = amount.to_bytes(32)
        chain.execute(SetAccount(who, value, code=code, storage={bytes(32): value}))
        for tag in ("latest", "pending"):
            ways.both(balance(f"0x{who.hex()}", tag))
            found = ways.at_once(balance(f"0x{who.hex()}", tag))
            assert found is not None
            assert result(found) == hex(amount)
        short, long = ways.both(call)
        assert short == long
        assert result(short) == f"0x{amount:064x}"
    assert result(ways.long.send(post(balance(f"0x{who.hex()}", "0x0")))) == "0x0"
    ways.scheduler.close()
    chain.kill()
