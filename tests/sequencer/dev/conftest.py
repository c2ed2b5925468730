"""Dev chains mined per transaction, and on command."""

from pathlib import Path

import pytest

from support.chains.dev_chain import DevChain


@pytest.fixture
def auto(tmp_path: Path) -> DevChain:
    """Mined per transaction."""
    return DevChain(tmp_path / "store", mining="automine")


@pytest.fixture
def manual(tmp_path: Path) -> DevChain:
    """Mined on command."""
    return DevChain(tmp_path / "store", mining="manual")
