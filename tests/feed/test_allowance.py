"""Allowances on a clock of the test's own."""

from hypothesis import given
from hypothesis import strategies as st

from foreblock.feed.allowance import Allowance, Rate

RATE = Rate(10, 40)


def test_so_much_is_there_at_once_and_not_more() -> None:
    allowance = Allowance(RATE)
    assert allowance.spend(40, 0.0)
    assert not allowance.spend(1, 0.0)


def test_it_comes_back_with_time_up_to_what_is_there_at_once() -> None:
    allowance = Allowance(RATE)
    allowance.spend(40, 5.0)
    assert allowance.left(6.5) == 15
    assert not allowance.is_full(6.5)
    assert allowance.left(1_000.0) == 40
    assert allowance.is_full(1_000.0)


def test_what_was_not_there_is_owed_but_never_more_than_one_burst() -> None:
    allowance = Allowance(RATE)
    assert not allowance.spend(50, 0.0)
    assert allowance.wait(0.0) == 1.0
    assert not allowance.spend(10**9, 0.0)
    assert allowance.wait(0.0) == 4.0
    assert allowance.wait(4.0) == 0.0


@given(st.lists(st.tuples(st.floats(0, 3), st.integers(0, 30)), max_size=50))
def test_what_was_there_is_never_more_than_the_rate(steps: list[tuple[float, int]]) -> None:
    allowance, now, spent = Allowance(RATE), 0.0, 0
    for later, amount in steps:
        now += later
        if allowance.spend(amount, now):
            spent += amount
    assert spent <= RATE.at_once + RATE.a_second * now + 1e-6
