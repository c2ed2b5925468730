"""The known features of an upstream, and the lifetime of observed failures."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from foreblock.clock import DrivenClock
from foreblock.errors import NoUpstream, RefusedAnswer
from foreblock.follow.fetch_job import lasting_refusals
from foreblock.follow.fetcher import Fetcher
from foreblock.follow.requests import GetCode, GetProof, StateRequest
from foreblock.follow.startup import open_upstreams
from foreblock.follow.state_upstream import PROBE_AGAIN, UNSURE_SECONDS, StateUpstream
from foreblock.ledger.storage.state_keys import StateKeys
from foreblock.metrics.catalogue import UPSTREAM_LATENCY
from foreblock.metrics.meters import NetworkMetrics
from foreblock.settings import FollowSettings
from foreblock.upstream.budget import (
    DEFAULT_UNITS,
    LOCAL_UNITS,
    Purpose,
    UnitBudget,
    Urgency,
    split_units,
)
from foreblock.upstream.endpoint import KEPT, ONLY_SECONDS, PROBE_SECONDS
from foreblock.upstream.json_rpc import RefusalKind, retry_after
from support.each_case import each_case
from support.servers.toy_endpoint import ToyResponse
from support.servers.waiting import PATIENCE, poll_until
from support.upstreams.fetching import (
    CALL,
    PROVEN,
    RICH,
    TRUSTED,
    A,
    B,
    C,
    check,
    fetch,
    fetching,
)
from support.upstreams.toy_node import ToyNode, toy_node


def test_an_endpoint_of_another_chain_is_not_used() -> None:
    async def run(node: ToyNode) -> None:
        clock = DrivenClock()
        fetcher = Fetcher([StateUpstream(node.url, clock, UnitBudget(RICH), 10)], clock, TRUSTED)
        try:
            with pytest.raises(NoUpstream, match="another chain: 8453 in place of 10"):
                await fetch(fetcher, seconds=5)
            asked = node.bodies
            with pytest.raises(NoUpstream):
                await fetch(fetcher, seconds=5)
            assert node.bodies == asked
        finally:
            fetcher.close()

    with toy_node(ToyNode()) as node:
        asyncio.run(run(node))


def test_abilities_are_found_out_again_some_time_after_a_failure() -> None:
    clock = DrivenClock()

    async def test(fetcher: Fetcher, running: list[ToyNode]) -> None:
        node, upstream = running[0], fetcher.upstreams[0]
        node.values = node.overrides = False
        wanted = StateKeys(slots={C: frozenset(range(9))})
        check(await fetch(fetcher, wanted), wanted)
        node.values = True
        clock.advance(int(1e9 * 2 * PROBE_AGAIN))
        check(await fetch(fetcher, wanted), wanted)
        assert node.count("eth_getStorageValues") == 1, "nothing had failed"
        node.weather = lambda number, _: ToyResponse(500) if number == node.bodies else None
        with pytest.raises(NoUpstream):
            await fetch(fetcher, wanted, seconds=0.1)
        await poll_until(lambda: not fetcher.tasks)  # a pending request would seem very slow
        node.weather = None
        clock.advance(int(1e9 * 2 * PROBE_AGAIN))
        check(await fetch(fetcher, wanted), wanted)
        assert upstream.limits.values
        assert node.asked[-1][0] == "eth_getStorageValues"

    fetching(test, ToyNode(), clock=clock)


def test_a_rate_limit_says_nothing_about_what_an_endpoint_can_do() -> None:
    """The first two requests of every method are rejected, and then the whole probe once more."""
    limited = ToyResponse(429, b"slow down", {"Retry-After": "0"})
    seen: Counter[str] = Counter()

    def weather(_: int, asked: Sequence[dict[str, Any]]) -> ToyResponse | None:
        method = f"{asked[0]['method']} {len(asked)}"
        seen[method] += 1
        return limited if seen[method] <= 2 else None

    async def test(fetcher: Fetcher, running: list[ToyNode]) -> None:
        (upstream,) = fetcher.upstreams
        assert await fetcher.probe() == []
        known = upstream.capabilities
        assert known is not None
        assert known.can_prove
        assert known.overrides
        assert known.batch == 100
        clock.advance(int(1e9 * 2 * PROBE_AGAIN))
        upstream.refuse(RefusedAnswer(RefusalKind.NULL.value, ""))
        upstream.report_bad_data("so that it is probed again")
        clock.advance(int(1e9 * 2 * PROBE_AGAIN))
        running[0].weather = lambda *_: limited
        assert await fetcher.probe() == []
        assert upstream.capabilities is known

    clock = DrivenClock()
    fetching(test, ToyNode(weather=weather), clock=clock)


def test_failed_requests_of_later_probes_hide_no_ability() -> None:
    """Each probe fails to get one response; together they have all of them."""
    clock = DrivenClock()
    failing = "eth_getProof"

    def weather(_: int, asked: Sequence[dict[str, Any]]) -> ToyResponse | None:
        if asked[0]["method"] != failing:
            return None
        clock.advance(int(1e9 * PROBE_SECONDS))  # so that it is not tried again
        return ToyResponse(429, b"slow down", {"Retry-After": "0"})

    async def test(fetcher: Fetcher, _nodes: list[ToyNode]) -> None:
        nonlocal failing
        (upstream,) = fetcher.upstreams
        first = await upstream.probe()
        assert not first.can_prove
        failing = "eth_getStorageValues"
        clock.advance(int(1e9 * 2 * UNSURE_SECONDS))
        second = await upstream.probe()
        assert second.can_prove
        assert second.storage_values
        assert not second.reasons
        failing = "eth_chainId"
        clock.advance(int(1e9 * 2 * UNSURE_SECONDS))
        assert await upstream.probe() == second
        failing = ""
        clock.advance(int(1e9 * 2 * UNSURE_SECONDS))
        asked = upstream.requests
        assert (await upstream.probe()).can_prove
        assert upstream.requests > asked
        clock.advance(int(1e9 * 2 * PROBE_AGAIN))
        asked = upstream.requests
        await upstream.probe()
        assert upstream.requests == asked, "every request was answered"

    fetching(test, ToyNode(weather=weather), clock=clock)


def test_who_lied_is_not_asked_for_a_while() -> None:
    clock = DrivenClock()

    async def test(fetcher: Fetcher, _nodes: list[ToyNode]) -> None:
        assert await fetcher.probe() == []
        for _ in range(KEPT):  # so that no other is used because this one is slow
            fetcher.upstreams[0].durations.add(PATIENCE)
        found = await fetch(fetcher)
        assert {each.source for some in found.proofs.values() for each in some} == {
            fetcher.upstreams[0].shown
        }
        fetcher.report_bad_data(found.proofs[A][0].source, "no node of it is in the trie")
        asked = fetcher.upstreams[0].requests
        again = await fetch(fetcher)
        check(again)
        assert fetcher.upstreams[0].requests == asked
        assert {each.source for some in again.proofs.values() for each in some} == {
            fetcher.upstreams[1].shown
        }
        state = fetcher.upstreams[0].status()
        assert state.refusals == {"untrue": 1}
        assert state.rests_for == 60
        assert state.can_prove
        clock.advance(60 * 10**9)
        await fetch(fetcher)
        assert fetcher.upstreams[0].requests > asked

    fetching(test, ToyNode(), ToyNode(), options=PROVEN, clock=clock)


def test_the_only_one_is_asked_again_soon_after_a_lie() -> None:
    clock = DrivenClock()

    async def test(fetcher: Fetcher, _: list[ToyNode]) -> None:
        assert await fetcher.probe() == []
        fetcher.report_bad_data(fetcher.upstreams[0].shown, "no node of it is in the trie")
        assert fetcher.upstreams[0].status().rests_for == ONLY_SECONDS
        clock.advance(int(ONLY_SECONDS * 10**9))
        check(await fetch(fetcher))

    fetching(test, ToyNode(), options=PROVEN, clock=clock)


def test_all_are_probed_at_once_and_who_fails_is_named() -> None:
    async def test(fetcher: Fetcher, _: list[ToyNode]) -> None:
        (refused,) = await fetcher.probe()
        assert refused.kind == RefusalKind.SERVER_FAILED
        assert fetcher.upstreams[1].capabilities is not None

    fetching(test, ToyNode(weather=lambda *_: ToyResponse(500)), ToyNode())


def test_units_in_a_url() -> None:
    assert split_units("https://h/v2/k?units=500&a=b") == ("https://h/v2/k?a=b", 500.0)
    assert split_units("https://h/v2/k?unit=5") == ("https://h/v2/k?unit=5", None)
    for wrong in ("?units=", "?units=0", "?units=-1", "?units=1&units=2", "?units=x"):
        with pytest.raises(Exception, match=r"units of https://h/v2/….* is not a number above 0"):
            split_units(f"https://h/v2/secretkey{wrong}")


@each_case(
    ("host", "units"),
    [
        ("127.0.0.1:8545", LOCAL_UNITS),
        ("[::1]:8545", LOCAL_UNITS),
        ("localhost", LOCAL_UNITS),
        ("10.1.2.3", LOCAL_UNITS),
        ("192.168.0.9", LOCAL_UNITS),
        ("op-geth:8545", LOCAL_UNITS),
        ("node.eu.internal", LOCAL_UNITS),
        ("8.8.8.8", DEFAULT_UNITS),
        ("op-sepolia.example", DEFAULT_UNITS),
        ("local.example", DEFAULT_UNITS),
    ],
)
def test_only_public_endpoints_have_a_small_budget(host: str, units: float) -> None:
    url = f"http://{host}/KEY"
    plain = FollowSettings(upstream=(url,))
    chosen = replace(plain, upstream_units=77.0)
    named = replace(chosen, upstream=(f"{url}?units=5",))
    for settings, expected in ((plain, units), (chosen, 77.0), (named, 5.0)):
        (upstream,) = open_upstreams(settings, 10, DrivenClock())
        upstream.close()
        assert upstream.budget.units == expected


def test_the_times_of_an_upstreams_responses_are_a_histogram() -> None:
    metrics = NetworkMetrics.private()
    settings = FollowSettings(upstream=("http://127.0.0.1:1", "http://127.0.0.1:2"))
    first, second = open_upstreams(settings, 10, DrivenClock(), metrics)
    for seconds in (0.02, 0.3):
        second.durations.add(seconds)
    first.close()
    second.close()
    assert second.status().latency == 0.3
    row = metrics.counters.row(UPSTREAM_LATENCY, "", "1")
    *buckets, total = metrics.counters.cells[row : row + UPSTREAM_LATENCY.width].tolist()
    found = dict(zip(UPSTREAM_LATENCY.bounds, buckets, strict=False))
    assert {bound: count for bound, count in found.items() if count} == {0.025: 1, 0.5: 1}
    assert total == 0.32


def test_a_budget_that_is_too_small_to_follow_names_the_flag() -> None:
    clock = DrivenClock()

    async def ask(upstream: StateUpstream) -> None:
        with pytest.raises(RefusedAnswer, match="the budget is spent"):
            await upstream.ask([CALL], Urgency(Purpose.FLASHBLOCK), upstream.now)

    async def test() -> None:
        upstream = StateUpstream("https://public.example/KEY", clock)
        assert upstream.budget.take(DEFAULT_UNITS, Purpose.FLASHBLOCK, upstream.now) == 0.0
        with capture_logs() as logs:
            await ask(upstream)
            assert not upstream.status().short, "a moment may pass"
            for _ in range(3):
                clock.advance(10**9)
                upstream.budget.take(DEFAULT_UNITS, Purpose.FLASHBLOCK, upstream.now)
                await ask(upstream)
        assert "300 units per second are too few" in upstream.status().short
        assert [each["event"] for each in logs] == ["upstream_units_short"], "once a minute"
        assert "--upstream-units" in logs[0]["why"]
        clock.advance(3 * 10**9)
        assert not upstream.status().short, "nothing has waited since"
        upstream.close()

    asyncio.run(test())


def test_retry_after_as_seconds_or_date() -> None:
    assert retry_after({"retry-after": "7"}, 0) == 7
    assert retry_after({"Retry-After": "Thu, 01 Jan 1970 00:01:40 GMT"}, 40) == 60
    assert retry_after({"Retry-After": "Thu, 01 Jan 1970 00:01:40 GMT"}, 400) == 0
    for wrong in ("", "soon", "-1", "1e9", "99999999999999", "Thu, 99 Jan"):
        assert retry_after({"Retry-After": wrong}, 0) is None
    assert retry_after({}, 0) is None


def test_a_way_that_works_for_others_is_not_given_up() -> None:
    """One error among results is temporary; if all are errors, the method is unsupported."""
    asked: list[StateRequest] = [GetProof(A), GetProof(B), GetCode(A)]
    refused: list[tuple[StateRequest, str]] = [(asked[0], RefusalKind.NO_METHOD.value)]
    assert lasting_refusals(asked, refused) == []
    refused.append((asked[1], RefusalKind.NO_METHOD.value))
    assert lasting_refusals(asked, refused) == refused
    other: list[tuple[StateRequest, str]] = [(asked[0], RefusalKind.NO_BLOCK.value)]
    assert lasting_refusals(asked, other) == other


def test_what_was_refused_is_tried_again_after_a_while_that_grows() -> None:
    clock = DrivenClock()

    async def test(fetcher: Fetcher, _: list[ToyNode]) -> None:
        await fetcher.probe()
        upstream = fetcher.upstreams[0]
        whole = upstream.limits
        for seconds in (2, 4, 8):
            upstream.degrade(whole._replace(proofs=False))
            clock.advance(seconds * 10**9 - 1)
            upstream.restore()
            assert not upstream.limits.proofs
            clock.advance(1)
            upstream.restore()
            assert upstream.limits == whole

    fetching(test, ToyNode(), clock=clock)


@pytest.mark.parametrize(
    ("usual", "left", "waits"),
    [
        (0.2, 2.0, 1.0),  # half of it: a retry has the rest
        (0.4, 2.0, 2.0),  # in half of it too few responses arrive
        (0.2, 60.0, 1.6),  # above the limit: eight times the usual time
    ],
)
def test_an_answer_that_does_not_come_leaves_time_for_another_try(
    usual: float, left: float, waits: float
) -> None:
    upstream = StateUpstream("http://nobody", DrivenClock(), UnitBudget(RICH))
    for _ in range(16):
        upstream.durations.add(usual)
    waited: list[float] = []

    async def post(_: bytes, seconds: float, *, is_urgent: bool) -> None:
        assert not is_urgent
        waited.append(seconds)
        raise RefusedAnswer(RefusalKind.UNREACHABLE.value, "no response")

    upstream.connections = SimpleNamespace(post=post)  # type: ignore[assignment, misc]
    asking = upstream.ask([("eth_chainId", [])], Urgency(Purpose.CLIENT), upstream.now + left)
    with pytest.raises(RefusedAnswer):
        asyncio.run(asking)
    assert waited == [pytest.approx(waits)]
