"""Every fault switch, alone and together, on a driven clock; `make check NAME=fault-injection` uses
real processes.

Under all faults, no response contradicts the commits of the source, no request fails except as
documented, and the recovery stays within the bounds of `docs/behaviour.md`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from checker.contradiction import Kind
from checker.judge import Verdict
from foreblock.ledger.building.commit_builder import CommitBuilder
from foreblock.ledger.following import message_execution as execution
from foreblock.ledger.following.verdict import Applied
from foreblock.ledger.reading import view as ledger_view
from support.each_case import sampled
from weather.convergence import Lateness
from weather.faults import (
    BOUNDS,
    HARMLESS,
    RATES,
    THROUGH_CANONICAL,
    TOGETHER,
    WITHOUT_CANONICAL,
    Bound,
    words,
)
from weather.rehearsal import Weather

SEED = 7
SECONDS = 11
BLOCK_TIME = 2
SLACK_NS = 200 * 10**6  # requests are 90 ms apart, so nothing is visible immediately


@contextmanager
def weather(folder: Path, rates: dict[str, float], **options: Any) -> Iterator[Weather]:  # noqa: ANN401
    made = Weather(folder, tuple(words(rates)), SEED, **options)
    try:
        yield made
    finally:
        made.close()


def run(folder: Path, rates: dict[str, float], **options: Any) -> tuple[Verdict, Lateness]:  # noqa: ANN401
    with weather(folder, rates, **options) as made:
        made.run(SECONDS)
        counters = made.messages().outcomes
        assert counters.get("Failed", 0) == 0, made.messages().last_error
        assert counters.get("CanonicalDiverged", 0) == 0
        return made.judge()


def check(found: tuple[Verdict, Lateness], bound: Bound) -> None:
    verdict, late = found
    assert not verdict.contradictions, str(verdict.contradictions[0])
    assert verdict.judged.total() > 800
    assert len(late.served) > 25
    assert late.worst_ns <= bound.ns(BLOCK_TIME) + SLACK_NS


@pytest.mark.parametrize("kind", sampled(RATES, 2))
def test_answers_stay_true_and_all_is_well_again_in_time(tmp_path: Path, kind: str) -> None:
    check(run(tmp_path, {kind: RATES[kind]}), BOUNDS[kind])


def test_answers_stay_true_when_everything_goes_wrong_at_once(tmp_path: Path) -> None:
    check(run(tmp_path, TOGETHER), THROUGH_CANONICAL)


def test_what_loses_nothing_is_survived_without_canonical(tmp_path: Path) -> None:
    check(run(tmp_path, HARMLESS, canonical=False), WITHOUT_CANONICAL)


def test_without_canonical_a_lost_message_freezes_the_chain_and_is_named(tmp_path: Path) -> None:
    with weather(tmp_path, {"drop": 0.1}, canonical=False) as made:
        made.run(SECONDS)
        assert made.messages().missing
        frozen = made.followed.latest
        made.run(3)
        assert made.followed.latest == frozen
        verdict, late = made.judge()
        assert not verdict.contradictions, str(verdict.contradictions[0])
        assert late.open, "what came after the loss is not served"
        assert made.journal.exchanges[-1].snapshot is not None
        assert "pending" not in made.journal.exchanges[-1].snapshot, "nothing old passes as fresh"


def test_the_same_seed_makes_the_same_weather(tmp_path: Path) -> None:
    feeds, snapshots = [], []
    for name in ("one", "other"):
        with weather(tmp_path / name, TOGETHER) as made:
            made.run(6)
            feeds.append(made.journal.feed)
            snapshots.append([each.snapshot for each in made.journal.exchanges])
    assert feeds[0] == feeds[1]
    assert snapshots[0] == snapshots[1]


# --- These verdicts are only meaningful if a broken follower is detected --------------------


@pytest.mark.heavy
def test_a_follower_that_drops_nothing_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CommitBuilder, "drop", lambda *_: None)
    with weather(tmp_path, {"restart": 0.3}) as made:
        made.run(SECONDS)
        assert {Kind.DROPPED, Kind.PIN} & made.judge()[0].kinds()


@pytest.mark.heavy
def test_a_follower_that_lets_nothing_expire_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_view, "expired", lambda snapshot: snapshot)
    with weather(tmp_path, {"drop": 0.1}, canonical=False) as made:
        made.run(SECONDS)
        assert Kind.EXPIRED in made.judge()[0].kinds()


@pytest.mark.heavy
def test_a_follower_that_believes_what_it_hears_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execution, "judge", lambda *_: Applied())
    with weather(tmp_path, {"equivocate": 0.5}) as made:
        made.run(SECONDS)
        assert Kind.UNKNOWN in made.judge()[0].kinds()
