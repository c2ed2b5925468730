from foreblock.scheduling.call_threads import SlowCalls
from foreblock.scheduling.thresholds import THRESHOLDS

REMEMBERED_KINDS = THRESHOLDS.slow_call_kinds
REMEMBERED_SECONDS = THRESHOLDS.slow_call_seconds
STOPS = THRESHOLDS.stopped_calls
WINDOW_SECONDS = THRESHOLDS.stopped_calls_seconds

KIND = (b"\1" * 20, b"\2" * 4, False)
OTHER = (b"\1" * 20, b"\3" * 4, False)
OVERRIDDEN = (*KIND[:2], True)


def test_unknown_kind_may_run_in_place() -> None:
    assert SlowCalls().may_run_in_place(KIND, 0)


def test_stopped_kind_is_slow_for_a_minute_and_others_are_not() -> None:
    slow = SlowCalls()
    slow.remember(KIND, 10)
    assert not slow.may_run_in_place(KIND, 10)
    assert not slow.may_run_in_place(KIND, 10 + REMEMBERED_SECONDS - 0.001)
    assert slow.may_run_in_place(OTHER, 10)
    assert slow.may_run_in_place(OVERRIDDEN, 10)
    assert slow.may_run_in_place(KIND, 10 + REMEMBERED_SECONDS)


def test_many_stops_in_a_short_time_send_every_kind_to_the_pool() -> None:
    slow = SlowCalls()
    for number in range(STOPS):
        assert slow.may_run_in_place(OTHER, number / 100)
        slow.remember((None, bytes([number]), False), number / 100)
    assert not slow.may_run_in_place(OTHER, WINDOW_SECONDS - 0.001)
    assert slow.may_run_in_place(OTHER, WINDOW_SECONDS)


def test_as_many_stops_in_a_longer_time_do_not() -> None:
    slow = SlowCalls()
    for number in range(100):
        now = number * WINDOW_SECONDS / (STOPS - 1)
        assert slow.may_run_in_place(OTHER, now)
        slow.remember((None, number.to_bytes(4), False), now)


def test_what_has_expired_is_forgotten() -> None:
    slow = SlowCalls()
    slow.remember(KIND, 10)
    slow.remember(OTHER, 11)
    slow.remember(KIND, 12)
    assert not slow.may_run_in_place(KIND, 11 + REMEMBERED_SECONDS)
    assert set(slow.remembered) == {KIND}, "the other one's time is over"
    assert slow.may_run_in_place(OVERRIDDEN, 12 + REMEMBERED_SECONDS)
    assert not slow.remembered, "whichever kind is asked about"
    slow.remember(KIND, 100)
    slow.remember(OTHER, 100 + REMEMBERED_SECONDS)
    assert set(slow.remembered) == {OTHER}


def test_what_is_remembered_is_bounded_and_the_oldest_goes_first() -> None:
    slow = SlowCalls()
    kinds = [(None, number.to_bytes(4), False) for number in range(REMEMBERED_KINDS + 2)]
    for number, kind in enumerate(kinds[:REMEMBERED_KINDS]):
        slow.remember(kind, number / 1000)
    slow.remember(kinds[0], 10)  # is now the newest
    slow.remember(kinds[-2], 11)
    slow.remember(kinds[-1], 12)
    assert len(slow.remembered) == REMEMBERED_KINDS
    assert [kind for kind in kinds if slow.may_run_in_place(kind, 13)] == kinds[1:3]
