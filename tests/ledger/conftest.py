"""What tests share: a chain that is sequenced, a follower of it, and indices in small sections."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from foreblock.ledger.storage import section_index, section_indexing
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


@pytest.fixture
def small_sections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Indices whose sections are so small that a few blocks fill and merge all sizes."""
    for module in (section_index, section_indexing):
        monkeypatch.setattr(module, "SIZES", (2, 4, 8))
    monkeypatch.setattr(section_indexing, "MERGE_DISTANCE", (0, 1, 2))
    monkeypatch.setattr(section_indexing, "NOTED_BLOCKS", 4)
    monkeypatch.setattr(section_indexing, "MERGED_ENTRIES", 1)
    monkeypatch.setattr(section_indexing, "DELETED_ROWS", 2)
