"""The circuit breaker and the time until a second endpoint is used."""

from hypothesis import given
from hypothesis import strategies as st

from foreblock.upstream.endpoint import (
    ENOUGH,
    FIRST_GUESS,
    FIRST_PAUSE,
    KEPT,
    LONGEST_PAUSE,
    MOST_FAILURES,
    Circuit,
    Durations,
)


def failed(times: int, at: float) -> Circuit:
    circuit = Circuit()
    for _ in range(times):
        assert circuit.may_ask(at)
        circuit.asking()
        circuit.failed(at)
    return circuit


def test_some_failures_in_a_row_open_it() -> None:
    assert not failed(MOST_FAILURES - 1, 1.0).is_open
    circuit = failed(MOST_FAILURES, 1.0)
    assert circuit.is_open
    assert not circuit.may_ask(1.0 + FIRST_PAUSE - 0.01)
    assert circuit.wait(1.0) == FIRST_PAUSE


def test_an_answer_between_failures_keeps_it_closed() -> None:
    circuit = failed(MOST_FAILURES - 1, 1.0)
    circuit.succeeded()
    circuit.failed(1.0)
    assert not circuit.is_open


def test_one_request_tries_and_an_answer_closes_it() -> None:
    circuit = failed(MOST_FAILURES, 1.0)
    now = 1.0 + FIRST_PAUSE
    assert circuit.may_ask(now)
    circuit.asking()
    assert not circuit.may_ask(now), "one at a time"
    circuit.succeeded()
    assert not circuit.is_open
    assert circuit.may_ask(now)


def test_each_failed_trial_doubles_the_pause() -> None:
    circuit, now, pauses = failed(MOST_FAILURES, 0.0), 0.0, []
    for _ in range(10):
        pauses.append(circuit.wait(now))
        now += pauses[-1]
        circuit.asking()
        circuit.failed(now)
    assert pauses == sorted(pauses)
    assert pauses[0] == FIRST_PAUSE
    assert pauses[1] == 2 * FIRST_PAUSE
    assert pauses[-1] == LONGEST_PAUSE


def test_requests_that_were_out_when_it_opened_change_nothing() -> None:
    circuit = failed(MOST_FAILURES, 1.0)
    for _ in range(20):
        circuit.failed(1.2)
    assert circuit.wait(1.0) == FIRST_PAUSE


def test_a_lie_opens_it_at_once() -> None:
    circuit = Circuit()
    circuit.trip(60.0, 5.0)
    assert not circuit.may_ask(64.9)
    assert circuit.may_ask(65.0)


@given(st.lists(st.sampled_from(["ask", "ok", "bad", "later"])))
def test_it_is_never_closed_for_ever(steps: list[str]) -> None:
    circuit, now, out = Circuit(), 0.0, 0
    for step in steps:
        match step:
            case "ask" if circuit.may_ask(now):
                circuit.asking()
                out += 1
            case "ok" if out:
                out -= 1
                circuit.succeeded()
            case "bad" if out:
                out -= 1
                circuit.failed(now)
            case "later":
                now += 1.0
            case _:
                pass
    for _ in range(out):
        circuit.failed(now)
    assert circuit.may_ask(now + LONGEST_PAUSE)


def test_the_hedge_follows_what_answers_take() -> None:
    durations = Durations()
    assert durations.hedge_after == FIRST_GUESS
    assert durations.quantile(0.5) is None
    for _ in range(ENOUGH):
        durations.add(0.03)
    assert durations.hedge_after == 0.03
    for _ in range(KEPT):
        durations.add(0.0001)
    assert durations.hedge_after == 0.01, "never at once"
    for _ in range(KEPT // 10):
        durations.add(2.0)
    assert durations.hedge_after == 2.0
    assert durations.quantile(0.5) == 0.0001
