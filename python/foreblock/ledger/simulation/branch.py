"""The simulated chain so far: its last block, and its state as one overlay above one state.

What one block changes the next one sees, whoever the accounts are. Nothing of it is ever
written. State roots are computed only where they are asked for, else they are zero.
"""

from typing import Final

from foreblock._engine import Block, State
from foreblock.ledger.forks import Rules
from foreblock.ledger.preconfirmed_block import ReadableBlock
from foreblock.primitives import ZERO_HASH


class Branch:
    """A chain of simulated blocks that begins after a block of the real one."""

    def __init__(self, base: ReadableBlock, state: State, unused: int, *, roots: bool) -> None:
        """Begin after `base`. `unused` and all above are numbers that the store never drew."""
        self.profile: Final = base.profile
        self.overlay: Final = state.overlay()
        # The state of a block in progress knows the hashes of those below it only.
        self.overlay.set_block_hash(base.number, base.hash)
        self.parent = base.header
        self.rules = base.rules  # of the parent
        self._total_difficulty = base.total_difficulty
        self._trie: Final = state.trie() if roots else None
        self._unused = unused

    def rules_of_next(self, number: int, time: int) -> Rules:
        """The rules for a child at this place. From the first fork by time on, all is merged."""
        merged = self.profile.merged(self._total_difficulty)
        forks = self.profile.forks_by_time
        merged = merged or bool(forks and time >= forks[0][0])
        return self.profile.rules(number, time, merged=merged)

    def state_root(self) -> bytes:
        """The root of the state as it is now."""
        if self._trie is None:
            return ZERO_HASH
        # Lives of accounts that begin after this root must not be taken for those before.
        self._trie.apply(self.overlay.take(self._unused))
        self._unused += 1
        return self._trie.root()

    def extend(self, block: Block, rules: Rules) -> None:
        """The block is finished, and the next one's parent."""
        self.overlay.set_block_hash(block.header.number, block.hash)
        self.parent = block.header
        self.rules = rules
        self._total_difficulty += block.header.difficulty
