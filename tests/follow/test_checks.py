"""The checks can be run by name, also with a stand-in."""

import pytest

from follow.check_options import CheckOptions, Outcome
from follow.check_weather import DAMAGE, must_have_struck
from follow.run import CANNOT, CHECKS, FAILS, HOLDS, Check, run

pytestmark = pytest.mark.heavy

SHORT = CheckOptions(
    minutes=0.05, tps=20, clients=1, anchor=1, delay=0.005, stand_in=True, at_any_speed=True
)


def test_there_are_fifteen() -> None:
    assert [each.number for each in CHECKS.values()] == list(range(1, 16))


def test_a_check_says_that_it_cannot_be_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("speed", CheckOptions()) == CANNOT
    assert "--before" in capsys.readouterr().out


def test_equality_holds_for_a_full_follower(capsys: pytest.CaptureFixture[str]) -> None:
    code = run("equality", SHORT)
    said = capsys.readouterr().out
    assert "0 differences" in said, said
    # The number of responses in three seconds depends on the machine.
    assert code == HOLDS or "FAILS: at least 100 answers" in said


def test_a_kind_of_damage_that_never_struck_fails() -> None:
    for struck, holds in ((DAMAGE, True), (DAMAGE[1:], False), ((), False)):
        outcome = Outcome()
        must_have_struck(outcome, dict.fromkeys(struck, 1))
        assert (not outcome.complaints) is holds
    assert DAMAGE[0] in outcome.lines[-1]


def test_what_does_not_hold_fails(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = Outcome()
    outcome.must(True, "this")
    outcome.must(False, "that")
    monkeypatch.setitem(CHECKS, "equality", Check(1, "both", lambda _: outcome))
    assert run("equality", SHORT) == FAILS
    assert "FAILS: that" in capsys.readouterr().out
