"""Allowances on a driven clock."""

from hypothesis import given
from hypothesis import strategies as st

from foreblock.feed.rate_limits import ADDRESS, ALL, ConnectionLimits, Rate, TokenBucket, network_of
from support.each_case import each_case

RATE = Rate(10, 40)


def test_so_much_is_there_at_once_and_not_more() -> None:
    allowance = TokenBucket(RATE)
    assert allowance.spend(40, 0.0)
    assert not allowance.spend(1, 0.0)


def test_it_comes_back_with_time_up_to_what_is_there_at_once() -> None:
    allowance = TokenBucket(RATE)
    allowance.spend(40, 5.0)
    assert allowance.left(6.5) == 15
    assert not allowance.is_full(6.5)
    assert allowance.left(1_000.0) == 40
    assert allowance.is_full(1_000.0)


def test_what_was_not_there_is_owed_but_never_more_than_one_burst() -> None:
    allowance = TokenBucket(RATE)
    assert not allowance.spend(50, 0.0)
    assert allowance.wait(0.0) == 1.0
    assert not allowance.spend(10**9, 0.0)
    assert allowance.wait(0.0) == 4.0
    assert allowance.wait(4.0) == 0.0


@given(st.lists(st.tuples(st.floats(0, 3), st.integers(0, 30)), max_size=50))
def test_what_was_there_is_never_more_than_the_rate(steps: list[tuple[float, int]]) -> None:
    allowance, now, spent = TokenBucket(RATE), 0.0, 0
    for later, amount in steps:
        now += later
        if allowance.spend(amount, now):
            spent += amount
    assert spent <= RATE.burst + RATE.per_second * now + 1e-6


ONE, TWO = "192.0.2.1", "192.0.2.2"


def come_and_go(limits: ConnectionLimits, address: str, now: float) -> bool:
    came = limits.admit(address, now)
    if came:
        limits.release(address)
    return came


def test_an_address_has_twice_as_many_connections_as_it_may_have_clients() -> None:
    limits = ConnectionLimits(100, 10)
    assert [limits.admit(ONE, 0.0) for _ in range(21)] == [True] * 20 + [False]
    assert limits.admit(TWO, 0.0)
    limits.release(ONE)
    assert limits.admit(ONE, 0.0)


def test_all_together_have_twice_as_many_as_there_may_be_clients() -> None:
    limits = ConnectionLimits(3, 2)
    assert [limits.admit(f"192.0.2.{at}", 0.0) for at in range(7)] == [True] * 6 + [False]


def test_coming_back_at_once_again_and_again_comes_to_an_end() -> None:
    limits = ConnectionLimits(100, 10)
    came = sum(come_and_go(limits, ONE, 0.0) for _ in range(1_000))
    assert came == ADDRESS.burst
    assert come_and_go(limits, TWO, 0.0)
    came = sum(come_and_go(limits, ONE, 1.0) for _ in range(1_000))
    assert came == ADDRESS.per_second


def test_who_is_refused_owes_no_more_for_it() -> None:
    limits = ConnectionLimits(100, 10)
    for _ in range(10_000):
        come_and_go(limits, ONE, 0.0)
    assert come_and_go(limits, ONE, 0.1)


def test_who_was_too_loud_is_not_let_in_for_a_while() -> None:
    limits = ConnectionLimits(100, 10)
    for _ in range(10):
        assert limits.admit(ONE, 0.0)
    for _ in range(10):
        limits.penalize(ONE, 0.0)
        limits.release(ONE)
    assert not limits.admit(ONE, 9.9)
    assert limits.admit(ONE, 10.2)


def test_many_addresses_share_a_rate() -> None:
    limits = ConnectionLimits(100, 10)
    came = sum(come_and_go(limits, f"10.0.{at // 250}.{at % 250}", 0.0) for at in range(5_000))
    assert came == ALL.burst


def test_as_many_as_are_allowed_may_come_at_once() -> None:
    limits = ConnectionLimits(5_000, 3_000)
    assert all(limits.admit(ONE, 0.0) for _ in range(3_000))


def test_what_is_remembered_of_addresses_is_bounded() -> None:
    limits = ConnectionLimits(100, 10)
    for at in range(50_000):
        come_and_go(limits, str(at), at * 0.001)
    assert len(limits.buckets) <= 4_096


@each_case(
    ("host", "network"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("fe80::1%eth0", "fe80::"),
        ("", ""),
        ("unknown", ""),
    ],
)
def test_an_address_counts_by_what_one_host_has_to_itself(host: str, network: str) -> None:
    assert network_of(host) == network
