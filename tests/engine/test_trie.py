"""The state trie at the head, and incremental list roots."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from foreblock._engine import Overlay, Store, keccak256
from foreblock.errors import InvalidArgument, StoreClosed
from support.payloads.small_store import (
    ALICE,
    BOB,
    CONTRACT,
    Edit,
    append,
    balance,
    changes,
    nothing,
    word,
)

EMPTY_ROOT = "56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(str(tmp_path / "store"), write=True) as store:
        yield store


def root_from_scratch(path: Path, overlay: Overlay) -> bytes:
    with Store(str(path), write=True) as store:
        batch = store.batch()
        batch.append(0, word(0), overlay.take(batch.draw()))
        store.commit(batch)
        return store.trie().root()


def test_root_of_an_empty_store_is_the_known_one(store: Store) -> None:
    trie = store.trie()
    assert trie.root().hex() == EMPTY_ROOT
    assert trie.storage_root(ALICE).hex() == EMPTY_ROOT
    append(store)
    assert store.trie().root().hex() == EMPTY_ROOT


def test_root_of_one_account_is_the_hash_of_its_leaf(store: Store) -> None:
    """The trie of one account is one leaf: the hash of a list of its path and its account."""
    append(store, balance(ALICE, 10**9))
    storage, code = bytes.fromhex(EMPTY_ROOT), keccak256(b"")
    account = b"\xf8\x48" + b"\x80" + b"\x84" + (10**9).to_bytes(4) + b"\xa0" + storage
    account += b"\xa0" + code
    path = b"\xa1\x20" + keccak256(ALICE)
    payload = path + b"\xb8" + bytes([len(account)]) + account
    leaf = b"\xf8" + bytes([len(payload)]) + payload
    assert store.trie().root() == keccak256(leaf)


def test_trie_takes_in_changes_block_by_block(store: Store, tmp_path: Path) -> None:
    def first(overlay: Overlay) -> None:
        overlay.set(CONTRACT, nonce=1, state={slot: slot for slot in range(1, 30)})
        overlay.set(ALICE, balance=5)

    def second(overlay: Overlay) -> None:
        overlay.set(CONTRACT, state_diff=dict.fromkeys(range(1, 29), 0))
        overlay.set(BOB, balance=6)

    append(store, first)
    trie = store.trie()
    assert trie.root() == root_from_scratch(tmp_path / "a", edited(first))
    batch = store.batch()
    changed = changes(store, batch, second)
    trie.apply(changed)
    expected = root_from_scratch(tmp_path / "b", edited(first, second))
    assert trie.root() == expected
    # One slot remains, so the storage trie is one leaf as well.
    leaf = b"\xe3\xa1\x20" + keccak256(word(29)) + b"\x1d"
    assert trie.storage_root(CONTRACT) == keccak256(leaf)
    assert trie.storage_root(ALICE).hex() == EMPTY_ROOT
    nodes = trie.take()
    assert nodes
    assert not trie.take(), "taken once"
    batch.append(1, word(1), changed, nodes)
    batch.fold_all()
    assert store.commit(batch).nodes == 1
    assert store.trie().root() == expected


def edited(*edits: Edit) -> Overlay:
    overlay = Overlay.empty()
    for edit in edits:
        edit(overlay)
    return overlay


def test_nodes_of_a_sealed_partial_are_named_with_their_block(store: Store) -> None:
    append(store, balance(ALICE, 1))
    batch = store.batch()
    changed = changes(store, batch, balance(ALICE, 2))
    number = batch.extend(1, 0, word(10), changed, on_block=0)
    store.commit(batch)
    trie = store.trie()
    trie.apply(changed)
    root = trie.root()
    batch = store.batch()
    nodes = trie.take()
    assert nodes is not None
    batch.seal(number, word(1), (1, nodes))
    store.commit(batch)
    while store.maintain(1):
        pass
    with store.view() as view:
        assert view.heads.nodes == 1
    assert store.trie().root() == root


def test_root_is_the_same_whether_nodes_were_kept_or_not(store: Store) -> None:
    for block in range(5):
        append(store, balance(ALICE, block + 1))
    root = store.trie().root()
    store.maintain(1)
    path = store.path
    store.close()
    with Store(path, write=True) as reopened:
        assert reopened.trie().root() == root
        while reopened.maintain(2):
            assert reopened.trie().root() == root
        batch = reopened.batch()
        batch.rewind(2)
        reopened.commit(batch)
        at_two = reopened.trie().root()
    assert at_two != root


def test_trie_of_a_closed_store_is_closed(store: Store) -> None:
    append(store, nothing)
    store.close()
    with pytest.raises(StoreClosed):
        store.trie()


def test_storage_root_needs_an_address(store: Store) -> None:
    with pytest.raises(InvalidArgument, match="20 bytes, not 32"):
        store.trie().storage_root(bytes(32))
