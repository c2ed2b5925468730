"""Traces: equal to geth's for the published chain, and their bounds."""

import gzip
import json
from collections.abc import Awaitable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import Mock, patch

import pytest
from msgspec import Raw, structs

from differential.traces import CONFIGS, digest, plain
from foreblock._engine import MissingKeys
from foreblock.errors import DeadlineExceeded, RefusedTrace, StateMissing
from foreblock.ledger.reading.stored_block import read_stored
from foreblock.ledger.reading.view import Ledger
from foreblock.ledger.tracing import traces
from foreblock.ledger.tracing.traces import TraceBounds
from foreblock.methods.tracing.debug_traces import TraceMethods
from foreblock.scheduling import scheduler
from foreblock.scheduling.steps import discard
from foreblock.scheduling.thresholds import THRESHOLDS
from foreblock.service.network_views import make_scheduler
from foreblock.settings import Settings
from support.each_case import each_case
from support.payloads.cases import read_case
from support.servers.asking import Asker, asker, error

RECORDED = Path(__file__).parent / "geth_traces.json.gz"
PUBLISHED = [
    "debug_traceTransaction",
    "debug_traceBlockByNumber",
    "debug_traceBlockByHash",
    "eth_createAccessList",
]
LOOP = "0x5b600056"
MISSING = "0x" + "00" * 31 + "01"


@pytest.fixture(scope="module")
def recorded() -> dict[str, dict[str, Any]]:
    """geth's responses by tracer and block."""
    found: dict[str, dict[str, Any]] = json.loads(gzip.decompress(RECORDED.read_bytes()))
    return found


@pytest.mark.parametrize("method", PUBLISHED)
def test_published_cases_are_answered_as_shown(
    conformance: Path, published_ethereum: Asker, method: str
) -> None:
    paths = sorted((conformance / method).glob("*.io"))
    assert paths
    for path in paths:
        for body, expected in read_case(path):
            found = json.loads(published_ethereum.reply(body).body)
            if "error" in expected:
                assert found["error"]["code"] == expected["error"]["code"], path.name
            else:
                assert found == expected, path.name


@each_case("name", CONFIGS)
def test_traces_equal_those_of_geth(
    published_ethereum: Asker, recorded: dict[str, dict[str, Any]], name: str
) -> None:
    assert len(recorded[name]) == 54
    for number, expected in recorded[name].items():
        found = published_ethereum.ask("debug_traceBlockByNumber", number, CONFIGS[name])
        is_short = not name.startswith("steps")
        assert (plain(found) if is_short else digest(found)) == expected, number


def test_calls_of_random_code_equal_those_of_geth(
    published_ledger: Ledger, recorded: dict[str, Any]
) -> None:
    """Code with every kind of end, on blocks of all forks; access lists too."""
    kinds = set()
    with asker(published_ledger, "ethereum") as client:
        for name, params, expected in recorded["calls of random code"]:
            method = "debug_traceCall" if name in CONFIGS else name
            assert digest(client.ask(method, *params)) == expected, params
            kinds.add(name)
    assert kinds == {*CONFIGS, "eth_createAccessList"}


def test_one_transaction_is_traced_as_in_its_block(published_ethereum: Asker) -> None:
    block = published_ethereum.ask("eth_getBlockByNumber", "0x2", False)
    traces = published_ethereum.ask("debug_traceBlockByHash", block["hash"], CONFIGS["diff"])
    assert [each["txHash"] for each in traces] == block["transactions"]
    for each in traces[::7]:
        found = published_ethereum.ask("debug_traceTransaction", each["txHash"], CONFIGS["diff"])
        assert found == each["result"]


@pytest.mark.parametrize("form", [[], [None], [{}], [{"tracer": None, "timeout": "5s"}]])
def test_options_may_be_left_out(published_ethereum: Asker, form: list[Any]) -> None:
    transaction = published_ethereum.ask("eth_getBlockByNumber", "0x1", False)["transactions"][0]
    found = published_ethereum.ask("debug_traceTransaction", transaction, *form)
    assert len(found["structLogs"]) == 9


REFUSED = [
    ("debug_traceTransaction", [MISSING], "transaction not found"),
    ("debug_traceBlockByHash", [MISSING], f"block {MISSING} not found"),
    ("debug_traceBlockByNumber", ["0x99"], "block #153 not found"),
    ("debug_traceBlockByNumber", ["0x0"], "genesis is not traceable"),
    (
        "debug_traceBlockByNumber",
        ["0x1", {"tracer": "myTracer"}],
        "ReferenceError: myTracer is not defined at <eval>:1:2(0)",
    ),
    (
        "debug_traceBlockByNumber",
        ["0x1", {"tracer": "callTracer", "timeout": "soon"}],
        'time: invalid duration "soon"',
    ),
    (
        "debug_traceBlockByNumber",
        [
            "0x1",
            {"tracer": "prestateTracer", "tracerConfig": {"diffMode": True, "includeEmpty": True}},
        ],
        "cannot use diffMode with includeEmpty",
    ),
    ("trace_replayTransaction", [MISSING, ["trace"]], "transaction not found"),
]


@each_case(("method", "params", "why"), REFUSED)
def test_refusals_have_the_words_of_geth(
    published_ethereum: Asker, method: str, params: list[Any], why: str
) -> None:
    assert published_ethereum.ask(method, *params) == error(-32000, why)


def looping(gas: int) -> list[Any]:
    """An endless call."""
    to = "0x" + "aa" * 20
    call = {"to": to, "gas": hex(gas)}
    return [call, "latest", {"stateOverrides": {to: {"code": LOOP}}}]


