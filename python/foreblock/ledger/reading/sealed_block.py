"""A sealed block as requests use it: its header, its rules, and what runs in it see.

A value that belongs to its hash and to no view, so it can be kept as long as one likes.
What is not needed by every request is made when it is first asked for.
"""

from functools import cached_property
from typing import Final

from foreblock._engine import Header
from foreblock.ledger.reading.block_context import Surroundings
from foreblock.ledger.rules.profile import ChainProfile
from foreblock.ledger.storage.chain_head import rules_of


class SealedBlock:
    """The header of a block of the chain and what follows from it."""

    def __init__(self, header: Header, total_difficulty: int, profile: ChainProfile) -> None:
        self.number: Final = header.number
        self.hash: Final = header.hash
        self.key: Final = header.hash  # by which what was made of it is kept
        self.header: Final = header
        self.profile: Final = profile
        self.total_difficulty: Final = total_difficulty
        self.merged: Final = profile.merged(total_difficulty - header.difficulty)
        self.rules: Final = rules_of(header, total_difficulty, profile)
        # The block after it as simulations begin it, from the first of them on.
        self.following: Surroundings | None = None

    @cached_property
    def surroundings(self) -> Surroundings:
        """What calls in this block see of it."""
        return Surroundings(self.header, self.rules, self.profile)
