"""The receipts of one block as JSON, rendered some at a time.

It is kept while it is rendered: whoever goes on with it does so where another one ended. What
is left to render is read from the view of whoever renders.
"""

from typing import Final

from foreblock.ledger.partial_rows import Position
from foreblock.ledger.placed_receipt import some_receipts
from foreblock.ledger.preconfirmed_block import ReadableBlock
from foreblock.ledger.simulation.steps import Steps
from foreblock.ledger.stored_block import Portion, read_stored
from foreblock.ledger.view import LedgerView
from foreblock.methods import shapes
from foreblock.methods.receipt_text import ReceiptShape

AT_ONCE: Final = 16  # receipts rendered at once: 1 ms where senders have to be recovered


class ReceiptsText:
    """An array of receipts, as far as it goes."""

    def __init__(self) -> None:
        self.whole: bytes | None = None
        self._texts: list[bytes] = []
        self.count = 0  # receipts
        self._before = Position()  # what comes before the next receipt
        self._portion = 0  # that has the next one
        self._index = 0  # of the next one in it
        self.size = 256  # about how many bytes it takes to keep

    def render(self, view: LedgerView, block: ReadableBlock, shape: ReceiptShape) -> Steps[bytes]:
        """Write what is missing, others having their turn in between."""
        for place, part in enumerate(read_stored(view, block).parts):
            if place < self._portion or self.whole is not None:
                continue
            portion = part.read()
            # Another one may be at it as well, and may have gone further meanwhile.
            while place == self._portion:
                self._render_some(portion, shape)
                yield None
        if self.whole is None:
            self.whole = shapes.array(self._texts)
            self._texts = []
        return self.whole

    def _render_some(self, portion: Portion, shape: ReceiptShape) -> None:
        stop = self._index + AT_ONCE
        for placed in some_receipts(portion, self._index, stop, self._before):
            text = shape.receipt(placed)
            self._texts.append(text)
            self.count += 1
            self._before = placed.end
            self.size += len(text)
        self._index = stop
        if stop >= len(portion):
            self._portion += 1
            self._index = 0
