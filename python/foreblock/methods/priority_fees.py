"""Tips of blocks, kept between requests, and the tip that is suggested from them."""

from typing import Final

from foreblock.ledger.reading.block_fees import BlockTips, read_tips
from foreblock.ledger.reading.blocks import ReadableBlock
from foreblock.ledger.reading.view import LedgerView
from foreblock.methods.lru_cache import Kept
from foreblock.scheduling.steps import Steps

KEPT_BYTES: Final = 32 << 20  # 1,024 blocks of 2,000 transactions

# As geth suggests, but that blocks without a bid do not count.
BLOCKS: Final = 20  # sealed ones, the latest last
LOWEST: Final = 3  # tips of each, the cheapest that got in
PERCENTILE: Final = 60
MOST: Final = 500 * 10**9  # wei
# OP nodes suggest no less. On a chain where nothing happens it is a thousandth of a gwei,
# which costs nobody anything, and wallets that refuse a tip of 0 go on.
LEAST: Final = 10**6


class Tips:
    """The tips of one service's blocks."""

    def __init__(self) -> None:
        self._kept: Final = Kept[BlockTips](KEPT_BYTES)
        self._suggested: tuple[bytes, int] = b"", 0  # with the hash of the block it was made at

    def of(self, view: LedgerView, block: ReadableBlock) -> Steps[BlockTips]:
        """The tips of a block of a view."""
        found = self._kept.get(block.key)
        if found is None:
            found = yield from read_tips(view, block)
            self._kept.keep(block.key, found)
        return found

    def known(self, view: LedgerView) -> int | None:
        """What is suggested at the latest block, if it was asked for already."""
        made_at, tip = self._suggested
        return tip if made_at == view.latest.hash else None

    def suggested(self, view: LedgerView) -> Steps[int]:
        """A tip in wei that lately got a transaction into a block."""
        known = self.known(view)
        if known is not None:
            return known
        sample: list[int] = []
        newest = view.latest.number
        for number in range(newest, max(newest - BLOCKS, -1), -1):
            tips = yield from self.of(view, view.resolve(number))
            sample += tips.lowest(LOWEST)
        tip = suggestion(sample)
        self._suggested = view.latest.hash, tip
        return tip


def suggestion(sample: list[int]) -> int:
    """The tip that a sample of tips suggests."""
    if not sample:
        return LEAST
    found = sorted(sample)[(len(sample) - 1) * PERCENTILE // 100]
    return min(max(found, LEAST), MOST)
