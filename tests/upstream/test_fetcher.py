"""The fetcher with nodes under all faults: correct values or a documented error, and few
requests.
"""

import asyncio
import threading
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from foreblock.clock import DrivenClock, SystemClock
from foreblock.errors import NoUpstream, RefusedAnswer, UnitsSpent
from foreblock.follow import fetcher as fetcher_module
from foreblock.follow.fetcher import Fetcher, FetchOptions
from foreblock.follow.state_plan import FIRST_SLOTS
from foreblock.ledger.storage.state_keys import StateKeys
from foreblock.types import keccak256
from foreblock.upstream.budget import Purpose, Urgency
from foreblock.upstream.endpoint import ENOUGH, MOST_FAILURES
from foreblock.upstream.json_rpc import RefusalKind
from support.each_case import each_case
from support.servers.toy_endpoint import ToyResponse
from support.servers.waiting import PATIENCE, until
from support.upstreams.fetching import (
    CALL,
    PROVEN,
    TRUSTED,
    A,
    B,
    C,
    check,
    fetch,
    fetching,
    right,
)
from support.upstreams.plain_state import ADDRESSES, CODES
from support.upstreams.toy_node import ToyNode


@each_case("options", [TRUSTED, PROVEN], ids=["trusted", "proven"])
@each_case(
    "node",
    [
        ToyNode(),
        ToyNode(overrides=False),
        ToyNode(overrides=False, values=False),
        ToyNode(batches=1),
        ToyNode(batches=3, overrides=False, values=False),
        ToyNode(forms=frozenset({"number"})),
        ToyNode(forms=frozenset({"bare"})),
        ToyNode(proofs=0),
        ToyNode(tip=92),
        ToyNode(tip=85, forms=frozenset({"number"})),
    ],
    ids=[
        "all",
        "no calls",
        "points",
        "no batch",
        "small batch",
        "number",
        "bare",
        "tip",
        "late",
        "far",
    ],
)
def test_any_endpoint_that_can_gives_everything(node: ToyNode, options: FetchOptions) -> None:
    async def test(fetcher: Fetcher, _: list[ToyNode]) -> None:
        check(await fetch(fetcher))

    fetching(test, node, options=options)


def test_without_proofs_there_is_trust_only() -> None:
    async def trusted(fetcher: Fetcher, _: list[ToyNode]) -> None:
        check(await fetch(fetcher))

    async def proven(fetcher: Fetcher, _: list[ToyNode]) -> None:
        with pytest.raises(NoUpstream, match="it cannot serve these keys"):
            await fetch(fetcher, StateKeys(frozenset({A})))

    fetching(trusted, ToyNode(proofs=None))
    fetching(proven, ToyNode(proofs=None), options=PROVEN)


def test_proofs_of_the_tip_are_asked_for_there() -> None:
    async def test(fetcher: Fetcher, running: list[ToyNode]) -> None:
        await fetch(fetcher)
        asked = [params for method, params in running[0].asked if method == "eth_getProof"]
        assert {params[2] for params in asked[-3:]} == {"latest"}

    fetching(test, ToyNode(proofs=0), options=PROVEN)


def test_wants_of_one_moment_go_out_together() -> None:
    async def test(fetcher: Fetcher, running: list[ToyNode]) -> None:
        await fetcher.upstreams[0].probe()
        before = running[0].bodies
        wants = [StateKeys(slots={C: frozenset({slot})}) for slot in range(200)]
        found = await asyncio.gather(*(fetch(fetcher, each) for each in wants * 2))
        for each, wanted in zip(found, wants * 2, strict=True):
            check(each, wanted)
        assert running[0].bodies == before + 1
        assert [method for method, _ in running[0].asked[-1:]] == ["eth_call"]

    fetching(test, ToyNode())


