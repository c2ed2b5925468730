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


def test_what_is_remembered_is_bounded() -> None:
    heavy = HeavyCalls()
    for number in range(3 * REMEMBERED_KINDS):
        heavy.stopped((None, number.to_bytes(4), False), number)
        assert len(heavy.remembered) <= REMEMBERED_KINDS
