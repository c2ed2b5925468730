"""The measure of index commits still runs: short, and with both variants."""

import pytest

from measures.index_commits import measure


@pytest.mark.parametrize("kept", [None, "logs"])
def test_commits_are_measured(kept: str | None) -> None:
    commit, behind, kilobytes, in_all = measure(2, 3, "logs", kept)
    assert commit > 0
    assert behind > 0
    assert kilobytes > 0
    assert in_all >= commit
