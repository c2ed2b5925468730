"""What the transactions of a block paid above its base fee.

Deposits bid nothing and are left out. Senders play no part, so none is recovered, and a
block takes about two microseconds a transaction.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Final

from foreblock._engine import decode_receipt, decode_transactions
from foreblock.ledger.execution import DEPOSIT
from foreblock.ledger.simulation.steps import Steps
from foreblock.ledger.stored_block import Portion, StoredBlock
from foreblock.primitives import ZERO_ADDRESS

AT_ONCE: Final = 256  # transactions


class BlockTips:
    """Tips in wei, and the gas that was used up to each, the lowest tip first."""

    def __init__(self, bids: Iterable[tuple[int, int]]) -> None:
        """`bids` are tips with the gas that was used at them."""
        ordered = sorted(bids)
        self.tips: Final = [tip for tip, _ in ordered]
        self._gas: Final = list(accumulate(gas for _, gas in ordered))

    @property
    def size(self) -> int:
        """About how many bytes it takes to keep."""
        return 128 + 80 * len(self.tips)

    def percentiles(self, wanted: Sequence[float]) -> list[int]:
        """The tip up to which so many hundredths of the gas were used, for each one wanted.

        In a block without bids all are 0.
        """
        if not self.tips:
            return [0] * len(wanted)
        total = self._gas[-1]
        return [self.tips[bisect_left(self._gas, int(total * each / 100))] for each in wanted]


def read_tips(stored: StoredBlock) -> Steps[BlockTips]:
    """The tips of a block, read some at a time."""
    bids: list[tuple[int, int]] = []
    base_fee, gas = stored.header.base_fee_per_gas, 0
    for part in stored.parts:
        portion = part.read()
        for start in range(0, len(portion.raws), AT_ONCE):
            gas = _read_some(portion, start, base_fee, gas, bids)
            yield None
    return BlockTips(bids)


def _read_some(
    portion: Portion, start: int, base_fee: int | None, gas: int, bids: list[tuple[int, int]]
) -> int:
    """Add some bids; gives the gas of the block up to them."""
    raws = portion.raws[start : start + AT_ONCE]
    transactions = decode_transactions(
        raws, threads=1, homestead=portion.homestead, senders=[ZERO_ADDRESS] * len(raws)
    )
    receipts = map(decode_receipt, portion.receipts[start : start + AT_ONCE])
    for transaction, receipt in zip(transactions, receipts, strict=True):
        before, gas = gas, receipt.cumulative_gas_used
        if transaction.type != DEPOSIT:
            tip = transaction.effective_gas_price(base_fee) - (base_fee or 0)
            bids.append((tip, gas - before))
    return gas