def test_a_key_that_is_on_its_way_is_not_asked_for_again() -> None:
    held, arrived, is_probed = threading.Event(), threading.Event(), threading.Event()

    def weather(_: int, requests: list[dict[str, Any]]) -> ToyResponse | None:
        if requests[0]["method"] == "eth_getProof" and is_probed.is_set():
            arrived.set()
            return ToyResponse(holds=held)
        return None

    async def test(fetcher: Fetcher, running: list[ToyNode]) -> None:
        await fetcher.upstreams[0].probe()
        is_probed.set()
        before = running[0].count("eth_getProof")
        first = asyncio.create_task(fetch(fetcher, StateKeys(frozenset({A}))))
        await asyncio.to_thread(arrived.wait)
        more = StateKeys(frozenset({A}), blocks=frozenset({3}))
        second = asyncio.create_task(fetch(fetcher, more))
        await asyncio.to_thread(until, lambda: header_is_asked_for(running[0]), "it is out")
        held.set()
        check(await first, StateKeys(frozenset({A})))
        check(await second, more)
        assert running[0].count("eth_getProof") == before + 1

    def header_is_asked_for(node: ToyNode) -> bool:
        return any(p[0] == "0x3" for m, p in node.asked if m == "eth_getBlockByNumber")

    fetching(test, ToyNode(weather=weather))


def test_a_want_of_many_keys_leaves_room_for_others() -> None:
    """Also for one that arrives at the same time."""
    held = threading.Event()
    many = StateKeys(frozenset(bytes([0xEE]) + number.to_bytes(19) for number in range(600)))

    def weather(_: int, requests: list[Any]) -> None:
        if any(str(each["params"]).startswith("['0xee") for each in requests):
            held.wait(PATIENCE)

    async def test(fetcher: Fetcher, _: list[ToyNode]) -> None:
        await fetcher.probe()
        large = asyncio.create_task(fetch(fetcher, many))
        try:
            for wanted in (StateKeys(frozenset({A})), StateKeys(frozenset({B}))):
                check(await fetch(fetcher, wanted), wanted)
            assert not large.done()
        finally:
            held.set()
        assert not (await large).missing(many)

    fetching(test, ToyNode(batches=1, weather=weather), options=PROVEN)


def test_what_was_found_of_a_want_of_many_keys_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetcher_module, "SLICE", 4)
    held = threading.Event()
    first, last = ({bytes([head]) * 19 + bytes([at]) for at in range(4)} for head in (0x11, 0xEE))

    def weather(_: int, requests: list[Any]) -> None:
        if any(str(each["params"]).startswith("['0xee") for each in requests):
            held.wait(PATIENCE)

    async def test(fetcher: Fetcher, _: list[ToyNode]) -> None:
        await fetcher.probe()
        try:
            found = await fetch(fetcher, StateKeys(frozenset(first | last)), seconds=2.0)
        finally:
            held.set()
        assert found.accounts.keys() == first

    fetching(test, ToyNode(weather=weather), options=PROVEN)


@given(
    st.sets(st.integers(0, 30)), st.dictionaries(st.integers(0, 30), st.sets(st.integers(0, 9))),
    st.sets(st.integers(0, 30)), st.sets(st.integers(0, 9)), st.integers(1, 20),
)  # fmt: skip
def test_slices_of_a_want_are_all_of_it(
    accounts: set[int], slots: dict[int, set[int]], codes: set[int], blocks: set[int], most: int
) -> None:
    def named(some: set[int]) -> frozenset[bytes]:
        return frozenset(bytes([each]) * 20 for each in some)

    left = wanted = StateKeys(
        named(accounts), {bytes([at]) * 20: frozenset(keys) for at, keys in slots.items() if keys},
        {keccak256(b""): A}, named(codes), frozenset(blocks),
    )  # fmt: skip
    parts = []
    while left:
        parts.append(left.first(most))
        assert sum(map(len, parts[-1].slots.values())) <= most
        rest = left.without(parts[-1])
        assert len(rest) == len(left) - len(parts[-1]) < len(left)
        left = rest
    assert StateKeys.union(parts) == wanted


