"""What tests of following share: a chain that is sequenced, and a follower of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.chains.following import Following, Truth


@pytest.fixture
def truth(tmp_path: Path) -> Iterator[Truth]:
    """The chain, built as the test likes."""
    truth = Truth(tmp_path / "truth")
    yield truth
    truth.close()


@pytest.fixture
def following(tmp_path: Path) -> Iterator[Following]:
    """A follower that has heard nothing."""
    following = Following(tmp_path / "followed")
    yield following
    following.close()
