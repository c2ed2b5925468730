from random import Random

from foreblock.backoff import Backoff, Waits


def test_waits_double_up_to_the_longest_and_chance_shortens_them_by_half_at_most() -> None:
    for seed in range(50):
        backoff = Backoff(Waits(0.5, 10.0), Random(seed))
        for step in (0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0):
            assert step / 2 <= backoff.after(lived=0.1) <= step


def test_two_clients_do_not_come_back_at_one_moment() -> None:
    waits = {Backoff(Waits(), Random(seed)).after(0) for seed in range(20)}
    assert len(waits) == 20


def test_what_held_for_as_long_as_the_longest_wait_begins_anew() -> None:
    backoff = Backoff(Waits(0.5, 10.0), Random(1))
    for _ in range(6):
        backoff.after(lived=9.9)
    assert backoff.after(lived=9.9) >= 5.0
    assert backoff.after(lived=10.0) <= 0.5


def test_success_begins_anew() -> None:
    backoff = Backoff(Waits(0.5, 10.0), Random(1))
    for _ in range(6):
        backoff.after(lived=0)
    backoff.succeeded()
    assert backoff.after(lived=0) <= 0.5
