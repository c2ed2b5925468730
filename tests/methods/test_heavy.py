from foreblock.methods.heavy import (
    REMEMBERED_KINDS,
    REMEMBERED_SECONDS,
    STOPS,
    WINDOW_SECONDS,
    HeavyCalls,
)

KIND = (b"\1" * 20, b"\2" * 4, False)
OTHER = (b"\1" * 20, b"\3" * 4, False)
OVERRIDDEN = (*KIND[:2], True)


def test_unknown_kind_may_run_in_place() -> None:
    assert HeavyCalls().may_run_in_place(KIND, 0)


def test_stopped_kind_is_heavy_for_a_minute_and_others_are_not() -> None:
    heavy = HeavyCalls()
    heavy.stopped(KIND, 10)
    assert not heavy.may_run_in_place(KIND, 10)
    assert not heavy.may_run_in_place(KIND, 10 + REMEMBERED_SECONDS - 0.001)
    assert heavy.may_run_in_place(OTHER, 10)
    assert heavy.may_run_in_place(OVERRIDDEN, 10)
    assert heavy.may_run_in_place(KIND, 10 + REMEMBERED_SECONDS)


def test_many_stops_in_a_short_time_send_every_kind_to_the_pool() -> None:
    heavy = HeavyCalls()
    for number in range(STOPS):
        assert heavy.may_run_in_place(OTHER, number / 100)
        heavy.stopped((None, bytes([number]), False), number / 100)
    assert not heavy.may_run_in_place(OTHER, WINDOW_SECONDS - 0.001)
    assert heavy.may_run_in_place(OTHER, WINDOW_SECONDS)


def test_as_many_stops_in_a_longer_time_do_not() -> None:
    heavy = HeavyCalls()
    for number in range(100):
        now = number * WINDOW_SECONDS / (STOPS - 1)
        assert heavy.may_run_in_place(OTHER, now)
        heavy.stopped((None, number.to_bytes(4), False), now)


def test_what_has_expired_is_forgotten() -> None:
    heavy = HeavyCalls()
    heavy.stopped(KIND, 10)
    heavy.stopped(OTHER, 11)
    heavy.stopped(KIND, 12)
    assert not heavy.may_run_in_place(KIND, 11 + REMEMBERED_SECONDS)
    assert set(heavy.remembered) == {KIND}, "the other one's time is over"
    assert heavy.may_run_in_place(OVERRIDDEN, 12 + REMEMBERED_SECONDS)
    assert not heavy.remembered, "whichever kind is asked about"
    heavy.stopped(KIND, 100)
    heavy.stopped(OTHER, 100 + REMEMBERED_SECONDS)
    assert set(heavy.remembered) == {OTHER}


def test_what_is_remembered_is_bounded_and_the_oldest_goes_first() -> None:
    heavy = HeavyCalls()
    kinds = [(None, number.to_bytes(4), False) for number in range(REMEMBERED_KINDS + 2)]
    for number, kind in enumerate(kinds[:REMEMBERED_KINDS]):
        heavy.stopped(kind, number / 1000)
    heavy.stopped(kinds[0], 10)  # is the newest now
    heavy.stopped(kinds[-2], 11)
    heavy.stopped(kinds[-1], 12)
    assert len(heavy.remembered) == REMEMBERED_KINDS
    assert [kind for kind in kinds if heavy.may_run_in_place(kind, 13)] == kinds[1:3]
