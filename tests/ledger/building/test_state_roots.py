"""Consecutive roots, each equal to that of its partial block, regardless of the order of
requests.
"""

from pathlib import Path

from foreblock._engine import Header, Overlay, Store
from foreblock.ledger.building.parent_state import StateRoots
from support.payloads.small_store import ALICE, BOB, CONTRACT, append

HEADER = Header(
    parent_hash=bytes(32),
    beneficiary=bytes(20),
    state_root=bytes(32),
    number=1,
    gas_limit=1,
    timestamp=1,
)


def roots_from_scratch(folder: Path, steps: int) -> list[bytes]:
    """The roots of the first states made by `edit`, each built from scratch."""
    found = []
    for count in range(1, steps + 1):
        overlay = Overlay.empty()
        overlay.set(ALICE, balance=1)
        for step in range(count):
            edit(overlay, step)
        with Store(str(folder / f"{count}"), write=True) as store:
            batch = store.batch()
            batch.append(0, bytes(32), overlay.take(batch.draw()))
            store.commit(batch)
            found.append(store.trie().root())
    return found


def edit(overlay: Overlay, step: int) -> None:
    overlay.set(BOB, balance=step + 1)
    overlay.set(CONTRACT, nonce=1, state_diff={step: step + 1, 0: step})


def prepared(store: Store, steps: int) -> tuple[StateRoots, list[str]]:
    """Roots that have absorbed this many partial blocks, and the number of openings of
    their trie.
    """
    append(store, lambda overlay: overlay.set(ALICE, balance=1))
    opened: list[str] = []

    def open_trie() -> object:
        opened.append("trie")
        return store.trie()

    roots = StateRoots(open_trie)  # type: ignore[arg-type]
    with store.view() as view:
        overlay = view.state(0).overlay()
        number = store.batch().next
        for step in range(steps):
            edit(overlay, step)
            roots.take_in(overlay.take(number))
            roots.add(100 + step, HEADER.replace(gas_used=step))
    return roots, opened


def test_each_partial_has_its_own_root(tmp_path: Path) -> None:
    with Store(str(tmp_path / "store"), write=True) as store:
        roots, opened = prepared(store, 4)
        assert opened == [], "nothing is read before a request"
        seen = []
        while roots.step():
            seen.append(roots.last)
        found = [(each.partial, each.header.gas_used) for each in seen if each is not None]
        assert found == [(100 + step, step) for step in range(4)]
        expected = roots_from_scratch(tmp_path, 4)
        assert [each.header.state_root for each in seen if each is not None] == expected
        assert roots.take_new() == seen
        assert roots.take_new() == []


def test_a_block_that_ends_asks_for_its_last_root_only(tmp_path: Path) -> None:
    with Store(str(tmp_path / "store"), write=True) as store:
        roots, _ = prepared(store, 3)
        header = roots.end()
        assert header == HEADER.replace(gas_used=2, state_root=roots_from_scratch(tmp_path, 3)[-1])
        assert [each.partial for each in roots.take_new()] == [102]
        assert roots.end() == header


def test_storage_root_does_not_skip_the_roots_that_are_waiting(tmp_path: Path) -> None:
    with Store(str(tmp_path / "store"), write=True) as store:
        roots, _ = prepared(store, 3)
        root = roots.storage_root(CONTRACT)
        expected = roots_from_scratch(tmp_path, 3)
        assert [each.header.state_root for each in roots.take_new()] == expected
        assert root == roots.storage_root(CONTRACT)
        assert not roots.step()


def test_another_trie_takes_in_everything_again(tmp_path: Path) -> None:
    with Store(str(tmp_path / "store"), write=True) as store:
        roots, opened = prepared(store, 3)
        assert roots.step()
        roots.restart(store.trie)
        roots.catch_up()
        assert opened == ["trie"]
        assert roots.last is not None
        assert roots.last.header.state_root == roots_from_scratch(tmp_path, 3)[-1]


def test_nodes_come_from_the_store_only(tmp_path: Path) -> None:
    with Store(str(tmp_path / "store"), write=True) as store:
        roots, _ = prepared(store, 1)
        assert roots.take_nodes() is None, "nothing was computed"
        roots.catch_up()
        nodes = roots.take_nodes()
        assert nodes is not None
        assert len(nodes) > 0
        with store.view() as view:
            branch = StateRoots(view.state(0).trie)
            branch.add(1, HEADER)
            branch.catch_up()
            assert branch.take_nodes() is None
