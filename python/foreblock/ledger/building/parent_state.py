"""The state that a block begins on, and the state roots of its partials, computed behind the head.

A parent is stored, sealed or partial, or in memory only. `on_sealed` and `on_partial` open a view
of the store; a block in progress and a verifier pass what they have in memory, whose last block
need not be stored yet. The caller owns the view. Blocks that continue after their last stored
index are read back in `resume_block`.

A partial is announced with a zero state root. The header that its block would have if it ended
there is known once a trie has applied its changes; only sealing waits for that. Partials are taken
one after the other, so the work for each is what it changed.

The trie is opened when it is first needed. That of the store gives the nodes to be kept when the
block is sealed. That of a view serves a block whose parent is not sealed yet, or that was read
back from its rows: then the store makes the nodes again by itself. When the next block begins on
the memory of this one, the trie continues with it.

If the base of the store is known in part, there is no trie: `NamedRoots` computes nothing, and
blocks are sealed by name, with the roots that their headers announce. On a fork of another chain
nobody announces any: headers have zeros (`ForkedRoots`), and missing state is fetched while a block
waits for it (`StateFinder`).
"""

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial as bound
from typing import Protocol

from msgspec import Struct

from foreblock._engine import (
    Changes,
    Header,
    MissingKeys,
    NodeWrites,
    Overlay,
    StateTrie,
    Store,
    Transaction,
    View,
    keccak256,
)
from foreblock.ledger.rules.forks import Rules
from foreblock.ledger.rules.profile import ChainProfile
from foreblock.ledger.storage.chain_head import partials_of_sealed, read_header, rules_of
from foreblock.ledger.storage.dev_rows import encode_edits
from foreblock.ledger.storage.partials import last_index_of
from foreblock.types import FlashblockId, StateEdit

OpenTrie = Callable[[], StateTrie]


class SealsAs(Struct, frozen=True):
    """The header of a block if it ends with this partial."""

    partial: int
    header: Header


class _Waiting(Struct, frozen=True):
    """A partial whose root comes after this many changes."""

    partial: int
    header: Header
    changes: int


class StateRoots:
    """The trie of one block, following its partials."""

    def __init__(self, open_trie: OpenTrie, *, whole: bool = True) -> None:
        """With `whole`, the trie is of the start of the block, not of the middle."""
        self._open = open_trie
        self._whole = whole
        self._trie: StateTrie | None = None
        self._changes: list[Changes] = []  # of the block, in order
        self._applied = 0
        self._waiting: deque[_Waiting] = deque()
        self.last: SealsAs | None = None
        self._new: list[SealsAs] = []
        self._nodes: NodeWrites | None = None  # that the trie gave after all changes

    def take_in(self, changes: Changes) -> None:
        """Add the changes that follow all earlier ones."""
        self._changes.append(changes)
        self._nodes = None

    def add(self, partial: int, header: Header) -> None:
        """Wait for the root of this partial, whose changes are the last taken in."""
        self._waiting.append(_Waiting(partial, header, len(self._changes)))

    def add_known(self, partial: int, header: Header) -> None:
        """Note a partial whose header has its root, as all before it do."""
        self.last = SealsAs(partial, header)
        self._new.append(self.last)

    def step(self) -> bool:
        """Compute the next root; false when none is waiting."""
        if not self._waiting:
            return False
        waiting = self._waiting.popleft()
        root = self._trie_after(waiting.changes).root()
        self.last = SealsAs(waiting.partial, waiting.header.replace(state_root=root))
        self._new.append(self.last)
        return True

    def catch_up(self) -> None:
        """Compute all roots that are waiting."""
        while self.step():
            pass

    def end(self) -> Header:
        """The header of the block if it ends here; roots of indices before stay unknown."""
        while len(self._waiting) > 1:
            self._waiting.popleft()
        self.catch_up()
        assert self.last is not None, "a block has an index before it is sealed"
        return self.last.header

    def root(self) -> bytes:
        """The root after all that was taken in."""
        self.catch_up()
        return self._trie_after(len(self._changes)).root()

    def root_with(self, edits: Sequence[StateEdit]) -> bytes:  # noqa: ARG002, the trie has them
        """The root after all that was taken in, of which these state edits are the last."""
        return self.root()

    def storage_root(self, address: bytes) -> bytes | None:
        """The root of one account's storage after all that was taken in; none if not known."""
        self.catch_up()
        return self._trie_after(len(self._changes)).storage_root(address)

    def take_new(self) -> list[SealsAs]:
        """The roots computed since the last call."""
        new, self._new = self._new, []
        return new

    def take_nodes(self) -> NodeWrites | None:
        """The nodes to store with the sealed block; None if the store makes them."""
        if self._nodes is None and self._trie is not None:
            self._nodes = self._trie.take()
        return self._nodes

    def hand_over(self) -> StateTrie:
        """The trie after all changes; the caller owns it."""
        if self._nodes is None or self._trie is None:
            self.root()
            self.take_nodes()
        trie, self._trie, self._applied = self._trie, None, 0
        assert trie is not None, "it gave a root"
        return trie

    def following(self) -> "StateRoots":
        """The roots of the next block, which begins on all that was taken in."""
        return StateRoots(self.hand_over)

    def restart(self, open_trie: OpenTrie) -> None:
        """Go on with another trie, which stands where the block began.

        Roots that begin amid the block keep theirs.
        """
        if self._whole:
            self._open, self._trie, self._applied, self._nodes = open_trie, None, 0, None

    def _trie_after(self, count: int) -> StateTrie:
        if self._trie is None:
            self._trie = self._open()
        for changes in self._changes[self._applied : count]:
            self._trie.apply(changes)
        self._applied = max(self._applied, count)
        return self._trie


