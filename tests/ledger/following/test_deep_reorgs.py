"""Reorgs deeper than the retention of trie nodes.

States are kept for longer than nodes. A branch within the retention of states is followed; a deeper
one is rejected with the reason. `FOREBLOCK_REORG` sets a separate depth, with the default
retention.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.chains.following import Following, Truth

DEPTH = int(os.environ.get("FOREBLOCK_REORG", "0"))
REPLACED = DEPTH or 24
KEPT = {} if DEPTH else {"keep_nodes": 4}
FORK = 3


@pytest.fixture
def truth(tmp_path: Path) -> Iterator[Truth]:
    truth = Truth(tmp_path / "truth")
    yield truth
    truth.close()


def check(truth: Truth, following: Following) -> None:
    """Compare the chain with the sequencer's, including all states and roots."""
    assert following.latest == truth.latest.number
    with following.store.view() as view:
        for header in truth.headers:
            sealed = view.sealed(header.number)
            assert sealed is not None
            assert sealed[0] == header.hash
            if header.number >= view.heads.earliest:
                assert view.state(header.number).trie(rebuild=True).root() == header.state_root
    assert following.store.trie().root() == truth.latest.state_root


@pytest.mark.parametrize("at_once", [True, False])
def test_a_branch_below_the_kept_nodes_is_followed(
    truth: Truth, tmp_path: Path, at_once: bool
) -> None:
    following = Following(tmp_path / "followed", kept=KEPT)
    shared = truth.grow(FORK, "both")
    ours = truth.grow(REPLACED, "ours")
    truth.rewind(FORK)
    theirs = truth.grow(REPLACED + 2, "theirs")
    following.canonical(*shared, *ours)
    assert following.latest == FORK + REPLACED
    commits = following.commits

    if at_once:
        following.follower.canonical(theirs[0], theirs[1:])
        assert following.commits == commits + 1, "readers see one chain or the other"
        following.run_until_idle()
    else:
        following.canonical(*theirs)
    check(truth, following)
    assert following.counted("Reorg") == 1

    # The stored data suffices to continue, also from messages.
    following.reopen()
    job = truth.job("next", [[], [(1, 8)]])
    following.hear(*job.messages)
    assert following.pending == (truth.latest.number + 1, 1)
    truth.seal(job)
    following.canonical(truth.blocks[truth.latest.number])
    check(truth, following)
    following.close()


def test_a_branch_below_the_kept_states_is_refused_with_the_reason(
    truth: Truth, tmp_path: Path
) -> None:
    kept = {"keep_nodes": 2, "keep_partials": 2, "keep_states": 6}
    following = Following(tmp_path / "followed", kept=kept)
    shared = truth.grow(FORK, "both")
    ours = truth.grow(10, "ours")
    following.canonical(*shared, *ours)
    latest = following.sealed(FORK + 10)
    truth.rewind(FORK)
    theirs = truth.grow(12, "theirs")
    following.follower.canonical(theirs[0], theirs[1:])
    assert following.follower.last_error == (
        f"canonical: block {FORK} is needed, and its state is not kept"
    )
    assert following.sealed(FORK + 10) == latest == ours[-1].hash
    assert following.counted("Failed") == 0
    following.close()