def test_another_epoch_shares_nothing() -> None:
    async def test(fetcher: Fetcher, running: list[ToyNode]) -> None:
        await fetcher.upstreams[0].probe()
        before = running[0].count("eth_getProof")
        wanted = StateKeys(frozenset({A}))
        await asyncio.gather(fetch(fetcher, wanted, epoch=1), fetch(fetcher, wanted, epoch=2))
        assert running[0].count("eth_getProof") == before + 2

    fetching(test, ToyNode())


def test_what_waits_for_the_budget_becomes_urgent_with_who_wants_it() -> None:
    """The clock stands still, so that a warm-up would wait forever."""

    async def test(fetcher: Fetcher, running: list[ToyNode]) -> None:
        upstream = fetcher.upstreams[0]
        await upstream.probe()
        assert upstream.budget.take(150_000, Purpose.WARM_UP, upstream.now) == 0.0
        wanted = StateKeys(frozenset({A}))
        before = running[0].bodies
        lazy = asyncio.create_task(fetch(fetcher, wanted, Purpose.WARM_UP))
        await asyncio.sleep(0.05)
        assert running[0].bodies == before
        check(await fetch(fetcher, wanted, Purpose.FLASHBLOCK), wanted)
        check(await lazy, wanted)
        assert running[0].bodies == before + 1

    fetching(test, ToyNode(), clock=DrivenClock())


