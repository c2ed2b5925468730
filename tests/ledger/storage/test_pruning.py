"""Rows of old partial blocks are pruned, the bodies of sealed blocks stay."""

from pathlib import Path

import pytest

from foreblock._engine import View
from foreblock.ledger.storage import partial_rows, rows
from foreblock.ledger.storage.partial_rows import (
    by_hash_key,
    by_position_key,
    decode_numbers,
    decode_partial_row,
    made_of_key,
    partial_key,
)
from foreblock.ledger.storage.upkeep import prunable
from support.chains.writing import Chain

KEPT = 3
BODY = (
    partial_rows.transactions_key,
    partial_rows.senders_key,
    partial_rows.receipts_key,
)


@pytest.fixture
def chain(tmp_path: Path) -> Chain:
    return Chain(tmp_path / "store", keep_partials=KEPT)


def grow(chain: Chain, blocks: int) -> None:
    """Add this many blocks of three indices; the last call begins the next block."""
    if chain.block.index == 0:
        chain.add(chain.deposit())
    for _ in range(blocks):
        chain.add(chain.signed(), chain.signed(1))
        chain.add()
        chain.seal(chain.deposit())
        chain.run_until_idle()
    chain.add()
    chain.run_until_idle()


def present(view: View, *keys: bytes) -> list[bool]:
    return [view.row(key) is not None for key in keys]


def made_of(view: View, block: int) -> tuple[int, ...]:
    row = view.row(made_of_key(block))
    assert row is not None
    return decode_numbers(row)


def test_rows_beyond_retention_go_and_bodies_stay(chain: Chain) -> None:
    with chain.store.view() as view:
        assert prunable(view, 10, 1) == [], "there is nothing yet"
    grow(chain, 1)
    with chain.store.view() as view:
        partials = made_of(view, 1)
        row = view.row(partial_key(1, partials[-1]))
        assert row is not None
        partial_hash = decode_partial_row(row).header.hash
        body = [view.row(key(1, partial)) for partial in partials for key in BODY]
        heads = [partial_key(1, partial) for partial in partials]
        seals = [partial_rows.seals_as_key(1, partial) for partial in partials]
        places = [by_position_key(1, index) for index in range(3)]
        gone = [*heads, *seals, *places, by_hash_key(partial_hash)]
        assert all(present(view, *gone)), "nothing is gone yet"
        sealed = view.sealed(1)
        assert sealed is not None
    grow(chain, KEPT + 1)
    with chain.store.view() as view:
        assert not any(present(view, *gone))
        assert made_of(view, 1) == partials
        assert [view.row(key(1, partial)) for partial in partials for key in BODY] == body
        assert all(present(view, by_hash_key(sealed[0]), rows.header_key(1)))


def test_partials_within_retention_keep_all_their_rows(chain: Chain) -> None:
    grow(chain, 2 * KEPT)
    latest = chain.writer.latest.number
    with chain.store.view() as view:
        for block in range(1, latest + 1):
            kept = block >= latest - KEPT
            for index, partial in enumerate(made_of(view, block)):
                keys = partial_key(block, partial), by_position_key(block, index)
                assert present(view, *keys) == [kept, kept]
        assert prunable(view, latest - KEPT, 1) == []


def test_rows_of_a_dropped_partial_vanish_with_its_height(chain: Chain) -> None:
    """A block begun with one job and sealed with another leaves nothing of the first."""
    chain.add(chain.deposit())
    dropped = chain.add(chain.signed())
    lost = chain.block.partials
    chain.drop_block()
    grow(chain, 1)
    with chain.store.view() as view:
        assert all(present(view, *(key(1, each) for each in lost for key in BODY)))
        assert present(view, by_hash_key(dropped.diff.block_hash)) == [True]
    grow(chain, KEPT + 1)
    with chain.store.view() as view:
        every = [partial_rows.partial_of_key(key) for key, _ in view.rows(b"p", 10_000)]
        assert not set(lost) & {partial for partial, _ in every}
        assert present(view, by_hash_key(dropped.diff.block_hash)) == [False]
        assert view.rows(partial_rows.positions_prefix(1), 10) == []


def test_hash_that_a_later_job_has_again_means_the_live_partial(chain: Chain) -> None:
    deposit = chain.deposit()
    first = chain.add(deposit)
    chain.drop_block()
    second = chain.add(deposit)
    assert first.diff.block_hash == second.diff.block_hash
    with chain.store.view() as view:
        row = view.row(by_hash_key(first.diff.block_hash))
        assert row is not None
        assert partial_rows.decode_by_hash(row) == (1, chain.block.partials[0])


def test_pruning_goes_on_after_a_restart_and_with_another_retention(tmp_path: Path) -> None:
    chain = Chain(tmp_path / "store", keep_partials=20)
    grow(chain, 8)
    chain.options["keep_partials"] = 1
    chain.reopen()
    for _ in range(8):
        chain.add()
        chain.run_until_idle()
    with chain.store.view() as view:
        lowest, _ = view.rows(partial_rows.positions_prefix(), 1)[0]
        assert partial_rows.position_of_key(lowest) == (chain.writer.latest.number - 1, 0)


def test_rows_that_are_no_bodies_stop_growing(chain: Chain) -> None:
    """Only the body remains per block; the number of other rows is bounded."""
    counts = []
    for _ in range(4):
        grow(chain, 2 * KEPT)
        with chain.store.view() as view:
            every = view.rows(b"p", 100_000)
            others = [key for key, _ in every if partial_rows.partial_of_key(key)[1] in b"hw"]
            counts.append((len(others), len(view.rows(b"P", 100_000))))
    assert counts[1:] == [counts[1]] * 3
