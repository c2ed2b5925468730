"""Another store under the same name, and the replacement of one that cannot be served."""

import shutil
from pathlib import Path

import pytest

from foreblock._engine import Store
from foreblock.clock import DrivenClock
from foreblock.errors import DifferentGenesis, StoreClosed, StoreMissing, StoreReplaced
from foreblock.ledger.genesis.genesis_file import read_genesis
from foreblock.ledger.reading.availability import AbsentLedger, open_served
from foreblock.ledger.reading.view import Ledger
from foreblock.ledger.storage.open_store import open_to_write
from foreblock.ledger.storage.store_watch import CHECK_EVERY_NS, SeenCommit, StoreWatch
from support.chains.profiles import JOVIAN
from support.chains.writing import genesis

GENESIS = read_genesis(genesis())
OTHER = read_genesis(genesis(JOVIAN | {"chainId": 4242}))


def begin(folder: Path, seen: SeenCommit | None = None) -> Store:
    return open_to_write(str(folder), GENESIS, seen=seen)


def commit(store: Store) -> int:
    return store.commit(store.batch()).commit


def test_a_folder_that_is_moved_or_replaced_is_noticed_within_a_second(tmp_path: Path) -> None:
    clock, seen, folder = DrivenClock(), SeenCommit(), tmp_path / "store"
    with begin(folder) as store:
        watch = StoreWatch(store, seen, clock)
        last = commit(store)
        folder.rename(tmp_path / "away")
        watch.check_if_due()
        assert seen.highest < last, "it is not time yet"
        clock.advance(CHECK_EVERY_NS)
        with pytest.raises(StoreReplaced, match="it was removed"):
            watch.check_if_due()
        assert seen.highest == last, "earlier commits count"
        shutil.copytree(tmp_path / "away", folder)
        with pytest.raises(StoreReplaced, match="another one was put in its place"):
            watch.check()
        shutil.rmtree(folder)
        (tmp_path / "away").rename(folder)
        watch.check()


def test_no_chain_is_begun_where_one_was_served(tmp_path: Path) -> None:
    seen, folder = SeenCommit(), tmp_path / "store"
    begin(folder, seen).close()
    seen.note(5, bytes(32))
    shutil.rmtree(folder)
    with pytest.raises(StoreReplaced, match="it was removed"):
        begin(folder, seen)
    assert not folder.exists()
    begin(folder).close()
    with pytest.raises(StoreReplaced, match="it is at commit 1, and commit 5 was served"):
        begin(folder, seen)


def test_a_store_that_goes_on_may_take_the_place_of_another(tmp_path: Path) -> None:
    seen, folder = SeenCommit(), tmp_path / "store"
    with begin(folder) as store:
        StoreWatch(store, seen, DrivenClock())
        commit(store)
    with begin(folder, seen) as store, store.view() as view:
        assert view.heads.commit > seen.highest
    ledger = open_served(str(folder), seen, announce=True)
    assert isinstance(ledger, Ledger)
    look = ledger.watch(seen)
    look()
    shutil.rmtree(folder)
    with pytest.raises(StoreReplaced):
        look()
    with pytest.raises(StoreClosed):
        ledger.view()


def test_what_was_served_and_cannot_be_says_why_until_it_can(tmp_path: Path) -> None:
    seen, folder = SeenCommit(), tmp_path / "store"
    with pytest.raises(StoreMissing):
        open_served(str(folder), seen, announce=True)
    with begin(folder) as store:
        StoreWatch(store, seen, DrivenClock())
    folder.rename(tmp_path / "away")
    absent = open_served(str(folder), seen, announce=True)
    assert isinstance(absent, AbsentLedger)
    look = absent.watch(seen)
    look()
    with pytest.raises(StoreReplaced, match="no store at"):
        absent.view()
    open_to_write(str(folder), OTHER).close()
    look()
    with pytest.raises(StoreReplaced, match="it holds another chain"):
        absent.view()
    with pytest.raises((StoreReplaced, DifferentGenesis)):
        begin(folder, seen)
    shutil.rmtree(folder)
    (tmp_path / "away").rename(folder)
    with pytest.raises(StoreReplaced, match="it can be served again"):
        look()
