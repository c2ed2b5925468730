"""State roots of the partials of one block, computed behind the head.

A partial is announced with a zero state root. The header that its block would have if it
ended there is known once a trie has applied its changes; only sealing waits for that.
Partials are taken one after the other, so the work for each is what it changed.

The trie is opened when it is first needed. That of the store gives the nodes to be kept
when the block is sealed. That of a view serves a block whose parent is not sealed yet, or
that was read back from its rows: then the store makes the nodes again by itself.
When the next block begins on what is in memory of this one, the trie goes on with it.

Where the base of the store is known in part, no trie is at hand: `NamedRoots` computes nothing,
and blocks are sealed by name, with the roots that their headers announce.
"""

from collections import deque
from collections.abc import Callable

from msgspec import Struct

from foreblock._engine import Changes, Header, NodeWrites, StateTrie

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
        """`whole` says that the trie stands where the block began, not amid it."""
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

    def storage_root(self, address: bytes) -> bytes | None:
        """The root of one account's storage after all that was taken in; none if not known."""
        self.catch_up()
        return self._trie_after(len(self._changes)).storage_root(address)

    def take_new(self) -> list[SealsAs]:
        """The roots computed since the last call."""
        new, self._new = self._new, []
        return new

    def take_nodes(self) -> NodeWrites | None:
        """The nodes to store with the sealed block; none where the store makes them."""
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
        """The same for the next block."""
        return NamedRoots()

    def restart(self, open_trie: OpenTrie) -> None:
        """Go on without a trie."""


def _no_trie() -> StateTrie:
    raise AssertionError("roots of a state that is known in part are not computed")
