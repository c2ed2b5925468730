"""The budget: no second above it, no purpose above its share, urgent ones first."""

from copy import deepcopy

from hypothesis import given
from hypothesis import strategies as st

from foreblock.upstream.budget import DEFAULT_UNITS, PRICES, WINDOW, Purpose, UnitBudget, price

takes = st.lists(
    st.tuples(
        st.sampled_from(Purpose),
        st.integers(1, 100),
        st.floats(0, 0.4, allow_nan=False),
    ),
    max_size=30,
)


@given(takes, st.sampled_from([100, 300.0]), st.sampled_from([0.0, 0.6, 0.9]))
def test_no_window_has_more_than_its_share(
    some: list[tuple[Purpose, int, float]], units: float, reserve: float
) -> None:
    """For any requests: any second, of any purpose with the less urgent ones."""
    budget, now = UnitBudget(units, reserve), 10.0
    taken: list[tuple[float, Purpose, int]] = []
    for purpose, cost, pause in some:
        now += pause
        wait = budget.take(cost, purpose, now)
        if wait == 0.0:
            taken.append((now, purpose, cost))
        else:
            assert 0 < wait <= WINDOW
            later = deepcopy(budget)
            assert later.wait(cost, purpose, now + wait + 1e-6) == 0.0, "it waits long enough"
    for end, *_ in taken:
        for share_of in Purpose:
            window = [
                cost
                for at, purpose, cost in taken
                if end - WINDOW < at <= end and purpose >= share_of
            ]
            most = budget.share(min(share_of, Purpose.AUDIT))  # it may have been idle
            assert sum(window) <= max(most, *window, 0) + 1e-6


def test_flashblocks_have_their_reserve_whatever_clients_do() -> None:
    budget = UnitBudget(300, 0.6)
    while budget.take(20, Purpose.CLIENT, 1.0) == 0.0:
        pass
    assert sum(1 for _ in range(100) if budget.take(20, Purpose.FLASHBLOCK, 1.0) == 0.0) == 9
    assert budget.wait(20, Purpose.FLASHBLOCK, 1.5) == WINDOW - 0.5
    assert budget.wait(20, Purpose.FLASHBLOCK, 1.0 + WINDOW) == 0.0


def test_flashblocks_may_spend_all_of_it_and_others_wait() -> None:
    budget = UnitBudget(300, 0.6)
    assert all(budget.take(20, Purpose.FLASHBLOCK, 1.0) == 0.0 for _ in range(15))
    assert budget.take(20, Purpose.CLIENT, 1.25) == WINDOW - 0.25


def test_what_is_less_urgent_leaves_room_for_what_is_more() -> None:
    budget = UnitBudget(1000, 0.5)
    for purpose in reversed(Purpose):
        assert budget.take(20, purpose, 1.0) == 0.0
        while budget.take(20, purpose, 1.0) == 0.0:
            pass
    assert UnitBudget(1000, 0.5).share(Purpose.CLIENT) == 500


CALM_UNITS = 0.375 * 500  # between the limit of audits and that of warm-ups at other times


def _warm(budget: UnitBudget, now: float) -> int:
    """The current number of requests of the least urgent purpose."""
    return sum(1 for _ in range(100) if budget.take(20, Purpose.WARM_UP, now) == 0.0)


def test_warming_up_has_more_while_nobody_but_flashblocks_asks() -> None:
    budget = UnitBudget(1000, 0.5)
    for now in (10.0, 20.0):
        assert budget.take(20, Purpose.FLASHBLOCK, now) == 0.0
        assert _warm(budget, now) == CALM_UNITS // 20
    for purpose in (Purpose.CLIENT, Purpose.SEALED, Purpose.AUDIT):
        budget = UnitBudget(1000, 0.5)
        assert budget.take(20, purpose, 10.0) == 0.0
        assert _warm(budget, 10.5) == budget.share(Purpose.WARM_UP) // 20
        assert _warm(budget, 10.5 + 2 * WINDOW) == CALM_UNITS // 20


def test_a_client_that_comes_finds_most_of_his_share() -> None:
    budget = UnitBudget(300, 0.6)
    assert _warm(budget, 10.0) == 2
    assert sum(1 for _ in range(100) if budget.take(20, Purpose.CLIENT, 10.5) == 0.0) == 4
    assert _warm(budget, 10.0 + WINDOW) == 1, "it is not calm any more"


def test_a_pause_holds_everything() -> None:
    budget = UnitBudget()
    budget.pause(7, now=100)
    assert budget.take(1, Purpose.FLASHBLOCK, 103) == 4
    assert budget.paused(103) == 4
    budget.pause(1, now=103)
    assert budget.paused(103) == 4, "a shorter one ends nothing"
    assert budget.take(1, Purpose.FLASHBLOCK, 107) == 0.0


def test_more_than_the_budget_goes_when_nothing_else_does() -> None:
    budget = UnitBudget(100)
    assert budget.take(170, Purpose.WARM_UP, 1.0) == 0.0
    assert budget.take(170, Purpose.FLASHBLOCK, 1.5) == WINDOW - 0.5
    assert budget.take(170, Purpose.FLASHBLOCK, 1.0 + WINDOW) == 0.0


def test_prices() -> None:
    assert price("eth_call") == 26
    assert price("eth_unheardOf") == 20
    assert all(each >= 0 for each in PRICES.values())
    assert UnitBudget().units == DEFAULT_UNITS
