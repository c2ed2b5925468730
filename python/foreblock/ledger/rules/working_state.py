"""The state of the block being executed, and its root.

An overlay holds the changes; a trie applies them when a root is asked for. Both begin at
the state of one sealed block and go on from block to block; neither writes to the store.
After a block is refused both have seen parts of it and must be thrown away.

Where the state is known in part there is no trie, and no root but the announced one.
"""

from dataclasses import dataclass, field

from foreblock._engine import Changes, NodeWrites, Overlay, StateTrie


@dataclass(slots=True)
class WorkingState:
    """An overlay and its trie, with the changes since the last `finish`."""

    overlay: Overlay
    trie: StateTrie | None  # only that of the latest block gives nodes
    number: int = 0  # the store's number for the block; new accounts are stored under it
    _changes: Changes | None = field(default=None, init=False)  # up to the last root
    _taken: Changes | None = field(default=None, init=False)  # since then

    def root(self) -> bytes:
        """The state root as of now."""
        assert self.trie is not None, "roots are computed by a trie"
        changes, self._taken = self.collect(), None
        self.trie.apply(changes)
        self._changes = changes if self._changes is None else self._changes.merge(changes)
        return self.trie.root()

    def collect(self) -> Changes:
        """The changes since the last root, which the next one applies."""
        changes = self.overlay.take(self.number)
        self._taken = changes if self._taken is None else self._taken.merge(changes)
        return self._taken

    def storage_root(self, address: bytes) -> bytes:
        """The root of one account's storage as of the last `root`."""
        assert self.trie is not None, "roots are computed by a trie"
        return self.trie.storage_root(address)

    def finish(self) -> tuple[Changes, NodeWrites | None]:
        """The block's changes, to the state and to the trie, as of the last `root`.

        Without a trie, as of the last `collect`.
        """
        if self.trie is None:
            self._changes, self._taken = self._taken, None
        assert self._changes is not None, "finish follows root"
        changes, self._changes = self._changes, None
        return changes, None if self.trie is None else self.trie.take()
