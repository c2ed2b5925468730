"""The writer of a followed chain, killed around its commits and at any moment.

The store then has the last commit that returned, or the one in progress, and nothing else; it
continues from there, lost messages are replaced by the canonical source, and no client sees a
partial commit, or an older commit after a newer one.

`FOREBLOCK_FOLLOWER_KILLS` sets the number of kills; `make check NAME=crash` uses many.
"""

import argparse
import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from crash.following_life import Heads, Life, around_commits, heads, hear, life
from support.chains.following import Following
from support.each_case import sampled
from support.payloads.ledger_state import root_from_scratch
from weather.faults import RESTARTED
from weather.phase import Phase, run

KILLS = int(os.environ.get("FOREBLOCK_FOLLOWER_KILLS", "3"))
TESTS = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def whole() -> Life:
    return life()


@pytest.fixture(scope="module")
def states(whole: Life, tmp_path_factory: pytest.TempPathFactory) -> list[Heads]:
    """The states of an uninterrupted follower: at its start, and after each commit."""
    following = Following(tmp_path_factory.mktemp("undisturbed") / "store")
    found = [heads(following)]
    around_commits(following, lambda _: None, lambda _: found.append(heads(following)))
    for event in whole.events:
        hear(following, event)
    following.close()
    assert found[-1].latest == (5, whole.blocks[-1].hash)
    return found


def follow_until_killed(folder: Path, point: str, count: int) -> int:
    """The event during which it was killed."""
    path = os.pathsep.join([str(TESTS), str(TESTS.parent / "python")])
    done = subprocess.run(
        [sys.executable, "-m", "crash.following_life", str(folder), point, str(count)],
        env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL, done.stderr
    return int(done.stdout.split()[-1])


def counts(states: list[Heads]) -> Iterator[int]:
    """A sample of commits, spread over the run."""
    step = max((len(states) - 1) // KILLS, 1)
    return iter(range(1, len(states), step))


@pytest.mark.parametrize("point", sampled(["before", "after"], 1))
def test_a_kill_around_a_commit_leaves_the_commit_before_it_or_it_whole(
    whole: Life, states: list[Heads], tmp_path: Path, point: str
) -> None:
    assert len(states) > 25, "there is much to be killed"
    for count in counts(states):
        folder = tmp_path / str(count)
        event = follow_until_killed(folder / "store", point, count)
        following = Following(folder / "store")
        expected = states[count - 1 if point == "before" else count]
        assert heads(following) == expected
        check_pending(following, whole, folder)
        check_goes_on(following, whole, event, expected)
        following.close()


def check_pending(following: Following, whole: Life, folder: Path) -> None:
    """Check the pending state: its root, computed from scratch, equals the known one."""
    with following.store.view() as view:
        number = view.heads.pending
        partial = None if number is None else view.partial(number)
        if number is not None and partial is not None and partial.status == "live":
            root = root_from_scratch(folder / "root", view.state_of_partial(number))
            assert root == whole.roots[partial.hash]


def check_goes_on(following: Following, whole: Life, event: int, left: Heads) -> None:
    """Check that later events are processed, lost ones replaced, and that numbers only grow."""
    numbers = [left.commit]
    around_commits(following, lambda _: None, lambda _: numbers.append(heads(following).commit))
    for each in whole.events[event + 1 :]:
        hear(following, each)
    for block in whole.blocks:
        hear(following, block)
    assert following.sealed(5) == whole.blocks[-1].hash
    assert [following.sealed(each.header.number) for each in whole.blocks] == [
        each.hash for each in whole.blocks
    ]
    assert all(before < after for before, after in itertools.pairwise(numbers))


@pytest.mark.heavy
def test_no_client_of_a_follower_sees_a_half_or_an_older_commit_however_often_it_is_killed(
    tmp_path: Path,
) -> None:
    phase = Phase("kills", {}, RESTARTED, kills=KILLS)
    options = argparse.Namespace(minutes=0, seed=0, tps=40, clients=2, rate=8)
    outcome = run(phase, tmp_path, options)
    complaints = outcome.complaints(at_any_speed=True)
    assert complaints == [], "\n".join(map(str, outcome.verdict.contradictions[:3]))
    assert outcome.verdict.judged.total() > 10 * KILLS
