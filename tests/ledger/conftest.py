"""Shared fixtures: a sequenced chain, its follower, and indices with small sections."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from foreblock.ledger.storage import section_index
from support.chains.following import Following, Truth


@pytest.fixture
def truth(tmp_path: Path) -> Iterator[Truth]:
    """The chain, built by the test."""
    truth = Truth(tmp_path / "truth")
    yield truth
    truth.close()


@pytest.fixture
def following(tmp_path: Path) -> Iterator[Following]:
    """A follower without any messages yet."""
    following = Following(tmp_path / "followed")
    yield following
    following.close()


@pytest.fixture
def small_sections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Indices with sections so small that a few blocks fill and merge all sizes."""
    monkeypatch.setattr(section_index, "SIZES", (2, 4, 8))
    monkeypatch.setattr(section_index, "MERGE_DISTANCE", (0, 1, 2))
    monkeypatch.setattr(section_index, "NOTED_BLOCKS", 4)
    monkeypatch.setattr(section_index, "MERGED_ENTRIES", 1)
    monkeypatch.setattr(section_index, "DELETED_ROWS", 2)
