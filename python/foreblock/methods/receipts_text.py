"""The receipts of one block as JSON, rendered some at a time.

It is kept while it is rendered: whoever goes on with it does so where another one ended. What
is left to render is read from the view of whoever renders.
"""

from foreblock.ledger.reading.placed_receipts import some_receipts
from foreblock.ledger.reading.preconfirmed_block import ReadableBlock
from foreblock.ledger.reading.stored_block import Portion, read_stored
from foreblock.ledger.reading.view import LedgerView
from foreblock.ledger.storage.partial_rows import Position
from foreblock.methods.receipt_text import ReceiptShape
from foreblock.scheduling.reply import Text, in_pieces
from foreblock.scheduling.steps import Steps
from foreblock.scheduling.thresholds import THRESHOLDS


class ReceiptsText:
    """An array of receipts, as far as it goes."""

    def __init__(self) -> None:
        self.whole: Text | None = None
        self._pieces: list[bytes] = []
        self._texts: list[bytes] = []  # since the last piece
        self._length = 0  # of these
        self.count = 0  # receipts
        self._before = Position()  # what comes before the next receipt
        self._portion = 0  # that has the next one
        self._index = 0  # of the next one in it
        self.size = 256  # about how many bytes it takes to keep

    def render(self, view: LedgerView, block: ReadableBlock, shape: ReceiptShape) -> Steps[Text]:
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
            self._join()
            self.whole = in_pieces([*self._pieces, b"]" if self.count else b"[]"])
            self._pieces = []
        return self.whole

    def _render_some(self, portion: Portion, shape: ReceiptShape) -> None:
        stop = self._index + THRESHOLDS.rendered_receipts
        for placed in some_receipts(portion, self._index, stop, self._before):
            text = shape.receipt(placed)
            self._texts += (b"," if self.count else b"[", text)
            self.count += 1
            self._before = placed.end
            self._length += len(text)
            self.size += len(text)
        if self._length >= THRESHOLDS.piece_bytes:
            self._join()
        self._index = stop
        if stop >= len(portion):
            self._portion += 1
            self._index = 0

    def _join(self) -> None:
        if self._texts:
            self._pieces.append(b"".join(self._texts))
            self._texts, self._length = [], 0
