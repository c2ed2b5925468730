"""A branch that is to take the place of sealed blocks: executed in memory, stored in one go.

It begins on a sealed block and grows index by index and block by block, in a draft in which
everything above that block is given up first. Nothing of it can be seen before the draft is
committed, and after that nothing else can. Its last block is the pending one; those below
are sealed as they are begun upon.
"""

from typing import Final

from foreblock._engine import Header
from foreblock.clock import Clock
from foreblock.ledger.building.block_in_progress import BlockInProgress, Foundation
from foreblock.ledger.building.commit_builder import Draft
from foreblock.types import Base, Flashblock


class SideBranch:
    """The blocks of a branch so far."""

    def __init__(
        self, draft: Draft, ground: Foundation, clock: Clock, total_difficulty: int
    ) -> None:
        """`draft` is rewound to the block that `ground` stands on."""
        self.draft: Final = draft
        self.latest: Header = ground.parent
        self.flashblocks: Final[list[Flashblock]] = []
        self._clock: Final = clock
        self._total_difficulty: Final = total_difficulty
        self._ground: Final = ground
        self._block: BlockInProgress | None = None

    @property
    def block(self) -> BlockInProgress:
        """The last block."""
        assert self._block is not None, "a branch has a block"
        return self._block

    def begin(self, base: Base, payload_id: bytes) -> BlockInProgress:
        """The next block, on `latest`. Raises `BadBlock` for a base that cannot follow it."""
        foundation = self._ground
        if self._block is not None:
            foundation = self._block.foundation_of_next(self.latest, self.latest.hash)
        self._block = BlockInProgress.begin(foundation, base, payload_id)
        return self._block

    def close_index(self) -> None:
        """Close the open index of the last block."""
        block = self.block
        closed = block.close_index(self.draft.next)
        partial = self.draft.extend(closed, block.partials, self._clock.wall_ns())
        block.committed(partial, closed.header)
        self.flashblocks.append(closed.flashblock())

    def seal(self) -> None:
        """Let the last block end with its last index."""
        roots = self.block.roots
        roots.catch_up()
        assert roots.last is not None, "a block has an index before it is sealed"
        self.latest = roots.last.header
        self.draft.seals_as(roots.take_new())
        self.draft.seal(self.block.partials, self.latest, self._total_difficulty, None)
