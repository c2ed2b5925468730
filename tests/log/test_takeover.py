"""The takeover rule of a standby: a plain reading of it beside the watch, on a driven clock."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from foreblock.log.takeover import (
    ASLEEP_NS,
    CHANCE_NS,
    CHECK_NS,
    QUIET_NS,
    SilenceWatch,
    StandbyStep,
)

SECOND = 10**9


def looks(watch: SilenceWatch, begin: int, until: int) -> int | None:
    """Check whenever it is due, with responses; return the time of takeover."""
    now = begin
    while now <= until:
        is_due = watch.due(now) is StandbyStep.CHECK
        if is_due and watch.answered(now, is_news=False) is StandbyStep.TAKE_OVER:
            return now
        now = max(now + 1, watch.next_check_ns)
    return None


@given(st.integers(0, 2**32), st.floats(0.5, 10))
def test_it_takes_over_after_silence_and_chance(seed: int, silence: float) -> None:
    watch = SilenceWatch(silence, Random(seed), 0)
    watch.received(SECOND)
    taken = looks(watch, SECOND, 20 * SECOND)
    assert taken is not None
    waited = taken - SECOND
    assert silence * SECOND - 1 <= waited <= silence * SECOND + CHANCE_NS + CHECK_NS + QUIET_NS


@given(st.integers(0, 2**32))
def test_a_writer_that_says_that_it_stops_is_not_waited_for(seed: int) -> None:
    watch = SilenceWatch(10, Random(seed), 0)
    watch.resigned(SECOND)
    taken = looks(watch, SECOND, 20 * SECOND)
    assert taken is not None
    assert taken - SECOND <= CHANCE_NS + CHECK_NS
    watch.resigned(SECOND)
    watch.received(SECOND + 1)  # another writer was first
    assert looks(watch, SECOND + 1, 10 * SECOND) is None


def test_several_standbys_wait_for_different_times() -> None:
    taken = {looks(SilenceWatch(2, Random(seed), 0), 0, 10 * SECOND) for seed in range(20)}
    assert len(taken) == 20


def test_zero_never_takes_over_and_never_looks() -> None:
    watch = SilenceWatch(0, Random(1), 0)
    assert watch.due(100 * SECOND) is StandbyStep.WAIT
    for second in range(1, 100):
        assert watch.answered(second * SECOND, is_news=False) is StandbyStep.WAIT


def test_a_standby_that_slept_begins_anew() -> None:
    watch = SilenceWatch(2, Random(1), 0)
    assert watch.answered(60 * SECOND, is_news=False) is StandbyStep.WAIT
    taken = looks(watch, 60 * SECOND, 90 * SECOND)
    assert taken is not None
    assert taken >= 62 * SECOND


EVENTS = st.lists(
    st.tuples(
        st.integers(1, 2 * SECOND),
        st.sampled_from(["heard", "unanswered", "news", "nothing", "nothing", "nothing"]),
    ),
    max_size=60,
)


@given(EVENTS, st.integers(0, 2**32))
def test_it_takes_over_only_while_nothing_but_empty_answers_came(
    events: list[tuple[int, str]], seed: int
) -> None:
    """From the history of all events: the last one of another kind starts the silence."""
    watch = SilenceWatch(2, Random(seed), 0)
    now, began, before = 0, 0, 0
    for wait, kind in events:
        now += wait
        asleep = now - before > ASLEEP_NS
        match kind:
            case "heard":
                watch.received(now)
            case "unanswered":
                watch.unanswered(now)
            case "news":
                assert watch.answered(now, is_news=True) is StandbyStep.WAIT
            case _:
                verdict = watch.answered(now, is_news=False)
                if asleep or now - began < 2 * SECOND:
                    assert verdict is StandbyStep.WAIT
                elif now - began >= 2 * SECOND + CHANCE_NS:
                    assert verdict is StandbyStep.TAKE_OVER
        began = began if kind == "nothing" and not asleep else now
        before = now
