"""`foreblock follow`: short forms of the checks, without time limits.

The speed check has none: it needs the build of another checkout.
"""

from collections.abc import Iterator

import pytest

from follow.check_calls import judge_ours
from follow.check_chains import judge_abuse
from follow.check_economy import count
from follow.check_kills import judge_kills
from follow.check_live import NEED_PROOFS, PATIENT, judged
from follow.check_options import CheckOptions, Outcome, Scene, another, scene
from follow.check_outages import judge_reorg, judge_silence
from follow.check_trust import judge_audit
from follow.check_weather import DAMAGE, FAULTS, LIE_RATE, judge_lacking, judge_storm
from follow.run import CANNOT, HOLDS, run

SHORT = CheckOptions(
    minutes=0.1, tps=10, clients=1, rate=10, anchor=2, block_time=1, delay=0.005, at_any_speed=True
)  # fmt: skip
FEW_UNITS = 300  # a second: enough for the flashblocks of a calm chain
LACKING = ("heights", "number-only", "no-overrides")


@pytest.fixture(scope="module")
def proven() -> Iterator[Scene]:
    """A follower of a busy chain that verifies proofs."""
    with scene(SHORT, extra=PATIENT) as found:
        yield found


def test_every_answer_is_that_of_the_chain_at_few_requests(proven: Scene) -> None:
    outcome = Outcome()
    verdict = judged(SHORT, proven, 3)
    count(outcome, SHORT, proven, 2)
    assert not verdict.differences, verdict.differences[:3]
    assert verdict.answers.total() > 0
    assert not verdict.unanswered
    assert not outcome.complaints, outcome.lines


@pytest.mark.heavy
def test_calls_take_few_round_trips_and_none_at_another_anchor() -> None:
    outcome = Outcome()
    with scene(SHORT, tps=0.05) as found:  # no other requests meanwhile
        judge_ours(outcome, found, found.load.senders[0].address)
    assert not outcome.complaints, outcome.lines


def test_nothing_wrong_is_served_where_everything_is_damaged_now_and_then(proven: Scene) -> None:
    proven.proxy.faults(",".join(f"{kind}={LIE_RATE}" for kind in DAMAGE))
    verdict = judged(SHORT, proven, 3, NEED_PROOFS)
    struck = proven.proxy.tell()["struck"]
    proven.proxy.faults(f"delay=1:{SHORT.delay:g}")
    assert not verdict.differences, verdict.differences[:3]
    assert verdict.answers.total() > 0
    assert struck


def test_a_lie_that_was_believed_is_dropped_with_all_that_stood_on_it(proven: Scene) -> None:
    outcome = Outcome()
    with another(proven, trust="audited") as found:
        judge_audit(outcome, SHORT, found)
    assert not outcome.complaints, outcome.lines


def test_a_reorganisation_is_followed(proven: Scene) -> None:
    outcome = Outcome()
    judge_reorg(outcome, SHORT, proven, 2)
    assert not outcome.complaints, outcome.lines


def test_what_was_learned_is_known_after_a_kill(proven: Scene) -> None:
    """The last test of this follower."""
    outcome = Outcome()
    judge_kills(outcome, SHORT, proven, 1)
    assert not outcome.complaints, outcome.lines


@pytest.mark.heavy
def test_it_comes_back_after_bad_weather_silence_and_reorganisations() -> None:
    outcome = Outcome()
    with scene(SHORT) as found:
        judge_storm(outcome, SHORT, found, "all", FAULTS, 2)
        judge_silence(outcome, SHORT, found, 0)
        judge_reorg(outcome, SHORT, found, 3)
        judge_reorg(outcome, SHORT, found, -1)
    assert not outcome.complaints, outcome.lines


@pytest.mark.heavy
def test_an_endpoint_that_lacks_this_and_that_is_followed() -> None:
    outcome = Outcome()
    judge_lacking(outcome, SHORT, LACKING, "proven", 3)
    assert not outcome.complaints, outcome.lines


@pytest.mark.heavy
def test_clients_of_random_accounts_take_nothing_from_flashblocks() -> None:
    outcome = Outcome()
    with scene(SHORT, tps=2, units=FEW_UNITS) as found:
        judge_abuse(outcome, SHORT, found, 0, count=8)
    assert not outcome.complaints, outcome.lines


@pytest.mark.heavy
@pytest.mark.parametrize("name", ["real-blocks", "published"])
def test_blocks_of_others_are_followed(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = run(name, SHORT)
    said = capsys.readouterr().out
    if outcome == CANNOT:
        pytest.skip(said.strip().splitlines()[-1])
    assert outcome == HOLDS, said
