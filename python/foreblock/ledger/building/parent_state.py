"""The state that a block begins on: stored, sealed or partial, or in memory only.

`on_sealed` and `on_partial` open a view of the store; a block in progress and a verifier
give what they have in memory, whose last block need not be stored yet. The caller owns the
view. Blocks that go on after their last stored index are read back in `resume_block`.
"""

from functools import partial as bound
from typing import Protocol

from msgspec import Struct

from foreblock._engine import Header, Overlay, Store, View
from foreblock.ledger.building.state_roots import NamedRoots, OpenTrie, StateRoots
from foreblock.ledger.rules.forks import Rules
from foreblock.ledger.rules.profile import ChainProfile
from foreblock.ledger.storage.chain_head import made_of, read_header, rules_of
from foreblock.ledger.storage.freshness import last_index_of
from foreblock.types import FlashblockId


class StateSource(Protocol):
    """What a state is read from: a view of the store, or a witness."""

    def close(self) -> None:
        """Let go of it."""


class ParentState(Struct, frozen=True):
    """A parent with the state after it."""

    profile: ChainProfile
    parent: Header  # sealed, or as it will be
    parent_rules: Rules
    previous: FlashblockId | None  # the last index of the parent, if it was made of indices
    view: StateSource
    overlay: Overlay  # above the state that the block goes on from
    roots: StateRoots  # from that same state on
    # Whether the parent's header has its state root, and so the hash that the block names.
    proven: bool = True
    stacked: int = 0  # blocks that the view has seen built upon it
    is_idle: bool = False  # nothing waits at its end (`block_end`)


def on_sealed(store: Store, profile: ChainProfile, number: int) -> ParentState:
    """The state of a sealed block: `UnknownBlock`, `PrunedState`."""
    view = store.view()
    parent, total_difficulty = read_header(view, number)
    state, latest = view.state(number), view.heads.latest
    assert latest is not None, "a store is begun with its genesis"
    # Only the latest block's trie gives nodes to be stored. Of old blocks the state is kept
    # and the nodes are not: a branch may begin there all the same.
    old_trie: OpenTrie = bound(state.trie, rebuild=True)
    open_trie = store.trie if number == latest[0] else old_trie
    return ParentState(
        profile=profile,
        parent=parent,
        parent_rules=rules_of(parent, total_difficulty, profile),
        previous=last_index(view, number),
        view=view,
        overlay=state.overlay(remember=True),
        roots=roots_above(view, open_trie),
    )


def on_partial(
    store: Store,
    profile: ChainProfile,
    place: FlashblockId,
    partial: int,
    sealed: Header,
    *,
    parent_hash: bytes | None = None,
    open_trie: OpenTrie | None = None,
) -> ParentState:
    """The state of a stored partial at that place, which has or will have that header.

    While its state root is not computed, `parent_hash` is what the next block calls it.
    """
    view = store.view()
    state = view.state_of_partial(partial)
    overlay = state.overlay(remember=True)
    parent_hash = parent_hash or sealed.hash
    overlay.set_block_hash(sealed.number, parent_hash)
    return ParentState(
        profile=profile,
        parent=sealed,
        parent_rules=profile.rules(sealed.number, sealed.timestamp, merged=True),
        previous=place,
        view=view,
        overlay=overlay,
        roots=roots_above(view, open_trie or state.trie),
        proven=sealed.hash == parent_hash,
    )


def roots_above(view: View, open_trie: OpenTrie, *, whole: bool = True) -> StateRoots:
    """The roots of what follows, computed by this trie where the base of the store is complete."""
    return StateRoots(open_trie, whole=whole) if view.heads.base.is_complete else NamedRoots()


def last_index(view: View, block: int) -> FlashblockId | None:
    """The index with which a sealed block ended, if it was made of indices."""
    partials = made_of(view, block)
    if not partials:
        return None
    index = last_index_of(view, block, partials[-1])
    return FlashblockId(block, len(partials) - 1 if index is None else index)
