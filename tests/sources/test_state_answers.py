"""Responses to workers: known state is not fetched, and found state is proven."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from msgspec import Raw

from foreblock.bus.messages import (
    BusCall,
    BusRequest,
    CallUpstream,
    Failed,
    GetState,
    Result,
    ToWorker,
    failed,
)
from foreblock.clock import DrivenClock
from foreblock.errors import ErrorAnswer, NewEpoch, NoUpstream, RefusedAnswer
from foreblock.follow.fetch_result import ClaimedAccount, FetchResult
from foreblock.follow.learned_state import pack_values, unpack_values
from foreblock.follow.state_fetcher import ExecutedBlocks, ProvenState
from foreblock.follow.worker_requests import WorkerRequests
from foreblock.ledger.storage.state_keys import StateKeys
from foreblock.upstream.budget import Purpose
from foreblock.upstream.json_rpc import RefusalKind, of_error

EPOCH = 3
A, B = b"\xaa" * 20, b"\xbb" * 20
SECOND = 10**9
WANTED = StateKeys(frozenset({A, B}), {A: frozenset({1, 2})}, codes_of=frozenset({A}))


class FakeState:
    """Knows some keys, not all of which are stored."""

    def __init__(self, known: StateKeys) -> None:
        self.known = known
        self.stored = 0

    def executed(self) -> ExecutedBlocks:
        return ExecutedBlocks(EPOCH, [], keeps_hashes=True)

    def unknown(self, wanted: StateKeys) -> StateKeys:
        return wanted.without(self.known)

    async def store_learned(self) -> None:
        self.stored += 1


class FakeLearner:
    """Finds every account, and records requests."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.asked: list[StateKeys] = []
        self.failure = failure

    async def find_in_time(
        self,
        wanted: StateKeys,
        executed: Callable[[], ExecutedBlocks],
        purpose: Purpose,
        seconds: float,
    ) -> ProvenState:
        assert purpose is Purpose.CLIENT
        assert (executed().epoch, seconds) == (EPOCH, 2.0)
        self.asked.append(wanted)
        if self.failure is not None:
            raise self.failure
        found = FetchResult()
        found.accounts = {
            each: ClaimedAccount(1, 2, b"\x33" * 32, None) for each in wanted.accounts
        }
        return ProvenState(found, {5: b"\x55" * 32})


class FakeUpstream:
    """Always gives the same response."""

    def __init__(self, said: Raw | RefusedAnswer, wait: float = 0.0) -> None:
        self.said = said
        self.waits = wait
        self.asked: list[object] = []
        self.now = 100.0

    def wait(self, _: Purpose) -> float:
        return self.waits

    async def ask(self, calls: object, _: object, until: float) -> dict[int, Raw | RefusedAnswer]:
        self.asked.append((calls, until))
        return {1: self.said}


class FakeFetcher:
    def __init__(self, *upstreams: FakeUpstream) -> None:
        self.upstreams = upstreams


def answered(
    message: BusCall,
    state: FakeState | None = None,
    learner: FakeLearner | None = None,
    *upstreams: FakeUpstream,
    heard: list[ToWorker] | None = None,
) -> list[ToWorker]:
    """Return the response to a worker."""
    heard = [] if heard is None else heard

    async def body() -> None:
        before = len(heard)
        started: list[Coroutine[Any, Any, None]] = []
        answers = WorkerRequests(
            FakeFetcher(*upstreams),  # type: ignore[arg-type]
            learner or FakeLearner(),
            state or FakeState(StateKeys()),
            started.append,
            DrivenClock(),
        )
        answers.fetch(BusRequest(message, heard.append))
        assert len(heard) == before, "no client waits for it here"
        for each in started:
            await each

    asyncio.run(body())
    return heard


def asking(epoch: int = EPOCH) -> BusCall:
    deadline = DrivenClock().monotonic_ns() + 2 * SECOND
    return BusCall(9, "main", GetState(epoch, WANTED.pack()), deadline)


