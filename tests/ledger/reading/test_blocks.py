"""Values of blocks are kept, and not without bounds."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from foreblock.ledger.reading import blocks as known_blocks
from foreblock.ledger.reading.blocks import KnownBlocks
from support.chains.preconfirming import PreconfirmingChain


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[PreconfirmingChain]:
    """Two sealed blocks above genesis, of two indices each."""
    found = PreconfirmingChain(tmp_path / "store")
    for _ in range(3):
        found.begin()
        found.extend([found.pay()])
    yield found
    found.close()


def test_values_of_blocks_are_kept_within_bounds(
    chain: PreconfirmingChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_blocks, "KEPT_BLOCKS", 2)
    known = KnownBlocks(chain.writer.profile)
    with chain.store.view() as view:
        for number in (0, 1, 2, 1, 0):
            sealed = view.sealed(number)
            assert sealed is not None
            block = known.sealed(view, number, sealed[0])
            assert (block.number, block.hash) == (number, sealed[0])
            assert known.sealed(view, number, sealed[0]) is block
            assert len(known._sealed) <= 2
        assert view.heads.pending is not None
        for partial in range(1, view.heads.pending + 1):
            if view.partial(partial) is not None:
                found = known.partial(view, partial)
                assert found.partial == partial
                assert known.partial(view, partial) is found
                assert len(known._partial) <= 2
