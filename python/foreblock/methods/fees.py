"""eth_gasPrice, eth_maxPriorityFeePerGas, eth_blobBaseFee: what a transaction should offer."""

from collections.abc import Awaitable

from msgspec import Raw

from foreblock.ledger.reading.next_fees import blob_fees_of, next_base_fee_of
from foreblock.ledger.reading.view import LedgerView
from foreblock.methods.node import take_none
from foreblock.methods.priority_fees import Tips
from foreblock.methods.shapes import quantity
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Steps


class FeeMethods:
    """Methods that suggest a price."""

    def __init__(self, tips: Tips, scheduler: Scheduler) -> None:
        self._tips = tips
        self._scheduler = scheduler

    def gas_price(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """What a unit of gas costs now, a tip included."""
        take_none(raw)
        return self._suggest(view, _base_fee(view))

    def max_priority_fee_per_gas(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """The tip alone."""
        take_none(raw)
        return self._suggest(view, 0)

    def blob_base_fee(self, view: LedgerView, raw: Raw) -> bytes:
        """What a unit of blob gas costs in the latest block."""
        take_none(raw)
        return quantity(blob_fees_of(view.latest)[0])

    def _suggest(self, view: LedgerView, base_fee: int) -> bytes | Awaitable[bytes]:
        known = self._tips.known(view)
        if known is not None:
            return quantity(base_fee + known)
        return self._scheduler.read(self._suggested(view, base_fee))

    def _suggested(self, view: LedgerView, base_fee: int) -> Steps[bytes]:
        return quantity(base_fee + (yield from self._tips.suggested(view)))


def _base_fee(view: LedgerView) -> int:
    """Enough for the block in progress and, as that stands, for the one after it."""
    if view.pending is None:
        return next_base_fee_of(view.latest)
    return max(view.pending.header.base_fee_per_gas or 0, next_base_fee_of(view.pending))