def test_what_is_not_known_is_found_and_sent() -> None:
    learner = FakeLearner()
    (part,) = answered(asking(), None, learner)
    assert learner.asked == [WANTED]
    assert isinstance(part, Result)
    said = unpack_values(part.value)
    assert said.accounts.keys() == WANTED.accounts
    assert said.blocks == {5: b"\x55" * 32}


def test_what_is_known_is_stored_for_all_and_not_fetched_again() -> None:
    """Another worker has just requested it, or a flashblock has needed it."""
    learner, state = FakeLearner(), FakeState(StateKeys(frozenset({A}), {A: frozenset({1})}))
    answered(asking(), state, learner)
    assert state.stored == 1
    assert learner.asked == [
        StateKeys(frozenset({B}), {A: frozenset({2})}, codes_of=frozenset({A})),
    ]


def test_where_all_is_known_no_upstream_is_asked() -> None:
    learner, state = FakeLearner(), FakeState(WANTED)
    (part,) = answered(asking(), state, learner)
    assert (learner.asked, state.stored) == ([], 1)
    assert isinstance(part, Result)
    assert part.value == pack_values(FetchResult(), {})


def test_another_epoch_and_a_failure_are_said() -> None:
    assert answered(asking(EPOCH - 1)) == [failed(9, NewEpoch())]
    failing = FakeLearner(NoUpstream("it rains", 4))
    assert answered(asking(), None, failing) == [failed(9, NoUpstream("it rains", 4))]
    assert answered(asking(), None, FakeLearner(NewEpoch())) == [failed(9, NewEpoch())]


def test_a_failure_that_nobody_expects_is_answered_too() -> None:
    heard: list[ToWorker] = []
    for message in (asking(), BusCall(9, "main", CallUpstream("eth_call", b"{not JSON"), 0)):
        with pytest.raises(ValueError):  # noqa: PT011, of any kind: it is logged
            answered(message, None, FakeLearner(ValueError("a defect")), heard=heard)
    assert heard == [failed(9, NoUpstream("internal error", 1))] * 2


def test_a_request_goes_to_the_first_upstream_that_answers_it() -> None:
    message = BusCall(
        9, "main", CallUpstream("eth_getBlockByHash", b'["0x1",true]'), asking().deadline_ns
    )
    refusal = RefusedAnswer(RefusalKind.NO_METHOD.value, "no")
    busy, lacks, has = FakeUpstream(Raw(b"1"), 5.0), FakeUpstream(refusal), FakeUpstream(Raw(b"2"))
    assert answered(message, None, None, busy, lacks, has) == [Result(9, b"2")]
    assert lacks.asked == has.asked == [([("eth_getBlockByHash", ["0x1", True])], 102.0)]
    assert busy.asked == []
    (said,) = answered(message, None, None, FakeUpstream(refusal))
    assert isinstance(said, Failed)
    assert "no such method" in said.facts[0]
    (said,) = answered(message)
    assert said == failed(9, NoUpstream("there is none", 1))


def test_an_error_about_the_request_is_told_as_it_is() -> None:
    message = BusCall(9, "main", CallUpstream("eth_call", b"[{}]"), asking().deadline_ns)
    refused, limited = of_error(-32000, "no such thing"), of_error(429, "slowly")
    assert answered(message, None, None, FakeUpstream(refused)) == [
        failed(9, ErrorAnswer(-32000, "no such thing")),
    ]
    (said,) = answered(message, None, None, FakeUpstream(limited))
    assert isinstance(said, Failed)
    assert said.error == "NoUpstream"


def test_a_revert_is_an_answer_and_nobody_else_is_asked() -> None:
    message = BusCall(9, "main", CallUpstream("eth_call", b"[{}]"), asking().deadline_ns)
    reverts, other = (
        FakeUpstream(of_error(3, "execution reverted", "0x08c3")),
        FakeUpstream(Raw(b"1")),
    )
    (said,) = answered(message, None, None, reverts, other)
    assert said == failed(9, ErrorAnswer(3, "execution reverted", "0x08c3"))
    assert other.asked == []