@pytest.mark.parametrize(("seconds", "kind"), [(3600, UnitsSpent), (0, NoUpstream)])
def test_who_waits_for_units_until_the_time_is_over_is_told_so(
    seconds: float, kind: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(fetcher: Fetcher, _: list[ToyNode]) -> None:
        upstream = fetcher.upstreams[0]
        await upstream.probe()
        upstream.budget.pause(seconds, upstream.now)
        # Other requests always precede it.
        monkeypatch.setattr(upstream, "ask", lambda *_: asyncio.Event().wait())
        with pytest.raises(kind):
            await fetch(fetcher, StateKeys(frozenset({A})), seconds=0.05)

    fetching(test, ToyNode())


def test_a_spent_budget_is_said() -> None:
    async def test(fetcher: Fetcher, _: list[ToyNode]) -> None:
        upstream = fetcher.upstreams[0]
        await upstream.probe()
        upstream.budget.pause(30, upstream.now)
        with pytest.raises(UnitsSpent, match="try again in 30 s"):
            await fetch(fetcher, seconds=5)

    fetching(test, ToyNode(), clock=DrivenClock())


def test_a_second_endpoint_is_asked_when_the_first_is_slow() -> None:
    held = threading.Event()

    async def test(fetcher: Fetcher, running: list[ToyNode]) -> None:
        for upstream in fetcher.upstreams:
            await upstream.probe()
            for _ in range(ENOUGH):
                upstream.durations.add(0.0)
        running[0].weather = lambda *_: ToyResponse(holds=held)
        before = fetcher.upstreams[0].requests
        check(await fetch(fetcher))
        assert fetcher.upstreams[0].requests > before, "the first was asked first"
        held.set()

    fetching(test, ToyNode(), ToyNode())


def test_who_is_always_too_slow_is_left_alone_for_a_while() -> None:
    async def test(fetcher: Fetcher, _: list[ToyNode]) -> None:
        upstream = fetcher.upstreams[0]
        usual = upstream.durations.hedge_after
        for _again in range(2 * MOST_FAILURES):
            upstream.circuit.asking()
            upstream.dropped(usual)
        assert not upstream.circuit.is_open, "another was faster, that is all"
        for _again in range(MOST_FAILURES):
            upstream.circuit.asking()
            upstream.dropped(3 * usual)
        assert upstream.circuit.is_open

    fetching(test, ToyNode())


def test_a_rate_limit_is_kept() -> None:
    limited = ToyResponse(429, b"slow down", {"Retry-After": "7"})

    async def alone(fetcher: Fetcher, running: list[ToyNode]) -> None:
        await fetcher.upstreams[0].probe()
        running[0].weather = lambda *_: limited
        with pytest.raises(NoUpstream, match="rate limited: HTTP 429; try again in 7 s"):
            await fetch(fetcher, StateKeys(frozenset({A})), seconds=5)
        asked = running[0].bodies
        with pytest.raises(UnitsSpent, match="7 s"):
            await fetch(fetcher, seconds=5)
        assert running[0].bodies == asked, "nothing was asked meanwhile"
        assert not fetcher.upstreams[0].circuit.is_open

    async def beside(fetcher: Fetcher, running: list[ToyNode]) -> None:
        running[0].weather = lambda *_: limited
        check(await fetch(fetcher))
        asked = running[0].bodies
        check(await fetch(fetcher))
        assert running[0].bodies == asked

    fetching(alone, ToyNode(), clock=DrivenClock())
    fetching(beside, ToyNode(), ToyNode(), clock=DrivenClock())


def test_an_endpoint_that_fails_rests_and_is_tried_again() -> None:
    clock = DrivenClock()

    async def test(fetcher: Fetcher, running: list[ToyNode]) -> None:
        upstream, circuit = fetcher.upstreams[0], fetcher.upstreams[0].circuit
        await upstream.probe()
        running[0].weather = lambda *_: ToyResponse(502, b"<html>")
        for _ in range(MOST_FAILURES):
            assert not circuit.is_open
            with pytest.raises(RefusedAnswer, match="server failed: HTTP 502"):
                await upstream.ask([CALL], Urgency(Purpose.CLIENT), upstream.now + PATIENCE)
        assert circuit.is_open
        circuit.trip(PATIENCE, upstream.now)
        asked = running[0].bodies
        with pytest.raises(NoUpstream, match="it failed too often"):
            await fetch(fetcher, StateKeys(frozenset({A})), seconds=PATIENCE)
        assert running[0].bodies == asked
        running[0].weather = None
        clock.advance(int(1e9 * circuit.wait(upstream.now)))
        check(await fetch(fetcher))
        assert not circuit.is_open

    fetching(test, ToyNode(), clock=clock)


def flipped(result: Any) -> Any:  # noqa: ANN401, JSON
    return {**result, "address": "0x" + B.hex()} if isinstance(result, dict) else result


FAULTS: dict[RefusalKind, ToyResponse] = {
    RefusalKind.SERVER_FAILED: ToyResponse(503, b"no"),
    RefusalKind.FORBIDDEN: ToyResponse(403, b"no key"),
    RefusalKind.RATE_LIMITED: ToyResponse(429, b""),
    RefusalKind.HTML: ToyResponse(body=b"<html>please log in</html>"),
    RefusalKind.NOT_JSON: ToyResponse(body=b"hello"),
    RefusalKind.TRUNCATED: ToyResponse(body=b'{"jsonrpc":"2.0","id":1,"res'),
    RefusalKind.UNREACHABLE: ToyResponse(cut=20),
    RefusalKind.NOT_AN_ANSWER: ToyResponse(body=b'{"jsonrpc":"2.0","id":1}'),
    RefusalKind.WRONG_ID: ToyResponse(body=b'{"jsonrpc":"2.0","id":77,"result":"0x0"}'),
    RefusalKind.NULL: ToyResponse(body=b'{"jsonrpc":"2.0","id":1,"result":null}'),
    RefusalKind.WRONG_SHAPE: ToyResponse(body=b'{"jsonrpc":"2.0","id":1,"result":7}'),
    RefusalKind.ERROR: ToyResponse(
        body=b'{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"oh"}}'
    ),
}


@each_case("kind", FAULTS)
def test_a_fault_is_an_error_and_never_a_value(kind: RefusalKind) -> None:
    wanted = StateKeys(frozenset({A}))

    async def alone(fetcher: Fetcher, running: list[ToyNode]) -> None:
        await fetcher.upstreams[0].probe()
        running[0].weather = lambda *_: FAULTS[kind]
        said, seconds = "", 0.2
        while kind.value not in said:  # on a busy machine nothing may arrive in time
            with pytest.raises((NoUpstream, UnitsSpent)) as refused:
                await fetch(fetcher, wanted, seconds=seconds)
            said, seconds = str(refused.value), 2 * seconds
        assert fetcher.upstreams[0].refusals[kind.value] > 0

    async def beside(fetcher: Fetcher, running: list[ToyNode]) -> None:
        await fetcher.upstreams[0].probe()
        running[0].weather = lambda *_: FAULTS[kind]
        check(await fetch(fetcher, wanted), wanted)

    fetching(alone, ToyNode())
    fetching(beside, ToyNode(), ToyNode())


def test_another_keys_answer_is_refused() -> None:
    async def test(fetcher: Fetcher, running: list[ToyNode]) -> None:
        await fetcher.upstreams[0].probe()
        running[0].lies["eth_getProof"] = flipped
        check(await fetch(fetcher))
        assert fetcher.upstreams[0].refusals[RefusalKind.WRONG_KEY.value] > 0

    fetching(test, ToyNode(), ToyNode(), options=PROVEN)


def test_first_slots_of_a_contract_come_with_it_once() -> None:
    async def test(fetcher: Fetcher, _: list[ToyNode]) -> None:
        wanted = StateKeys(frozenset({A}), codes_of=frozenset({A}))
        found = await fetch(fetcher, wanted)
        assert found.slots[A].keys() == FIRST_SLOTS
        again = await fetch(fetcher, wanted)
        assert A not in again.slots
        code = StateKeys(codes={keccak256(CODES[A]): b""})
        check(await fetch(fetcher, code), code)

    fetching(test, ToyNode(), options=FetchOptions())


def test_secrets_of_urls_are_nowhere() -> None:
    secret = "Sx7fGh2kLmPq9"  # noqa: S105, of nothing
    echo = f"invalid key {secret} for /v2/{secret}".encode()
    body = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"%b"}}' % echo
    faults = [
        ToyResponse(body=body),
        ToyResponse(403, echo),
        ToyResponse(body=b"<" + echo),
        ToyResponse(cut=1),
    ]
    texts = []

    async def test(fetcher: Fetcher, running: list[ToyNode]) -> None:
        await fetcher.upstreams[0].probe()
        for fault in faults:
            running[0].weather = lambda *_, fault=fault: fault
            with pytest.raises(NoUpstream) as failed:
                await fetch(fetcher, StateKeys(frozenset({A})), seconds=0.3)
            texts.append(str(failed.value))
            fetcher.upstreams[0].circuit.succeeded()

    with capture_logs() as logs:
        fetching(test, ToyNode(), path=f"/v2/{secret}?key={secret}")
    assert len(texts) == len(faults)
    assert logs
    assert secret not in "".join(texts) + repr(logs)