@pytest.mark.parametrize("name", ["steps", "steps-all"])
def test_a_trace_that_is_too_long_is_an_error_that_says_the_limit(
    published_ledger: Ledger, name: str
) -> None:
    with asker(published_ledger, "ethereum", trace_output=100_000) as client:
        call, block, options = looping(50_000_000)
        found = client.ask("debug_traceCall", call, block, CONFIGS[name] | options)
    assert found == error(-32005, "the trace is longer than 100000 bytes; request a smaller part")


def test_frames_are_bounded_as_well(published_ledger: Ledger) -> None:
    to = "0x" + "aa" * 20
    # Calls the identity precompile with 32 bytes in an endless loop.
    code = "0x5b6000600060206000600060045af1506000" + "56"
    with asker(published_ledger, "ethereum", trace_output=1_000_000) as client:
        options = CONFIGS["calls"] | {"stateOverrides": {to: {"code": code}}}
        found = client.ask("debug_traceCall", {"to": to, "gas": "0x2faf080"}, "latest", options)
    assert found["code"] == -32005


def test_code_in_a_prestate_is_bounded(published_ledger: Ledger) -> None:
    to = "0x" + "aa" * 20
    seen = [number.to_bytes(20) for number in range(0x1000, 0x1014)]
    code = b"".join(b"\x73" + each + b"\x31\x50" for each in seen)  # BALANCE of each
    overrides = {"0x" + each.hex(): {"code": "0x" + "00" * 20_000} for each in seen}
    options = CONFIGS["prestate"] | {
        "stateOverrides": overrides | {to: {"code": "0x" + code.hex()}}
    }
    with asker(published_ledger, "ethereum", trace_output=100_000) as client:
        assert client.ask("debug_traceCall", {"to": to}, "latest", options)["code"] == -32005
    with asker(published_ledger, "ethereum") as client:
        found = client.ask("debug_traceCall", {"to": to}, "latest", options)
    assert {"0x" + each.hex() for each in seen} <= set(found)


def test_a_trace_ends_at_the_time_that_the_request_gives(published_ethereum: Asker) -> None:
    call, block, options = looping(1 << 60)
    config = options | {"tracer": "callTracer", "timeout": "5ms"}
    assert published_ethereum.ask("debug_traceCall", call, block, config) == error(
        -32000, "execution timeout"
    )


def test_a_trace_ends_at_the_timeout_of_calls(published_ledger: Ledger) -> None:
    with asker(published_ledger, "ethereum", call_timeout=0.05, call_gas_cap=0) as client:
        call, block, options = looping(1 << 60)
        found = client.ask("debug_traceCall", call, block, options | {"tracer": "4byteTracer"})
    assert found == error(-32000, "execution aborted (timeout = 50ms)")


def test_calls_see_overrides_of_state_and_block(published_ethereum: Asker) -> None:
    to = "0x" + "aa" * 20
    # Returns NUMBER.
    options = {
        "stateOverrides": {to: {"code": "0x4360005260206000f3"}},
        "blockOverrides": {"number": "0x1234"},
    }
    found = published_ethereum.ask("debug_traceCall", {"to": to}, "latest", options)
    assert int(found["returnValue"], 16) == 0x1234
    assert found["structLogs"][0]["op"] == "NUMBER"


def test_a_short_trace_with_a_long_text_is_sent_in_pieces(published_ethereum: Asker) -> None:
    to = "0x" + "aa" * 20
    code = f"0x62{THRESHOLDS.pieces_bytes:06x}5ff3"  # PUSH3, PUSH0, RETURN
    options = CONFIGS["calls"] | {"stateOverrides": {to: {"code": code}}}
    found = published_ethereum.ask("debug_traceCall", {"to": to}, "latest", options)
    assert found["output"] == "0x" + "00" * THRESHOLDS.pieces_bytes


@pytest.fixture
def unhurried() -> Iterator[None]:
    """Do not interrupt inline work, however busy the machine is."""
    long_us, seconds = 60_000_000, 60.0
    longer = structs.replace(
        THRESHOLDS,
        work_us=long_us,
        call_step_us=long_us,
        slice_seconds=seconds,
        first_slices_seconds=seconds,
    )
    with patch.object(scheduler, "THRESHOLDS", longer):
        yield


@pytest.mark.usefixtures("unhurried")
def test_short_traces_use_no_thread(published_ledger: Ledger) -> None:
    threads = make_scheduler(Settings())
    methods = TraceMethods(Settings(), threads)
    with closing(published_ledger.view()) as view:
        call = Raw(b'[{"to":"0x%b"},"latest",{"tracer":"callTracer"}]' % (b"aa" * 20))
        assert isinstance(methods.trace_call(view, call), bytes)
        body = read_stored(view, view.latest).portions()[0]
        (transaction,) = body.transactions(0, 1)
        params = Raw(b'["0x%b"]' % transaction.hash.hex().encode())
        assert isinstance(methods.trace_transaction(view, params), bytes)
        with patch.object(traces, "THRESHOLDS", structs.replace(THRESHOLDS, replayed_bytes=0)):
            later = methods.trace_transaction(view, params)
        assert isinstance(later, Awaitable), "long transactions are decoded elsewhere"
        discard(later)
    threads.close()


def test_a_trace_in_place_is_judged_on_a_thread() -> None:
    """It may have been stopped inline before it had reported all the state that it lacks."""
    work = traces.call(Mock(), traces.Tracer("calls"), TraceBounds(1_000, timeout_us=10))
    for raised, expected in (
        (StateMissing(MissingKeys()), StateMissing),
        (DeadlineExceeded(), RefusedTrace),
    ):
        with patch.object(traces, "trace_call", side_effect=raised):
            with pytest.raises(DeadlineExceeded):
                work(timeout_us=500, step_us=100)
            with pytest.raises(expected):
                work(timeout_us=500)
