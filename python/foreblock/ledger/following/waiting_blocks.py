"""Sealed blocks that came before their parents, kept within bounds.

A canonical source is asked for a missing block, then for its parent, and so on down to a
block that is known. What does not fit drives out the highest, which can be asked for again
once those below are sealed.
"""

from typing import Final

from foreblock._engine import Block

MOST_BLOCKS: Final = 1024
MOST_BYTES: Final = 64 * 1024 * 1024


class WaitingBlocks:
    """Blocks by the hash of the parent that they wait for."""

    def __init__(self) -> None:
        self._blocks: dict[bytes, Block] = {}
        self._size = 0

    def __len__(self) -> int:
        return len(self._blocks)

    def add(self, block: Block) -> None:
        """Keep a block; of two with one parent the later one."""
        self.take(block.header.parent_hash)
        self._blocks[block.header.parent_hash] = block
        self._size += block.size
        while len(self._blocks) > MOST_BLOCKS or self._size > MOST_BYTES:
            highest = max(self._blocks.values(), key=lambda each: each.header.number)
            self.take(highest.header.parent_hash)

    def take(self, parent_hash: bytes) -> Block | None:
        """The block that waited for this parent, which is no longer kept."""
        block = self._blocks.pop(parent_hash, None)
        if block is not None:
            self._size -= block.size
        return block

    def forget_through(self, number: int) -> None:
        """Keep nothing of this height and those below."""
        for block in list(self._blocks.values()):
            if block.header.number <= number:
                self.take(block.header.parent_hash)
