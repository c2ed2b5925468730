"""Transactions of the newest blocks, for a chain that is made to give some of them up."""

from collections import deque
from typing import Final

from foreblock.ledger.transactions import Transaction


class Recent:
    """What was included where; the blocks before the newest few are forgotten."""

    def __init__(self, blocks: int) -> None:
        self._blocks: Final[deque[list[list[Transaction]]]] = deque(maxlen=blocks)

    def begin_block(self) -> None:
        """The next block begins."""
        self._blocks.append([])

    def close_index(self, transactions: list[Transaction]) -> None:
        """The newest block has one more index, with these."""
        if not self._blocks:
            self._blocks.append([])
        self._blocks[-1].append(transactions)

    def take_index(self) -> list[Transaction]:
        """Forget the newest index; gives what was in it."""
        return self._blocks[-1].pop() if self._blocks and self._blocks[-1] else []

    def take_blocks(self, count: int) -> list[list[Transaction]]:
        """Forget the newest blocks; gives what was in each, the oldest first.

        Of those from before this was begun nothing is known.
        """
        known = min(count, len(self._blocks))
        taken = [self._blocks.pop() for _ in range(known)] + [[]] * (count - known)
        return [[each for index in block for each in index] for block in reversed(taken)]