class NamedRoots(StateRoots):
    """The roots of a block whose parent's state is known in part: what is announced is taken."""

    def __init__(self) -> None:
        super().__init__(_no_trie)

    def take_in(self, changes: Changes) -> None:
        """Forget the changes: nothing is computed from them."""

    def add(self, partial: int, header: Header) -> None:
        """Wait for nothing."""

    def step(self) -> bool:
        """False: no root is computed."""
        return False

    def storage_root(self, address: bytes) -> None:
        """None: it is not known."""

    def take_nodes(self) -> None:
        """None: there are no nodes to store."""

    def following(self) -> "NamedRoots":
        """The roots of the next block, which continue with this trie."""
        return NamedRoots()

    def restart(self, open_trie: OpenTrie) -> None:
        """Go on without a trie."""


class ForkedRoots(NamedRoots):
    """The roots of local blocks of a fork, which cannot be computed: headers have zeros.

    State edits have a digest instead, by which the block has another hash than before them.
    """

    def add(self, partial: int, header: Header) -> None:
        """Note that the block ends with this header if this is its last partial."""
        self.add_known(partial, header)

    def root_with(self, edits: Sequence[StateEdit]) -> bytes:
        """A digest of the edits and of what was before them."""
        before = b"" if self.last is None else self.last.header.hash
        return keccak256(before + encode_edits(edits))

    def following(self) -> "ForkedRoots":
        """The roots of the next block."""
        return ForkedRoots()


class StateFinder(Protocol):
    """Makes missing state known, while its caller waits."""

    def find(self, missing: MissingKeys, transactions: Sequence[Transaction] = ()) -> None:
        """Fetch these keys, which the run of these transactions has missed.

        Raises `EndpointError` if some are not found.
        """


def _no_trie() -> StateTrie:
    raise AssertionError("roots of a state that is known in part are not computed")


class StateSource(Protocol):
    """A source of states: a view of the store, or a witness."""

    def close(self) -> None:
        """Release it."""


class ParentState(Struct, frozen=True):
    """A parent with the state after it."""

    profile: ChainProfile
    parent: Header  # sealed, or as it will be
    parent_rules: Rules
    previous: FlashblockId | None  # the last index of the parent, if it was made of indices
    view: StateSource
    overlay: Overlay  # above the state that the block continues from
    roots: StateRoots  # from that same state on
    # Whether the parent's header has its state root, and so the hash that the block names.
    proven: bool = True
    stacked: int = 0  # blocks that the view has seen built upon it
    is_idle: bool = False  # nothing waits at its end (`BlockEnd`)
    finder: StateFinder | None = None  # of state that is missing, on a fork of another chain


def on_sealed(
    store: Store, profile: ChainProfile, number: int, finder: StateFinder | None = None
) -> ParentState:
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
        roots=roots_above(view, open_trie, finder=finder),
        finder=finder,
    )


def on_partial(  # noqa: PLR0913, keywords
    store: Store,
    profile: ChainProfile,
    place: FlashblockId,
    partial: int,
    sealed: Header,
    *,
    parent_hash: bytes | None = None,
    open_trie: OpenTrie | None = None,
    finder: StateFinder | None = None,
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
        roots=roots_above(view, open_trie or state.trie, finder=finder),
        proven=sealed.hash == parent_hash,
        finder=finder,
    )


def roots_above(
    view: View, open_trie: OpenTrie, *, whole: bool = True, finder: StateFinder | None = None
) -> StateRoots:
    """The roots of what follows, computed by this trie where the base of the store is complete."""
    if view.heads.base.is_complete:
        return StateRoots(open_trie, whole=whole)
    return NamedRoots() if finder is None else ForkedRoots()


def last_index(view: View, block: int) -> FlashblockId | None:
    """The index with which a sealed block ended, if it was made of indices."""
    partials = partials_of_sealed(view, block)
    if not partials:
        return None
    index = last_index_of(view, block, partials[-1])
    return FlashblockId(block, len(partials) - 1 if index is None else index)
