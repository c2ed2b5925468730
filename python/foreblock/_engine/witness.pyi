"""Witnesses: the part of a state that the execution of one block needs."""

from collections.abc import Sequence
from typing import Final, Self, final

from foreblock._engine.codec import Header
from foreblock._engine.evm import Overlay
from foreblock._engine.state import StateTrie

@final
class Witness:
    """The state after one block, partially known.

    Missing data raise `MissingNode`, `MissingCode` or `MissingHeader` when they are needed.
    """

    def __new__(cls, header: Header, texts: Sequence[bytes]) -> Self:
        """Create the state after the block of this header.

        The texts are trie nodes, codes and encoded ancestor headers, in any order: each is found by
        its hash.
        """
    def overlay(self) -> Overlay:
        """An empty overlay on this state. Generations of new accounts start at 1."""
    def trie(self) -> StateTrie:
        """The trie of this state, for roots after changes."""
    def __len__(self) -> int:
        """The number of distinct texts, including the header."""

@final
class Recording:
    """A state that records what is read of it, to create a witness. From `State.record`."""

    def overlay(self) -> Overlay:
        """An empty overlay on the state."""
    def trie(self) -> StateTrie:
        """The trie of the state; the nodes that it reads are recorded too.

        On a partial base it raises `MissingTrieNodes` if some are unknown, as does `recorded`.
        """
    def recorded(self, *, timeout_us: int | None = None, step_us: int | None = None) -> NeededState:
        """The data needed so far; raises `DeadlineExceeded`."""

@final
class NeededState:
    """The data that an execution and the root after it needed, without duplicates."""

    nodes: Final[list[bytes]]  # of all tries
    codes: Final[list[bytes]]
    keys: Final[list[bytes]]  # addresses, each followed by its slots of 32 bytes
    blocks: Final[list[int]]  # whose hashes were read
