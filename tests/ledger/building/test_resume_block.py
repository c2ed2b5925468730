"""An unfinished block continues after a restart without any difference."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from foreblock._engine import Batch, Heads, Store, Transaction
from foreblock.errors import DiskFull
from foreblock.ledger.building.ledger_writer import LedgerWriter
from foreblock.ledger.storage import partial_rows
from foreblock.types import Flashblock
from support.chains.writing import ETHER, FACTORY, MAKES_MORTAL, MORTAL, PASSER, SCRIBE, Chain

INDICES = 9


def script(chain: Chain, index: int) -> Flashblock:
    """The flashblock of this index of a deterministic chain."""
    if index == 0:
        return chain.add(chain.deposit(mint=ETHER))
    if index % INDICES in (0, 5):
        return chain.seal(chain.deposit(PASSER, data=index.to_bytes(32) * 2))
    return chain.add(*transactions(chain, index))


def transactions(chain: Chain, index: int) -> list[Transaction]:
    """The transactions of an index, often none."""
    match index % INDICES:
        case 1:
            return [chain.signed(), chain.write(SCRIBE, index, 1, who=1)]
        case 2:
            return [chain.signed(0, FACTORY, 0, MAKES_MORTAL), chain.signed(2, MORTAL)]
        case 4:
            return [chain.write(MORTAL, 1, index), chain.write(PASSER, index, 1, who=1)]
        case 6 | 8:
            return [chain.write(SCRIBE, 1, 0), chain.signed(1, None, 0, MAKES_MORTAL)]
        case _:
            return []


def run(chain: Chain, before: Callable[[int], None]) -> list[Flashblock]:
    """Run two rounds of the script, with a hook before each index."""
    flashblocks = []
    for index in range(2 * INDICES):
        before(index)
        flashblocks.append(script(chain, index))
    return flashblocks


@pytest.fixture
def uninterrupted(tmp_path: Path) -> list[Flashblock]:
    return run(Chain(tmp_path / "uninterrupted"), lambda _: None)


def test_there_is_no_open_block_in_a_new_store(tmp_path: Path) -> None:
    chain = Chain(tmp_path / "store")
    assert chain.writer.open_block() is None


@pytest.mark.parametrize("behind", [0, 1, 2, 100])
def test_writer_that_starts_anew_at_every_index_announces_the_same(
    tmp_path: Path, uninterrupted: list[Flashblock], behind: int
) -> None:
    """Announce the same with any amount of roots, folding and pruning before each end."""
    chain = Chain(tmp_path / "store")

    def restart(_: int) -> None:
        for _ in range(behind):
            chain.writer.follow_up()
        chain.reopen()

    assert run(chain, restart) == uninterrupted


@pytest.mark.parametrize("at", range(2 * INDICES))
def test_writer_that_ends_once_announces_the_same(
    tmp_path: Path, uninterrupted: list[Flashblock], at: int
) -> None:
    chain = Chain(tmp_path / "store")

    def restart(index: int) -> None:
        if index == at:
            chain.reopen()
        elif index % 3:
            chain.run_until_idle()

    assert run(chain, restart) == uninterrupted


def test_transactions_of_an_index_that_was_not_committed_are_not_in_the_block(
    tmp_path: Path,
) -> None:
    chain = Chain(tmp_path / "store")
    chain.add(chain.deposit())
    lost = chain.signed()
    chain.block.run([lost])
    assert chain.block.open_count == 1
    chain.reopen()
    assert (chain.block.open_count, chain.block.count, chain.block.index) == (0, 1, 1)
    assert chain.add(lost).diff.transactions == (lost.raw,)


def test_open_block_is_the_same_block(tmp_path: Path) -> None:
    chain = Chain(tmp_path / "store")
    chain.add(chain.deposit(), chain.write(SCRIBE, 1, 2))
    chain.add(chain.write(PASSER, 1, 2))
    before = chain.block
    facts = (before.base, before.payload_id, before.parent, before.partials, before.header)
    progress = (before.index, before.count, before.gas_used, before.da_footprint)
    del before  # it keeps the store open
    chain.reopen()
    after = chain.block
    assert (after.base, after.payload_id, after.parent, after.partials, after.header) == facts
    assert (after.index, after.count, after.gas_used, after.da_footprint) == progress


class FullDisk:
    """A store with a switch that makes its disk full."""

    def __init__(self, store: Store) -> None:
        self.full = False
        self._store = store

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - all that a store has
        return getattr(self._store, name)

    def commit(self, batch: Batch) -> Heads:
        if self.full:
            raise DiskFull("no space left")
        return self._store.commit(batch)


@pytest.mark.parametrize("sealing", [False, True])
def test_block_whose_commit_failed_is_given_back_as_of_its_last(
    tmp_path: Path, *, sealing: bool
) -> None:
    chain, expected = Chain(tmp_path / "store"), Chain(tmp_path / "other")
    disk = FullDisk(chain.store)
    chain.writer = LedgerWriter(cast("Store", disk), chain.clock)
    for each in (chain, expected):
        each.add(each.deposit())
    chain.block.run([chain.signed()])
    disk.full = True
    with pytest.raises(DiskFull):
        chain.seal() if sealing else chain.add()
    disk.full = False
    chain.resume_block()
    assert chain.block.open_count == 0
    assert chain.add(chain.write(PASSER, 1, 2)) == expected.add(expected.write(PASSER, 1, 2))
    assert chain.seal() == expected.seal()


def test_what_a_partial_would_seal_as_is_computed_again_if_it_was_not_stored(
    tmp_path: Path,
) -> None:
    chain = Chain(tmp_path / "store")
    chain.add(chain.deposit())
    chain.run_until_idle()
    sealed = chain.writer.header_if_sealed(chain.block)
    chain.reopen()
    with chain.store.view() as view:
        key = partial_rows.seals_as_key(1, chain.block.partials[-1])
        assert view.row(key) is None
    assert chain.writer.header_if_sealed(chain.block) == sealed
    partial = chain.block.partials[-1]
    chain.seal()
    with chain.store.view() as view:
        row = view.row(partial_rows.seals_as_key(1, partial))
        assert row is not None
        assert partial_rows.decode_seals_as(row) == (sealed.state_root, sealed.hash)