def test_any_weather_brings_right_values_or_an_error() -> None:
    """Two nodes, whose responses are damaged with some probability; seeds are fixed."""
    chance = Random(19)
    faults = [said for kind, said in FAULTS.items() if kind != RefusalKind.RATE_LIMITED]

    def weather(_: int, requests: list[dict[str, Any]]) -> ToyResponse | None:
        if requests[0]["method"] in ("eth_chainId", "web3_clientVersion"):
            return None
        return chance.choice(faults) if chance.random() < 0.3 else None

    async def test(fetcher: Fetcher, running: list[ToyNode]) -> None:
        for upstream in fetcher.upstreams:
            await upstream.probe()
        for node in running:
            node.weather = weather
        complete = 0
        for number in range(60):
            wanted = StateKeys(frozenset({ADDRESSES[number % 5]}), {C: frozenset({number, 5, 7})})
            try:
                found = await fetch(fetcher, wanted, Purpose.FLASHBLOCK, seconds=1.0)
            except NoUpstream:
                continue
            finally:
                for upstream in fetcher.upstreams:
                    upstream.circuit.succeeded()
            right(found)
            complete += not found.missing(wanted)
        assert complete > 0
        for node in running:
            node.weather = None
        check(await fetch(fetcher, seconds=PATIENCE))

    fetching(test, ToyNode(), ToyNode(), clock=SystemClock())
