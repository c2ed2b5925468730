"""Witnesses: as much of a state as the execution of one block needs."""

from collections.abc import Sequence
from typing import Final, Self, final

from foreblock._engine.codec import Header
from foreblock._engine.evm import Overlay
from foreblock._engine.state import StateTrie

@final
class Witness:
    """The state after one block, of which only some is known.

    What is not in it raises `MissingNode`, `MissingCode` or `MissingHeader` when it is needed.
    """

    def __new__(cls, header: Header, texts: Sequence[bytes]) -> Self:
        """The state after the block of this header.

        The texts are trie nodes, codes and encoded headers of ancestors, in any order: each is
        found by its hash.
        """
    def overlay(self) -> Overlay:
        """An empty overlay above this state. Lives of accounts begin with number 1."""
    def trie(self) -> StateTrie:
        """The trie of this state, for roots after changes."""
    def __len__(self) -> int:
        """The number of different texts, the header among them."""

@final
class Recording:
    """A state that notes what is read of it, so that a witness can be made. From `State.record`."""

    def overlay(self) -> Overlay:
        """An empty overlay above the state."""
    def trie(self) -> StateTrie:
        """The trie of the state; the nodes that it reads are noted too.

        Above a partial base `MissingTrieNodes` where some are not known, as from `recorded`.
        """
    def recorded(self, *, timeout_us: int | None = None, step_us: int | None = None) -> NeededState:
        """What has been needed so far: `DeadlineExceeded`."""

@final
class NeededState:
    """What a run and the root after it needed, each once."""

    nodes: Final[list[bytes]]  # of all tries
    codes: Final[list[bytes]]
    keys: Final[list[bytes]]  # addresses, each followed by its slots of 32 bytes
    blocks: Final[list[int]]  # whose hashes were asked for
