"""When a process counts as hanging."""

import pytest

from foreblock.server.child import Silence


def turns_until_given_up(silence: Silence) -> int:
    return next(turn for turn in range(1, 100) if silence.is_too_long(answered=False))


@pytest.mark.parametrize(("seconds", "turns"), [(0.1, 2), (1, 2), (2.5, 4), (10, 11)])
def test_whoever_is_silent_for_longer_than_it_may_is_given_up(seconds: float, turns: int) -> None:
    assert turns_until_given_up(Silence(seconds)) == turns


def test_an_answer_makes_good_all_silence_before_it() -> None:
    silence = Silence(10)
    for _ in range(5):
        assert not any(silence.is_too_long(answered=False) for _ in range(10))
        assert not silence.is_too_long(answered=True)
    assert turns_until_given_up(silence) == 11


def test_without_a_limit_nobody_is_given_up() -> None:
    silence = Silence(0)
    assert not any(silence.is_too_long(answered=False) for _ in range(1000))
