"""Undamaged stores of every kind pass the check, in any phase of their work."""

import threading
from pathlib import Path

import pytest

from conftest import ChainFiles
from foreblock.bus.commands import Revert, Rollback, TakeSnapshot
from foreblock.errors import StoreMissing
from foreblock.ledger.checking.block_check import Damage
from foreblock.ledger.checking.check_store import Checked, check_store, check_view
from foreblock.ledger.storage.section_index import read_indexed
from support.chains.checked_chains import busy_chain, run_blocks
from support.chains.dev_chain import DevChain
from support.chains.importing import import_bytes
from support.chains.writing import SCRIBE, Chain
from support.servers.dev_processes import dev_chain


def ignore_progress(_part: str, _done: int, _total: int) -> None:
    """Ignore progress reports."""


def checked(chain: DevChain | Chain) -> Checked:
    """Check the last commit of a chain that is being written; expect no damage."""
    found: list[Damage] = []
    with chain.store.view() as view:
        result = check_view(view, found.append, ignore_progress)
    assert found == []
    return result


@pytest.mark.parametrize("address_index", [False, True])
def test_an_imported_chain_has_none(
    published: ChainFiles, tmp_path: Path, *, address_index: bool
) -> None:
    files = published
    import_bytes(
        tmp_path / "store",
        files.genesis.read_bytes(),
        files.chain.read_bytes(),
        address_index=address_index,
    )
    found: list[Damage] = []
    parts: dict[str, tuple[int, int]] = {}

    def report(part: str, done: int, total: int) -> None:
        parts[part] = (done, total)

    result = check_store(str(tmp_path / "store"), found.append, report)
    assert found == []
    assert (result.blocks, result.transactions, result.damages) == (55, 249, 0)
    engine = ["heads", "codes", "entries", "changes", "nodes", "state", "history"]
    assert list(parts) == ["blocks", "index", *engine]
    assert parts["blocks"] == (55, 55)
    assert parts["history"] == (55, 55)


def test_a_dev_chain_has_none_at_any_moment(tmp_path: Path) -> None:
    chain = busy_chain(tmp_path / "store")
    snapshot = chain.execute(TakeSnapshot())
    for step in range(6):
        run_blocks(chain, 3)
        chain.run(500)  # into the next block
        checked(chain)
        if step == 2:
            chain.execute(Rollback(2))
            checked(chain)
        if step == 3:
            assert chain.execute(Revert(snapshot))
            checked(chain)
    with chain.store.view() as view:
        assert view.heads.earliest > 0
        assert read_indexed(view).end > 0


def test_a_chain_with_deposits_and_reorganisations_has_none(tmp_path: Path) -> None:
    chain = Chain(tmp_path / "store", keep_partials=2)
    for number in range(1, 7):
        chain.add(chain.deposit(mint=number), chain.write(SCRIBE, number, number))
        checked(chain)
        chain.seal(chain.write(SCRIBE, 1, number, who=1))
        checked(chain)
        chain.run_until_idle()
        checked(chain)
    chain.rewind(2)
    checked(chain)
    chain.reopen()
    chain.add(chain.write(SCRIBE, 3, 0))
    chain.seal()
    assert checked(chain).blocks == 6


def test_a_chain_that_is_written_meanwhile_changes_nothing(tmp_path: Path) -> None:
    chain = busy_chain(tmp_path / "store")
    found: list[Damage] = []
    commits = [0]

    def write(_part: str, _done: int, _total: int) -> None:
        chain.run(700)
        with chain.store.view() as view:
            commits.append(view.heads.commit)

    with chain.store.view() as view:
        before = view.heads.commit
        result = check_view(view, found.append, write)
    assert found == []
    assert result.heads.commit == before < commits[-1] - 50


def test_the_store_of_a_running_service_has_none(tmp_path: Path) -> None:
    """Another process writes it, at its own pace."""
    data = tmp_path / "data"
    options = ("--load", "40", "--keep-states", "8", "--keep-partials", "2", "--keep-nodes", "3")
    with dev_chain("--data", str(data), "--block-time", "1", *options) as dev:
        for round_ in range(1, 5):
            dev.main.ask("anvil_mine", "0x3")
            found: list[Damage] = []
            result = check_store(str(data / "main"), found.append, ignore_progress)
            assert found == []
            assert result.heads.latest is not None
            assert result.heads.latest[0] >= 3 * round_


@pytest.mark.parametrize("part", ["blocks", "entries", "history"])
def test_an_interruption_ends_it(tmp_path: Path, part: str) -> None:
    chain = busy_chain(tmp_path / "store")
    threads = threading.active_count()

    def interrupt(running: str, _done: int, _total: int) -> None:
        if running == part:
            raise KeyboardInterrupt

    found: list[Damage] = []
    with chain.store.view() as view, pytest.raises(KeyboardInterrupt):
        check_view(view, found.append, interrupt)
    assert threading.active_count() == threads


def test_a_store_that_is_not_there_is_no_damage(tmp_path: Path) -> None:
    found: list[Damage] = []
    with pytest.raises(StoreMissing):
        check_store(str(tmp_path), found.append, ignore_progress)
