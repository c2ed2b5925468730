"""Witnesses: the part of a state that the execution of one block needs."""

from collections.abc import Sequence
from typing import Self, final

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
    def recorded(
        self, *, timeout_us: int | None = None, step_us: int | None = None
    ) -> tuple[list[bytes], list[bytes], list[bytes], list[int]]:
        """The data needed so far, without duplicates; raises `DeadlineExceeded`.

        These are the nodes of all tries, codes, keys (addresses, each followed by its slots of 32
        bytes), and the blocks whose hashes were read.
        """
