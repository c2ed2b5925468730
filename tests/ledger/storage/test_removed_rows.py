"""Rows of removed blocks: written by a rewind, kept as long as partial blocks, then pruned."""

from contextlib import suppress
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from foreblock._engine import Header
from foreblock.errors import StoreDamaged
from foreblock.ledger.building.commit_builder import CommitBuilder
from foreblock.ledger.storage.abandoned_blocks import (
    PLACES,
    PREFIX,
    RemovedRow,
    decode_removed,
    find_removed,
    read_removed,
)
from foreblock.ledger.storage.chain_head import partials_of_sealed
from support.chains.writing import SCRIBE, Chain
from support.each_case import each_case
from support.payloads.headers import MINED


@each_case("partials", [(), (3,), (3, 1 << 60)])
@each_case("whole", [None, (b"", bytes(4)), (b"h" * 64, b"receipts")])
def test_a_row_is_read_as_it_was_written(
    partials: tuple[int, ...], whole: tuple[bytes, bytes] | None
) -> None:
    row = RemovedRow(Header(**MINED), partials, whole)
    assert decode_removed(row.encode()) == row


@given(st.binary(max_size=80), st.integers(0, 700), st.integers(0, 700))
def test_any_other_row_is_read_or_damage(other: bytes, start: int, stop: int) -> None:
    row = RemovedRow(Header(**MINED), (3,), (b"h" * 32, b"receipts")).encode()
    with suppress(StoreDamaged):
        decode_removed(row[:start] + other + row[stop:])
    with suppress(StoreDamaged):
        decode_removed(other)


def grow(chain: Chain, blocks: int) -> None:
    """Seal this many blocks, each with a log."""
    if not chain.block.partials:
        chain.add(chain.deposit())
    for number in range(blocks):
        chain.add(chain.write(SCRIBE, 1, number))
        chain.seal(chain.deposit())
        chain.run_until_idle()


def rewind(chain: Chain, block: int) -> None:
    with CommitBuilder(chain.store) as builder:
        builder.drop(chain.block.partials, "a test gives it up")
        builder.rewind(block)
        builder.commit()
    chain.reopen()


def test_a_rewind_keeps_what_it_removes_and_an_ordinary_commit_nothing(tmp_path: Path) -> None:
    chain = Chain(tmp_path / "store")
    grow(chain, 3)
    with chain.store.view() as view:
        assert view.rows(PREFIX, 9) == []
        blocks = [
            (number, view.sealed(number), partials_of_sealed(view, number)) for number in (1, 2, 3)
        ]
    rewind(chain, 1)
    with chain.store.view() as view:
        for number, sealed, partials in blocks:
            assert sealed is not None
            removed = read_removed(view, number, sealed[0])
            if number == 1:
                assert removed is None
                continue
            assert removed is not None
            assert (removed.header.hash, removed.partials) == (sealed[0], partials)
            assert removed.whole is None
            assert find_removed(view, sealed[0]) == removed
        assert find_removed(view, bytes(32)) is None


def test_removed_blocks_are_pruned_with_the_partials_of_their_height(tmp_path: Path) -> None:
    chain = Chain(tmp_path / "store", keep_partials=4)
    grow(chain, 3)
    rewind(chain, 1)
    with chain.store.view() as view:
        assert len(view.rows(PREFIX, 9)) == 2
    grow(chain, 3)
    with chain.store.view() as view:
        assert len(view.rows(PREFIX, 9)) == 2
    grow(chain, 6)
    with chain.store.view() as view:
        assert view.rows(PREFIX, 9) == []
        assert view.rows(PLACES, 9) == []
