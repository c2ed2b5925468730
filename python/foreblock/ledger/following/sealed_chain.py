"""The end of the sealed chain: the part that what a feed says may still change.

A feed can contradict the last few blocks, by a job that competes and is proven. What a
canonical source has confirmed only that source can take back.
"""

from typing import Final

from foreblock._engine import Header, Store
from foreblock.ledger.storage.chain_head import read_header


class SealedChain:
    """The latest block, and the hashes of those that are not settled."""

    def __init__(self, store: Store, depth: int) -> None:
        """`depth` is how many sealed blocks a feed may change."""
        self._depth: Final = depth
        self._settled = 0
        self.hashes: dict[int, bytes] = {}
        with store.view() as view:
            assert view.heads.latest is not None, "a store is begun with its genesis"
            self.latest, _ = read_header(view, view.heads.latest[0])
            for number in range(self.lowest, self.latest.number + 1):
                sealed = view.sealed(number)
                if sealed is not None:
                    self.hashes[number] = sealed[0]

    @property
    def lowest(self) -> int:
        """The last block that no feed can change."""
        return max(self.latest.number - self._depth, min(self._settled, self.latest.number), 0)

    def move(self, header: Header) -> None:
        """This block follows the latest."""
        self.latest = header
        self.hashes[header.number] = header.hash
        self._trim()

    def rewind(self, header: Header) -> None:
        """This earlier block is the latest again."""
        self.latest = header
        self._settled = min(self._settled, header.number)
        self.hashes = {at: each for at, each in self.hashes.items() if at < header.number}
        self.hashes[header.number] = header.hash

    def settle(self, block: int) -> None:
        """No feed can change this block or one below it."""
        self._settled = max(self._settled, block)
        self._trim()

    def _trim(self) -> None:
        lowest = self.lowest
        self.hashes = {at: each for at, each in self.hashes.items() if at >= lowest}
