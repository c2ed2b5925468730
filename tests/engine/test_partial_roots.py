"""Roots on a store with a part of its base equal those on a store with all nodes.

Two stores have the same blocks: one has the whole state, the other began at an anchor. The other
one has read every value before it changes it, so the value was proven; missing nodes of a root are
reported, and proofs of the first store after the block suffice. Some blocks are added with a
trusted root, so that their nodes are not known here.
"""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreblock._engine import Changes, FetchedState, Overlay, Proof, StateTrie, Store
from foreblock.errors import MissingNode, MissingTrieNodes
from support.payloads.small_store import Edit, append, changes, word

PEOPLE = [bytes([0xA0 + each]) * 20 for each in range(12)]
ANCHOR = 0

Change = tuple[int, int | None, dict[int, int]]  # account, new balance or None if destroyed, slots
Block = tuple[bool, list[Change]]  # whether its root is computed here, and its changes

slots = st.dictionaries(st.integers(0, 15), st.integers(0, 2), max_size=6)
change = st.tuples(st.integers(0, 11), st.one_of(st.none(), st.integers(1, 3)), slots)
blocks = st.lists(st.tuples(st.booleans(), st.lists(change, max_size=5)), max_size=6)


def edit_of(block: Sequence[Change]) -> Edit:
    def edit(overlay: Overlay) -> None:
        for who, amount, values in block:
            address = PEOPLE[who]
            if amount is None:
                if overlay.account(address) is not None:
                    overlay.set(address, balance=0, nonce=0)
                    overlay.credit(address, 0)
                continue
            overlay.set(address, balance=amount, state_diff=values or None)

    return edit


def nodes_of(proof: Proof, count: int) -> list[bytes]:
    return [*proof.account_nodes, *(node for at in range(count) for node in proof.slot(at)[1])]


class Pair:
    """A store with the whole state, and one with a part of it."""

    def __init__(self, folder: Path, first: Sequence[Change]) -> None:
        self.full = Store(str(folder / "full"), write=True)
        append(self.full, edit_of(first))
        self.root = self.full.trie().root()
        self.partial = Store(str(folder / "partial"), write=True)
        batch = self.partial.batch()
        batch.begin_at(ANCHOR, word(ANCHOR), self.root, epoch=1)
        self.partial.commit(batch)
        self.learned = FetchedState(1)
        self.partial.set_fallback_state(self.learned)
        self.number = ANCHOR

    def close(self) -> None:
        self.full.close()
        self.partial.close()

    def prove(self, number: int, address: bytes, wanted: Sequence[int]) -> Proof:
        with self.full.view() as view:
            return view.state(number).prove(address, wanted)

    def learn(self, block: Sequence[Change]) -> None:
        for who, _, values in block:
            address, wanted = PEOPLE[who], sorted(values)
            proof = self.prove(self.number, address, wanted)
            ways = [(slot, proof.slot(at)[1]) for at, slot in enumerate(wanted)]
            self.learned.prove(self.root, address, proof.account_nodes, ways)

    def add(self, block: Sequence[Change], *, computed: bool) -> None:
        """Add the next block on both, with its root computed on both, or on the first alone."""
        self.learn(block)
        trie = self.partial.trie(root=self.root)
        append(self.full, edit_of(block))
        root = self.full.trie().root()
        batch = self.partial.batch()
        batch.learn(self.learned)
        changed = changes(self.partial, batch, edit_of(block))
        nodes = None
        if computed:
            self.complete(trie, changed)
            trie.apply(changed)
            assert trie.root() == root
            nodes = trie.take()
            assert nodes is not None
        self.number += 1
        batch.append(self.number, word(self.number), changed, nodes)
        batch.fold_all()
        self.partial.commit(batch)
        self.root = root

    def complete(self, trie: StateTrie, changed: Changes) -> None:
        """Supply the required proofs."""
        needed = trie.needs(changed)
        for address, wanted in needed.before.items():
            trie.fill(nodes_of(self.prove(self.number, address, wanted), len(wanted)))
        needed = trie.needs(changed)
        assert not needed.before
        for address, wanted in needed.after.items():
            proof = self.prove(self.number + 1, address, wanted)
            trie.fill(nodes_of(proof, len(wanted)), self.full.trie().root())
        assert not trie.needs(changed)


@given(first=st.lists(change, min_size=1, max_size=12), following=blocks)
def test_roots_are_those_of_a_whole_store(
    tmp_path_factory: pytest.TempPathFactory, first: list[Change], following: list[Block]
) -> None:
    pair = Pair(tmp_path_factory.mktemp("pair"), first)
    try:
        for computed, block in following:
            pair.add(block, computed=computed)
    finally:
        pair.close()


FIRST: list[Change] = [(who, 1, dict.fromkeys(range(16), 1)) for who in range(12)]


def test_a_node_that_nobody_proved_is_named(tmp_path: Path) -> None:
    pair = Pair(tmp_path, FIRST)
    pair.learned.put_account(PEOPLE[0], None)
    batch = pair.partial.batch()
    changed = changes(pair.partial, batch, edit_of([(0, 5, {})]))
    trie = pair.partial.trie(root=pair.root)
    assert trie.needs(changed).before == {PEOPLE[0]: []}
    trie.apply(changed)
    with pytest.raises(MissingNode) as missing:
        trie.root()
    assert (missing.value.address, missing.value.path) == (b"", "")
    pair.close()


def test_deletions_say_which_absences_they_need(tmp_path: Path) -> None:
    pair = Pair(tmp_path, [(0, 1, {1: 1, 2: 1}), *FIRST[1:]])
    block: list[Change] = [(0, 1, {1: 0})]
    pair.learn(block)
    batch = pair.partial.batch()
    changed = changes(pair.partial, batch, edit_of(block))
    trie = pair.partial.trie(root=pair.root)
    needed = trie.needs(changed)
    assert (needed.before, needed.after) == ({}, {PEOPLE[0]: [1]})
    append(pair.full, edit_of(block))
    root = pair.full.trie().storage_root(PEOPLE[0])
    trie.fill(nodes_of(pair.prove(1, PEOPLE[0], [1]), 1), pair.full.trie().root())
    assert not trie.needs(changed)
    trie.apply(changed)
    assert trie.storage_root(PEOPLE[0]) == root
    assert trie.root() == pair.full.trie().root()
    pair.close()


def test_what_is_known_is_proven_to_others(tmp_path: Path) -> None:
    pair = Pair(tmp_path, FIRST)
    pair.add([(0, 2, {3: 2})], computed=True)
    with pair.partial.view() as view:
        proof = view.state(1).prove(PEOPLE[0], [3])
        assert proof.slot(0) == pair.prove(1, PEOPLE[0], [3]).slot(0)
        assert proof.account_nodes == pair.prove(1, PEOPLE[0], [3]).account_nodes
    pair.learned.put_account(PEOPLE[5], None)
    with pair.partial.view() as view, pytest.raises(MissingTrieNodes) as missing:
        view.state(1).prove(PEOPLE[5], [])
    assert missing.value.misses.accounts == [PEOPLE[5]]
    pair.close()
