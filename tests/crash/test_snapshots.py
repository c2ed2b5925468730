"""Views beside a busy writer each see one commit. `make check NAME=abuse` runs it for minutes."""

from pathlib import Path

import pytest

from abuse.snapshots import race


def test_views_of_preempted_readers_are_of_one_commit(
    monkeypatch: pytest.MonkeyPatch, checkout: Path
) -> None:
    monkeypatch.setenv("PYTHONPATH", f"{checkout / 'python'}:{checkout / 'tests'}")
    seen = race(seconds=1.5, readers=4)
    assert seen.views > 0
    assert seen.mixed == 0
