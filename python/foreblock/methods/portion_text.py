"""The transactions of one portion of a block as JSON.

Rendered once and without the hash of their block, so that they serve every later partial
of the block and at last the sealed one. Hashes are there from the start; full transactions
are rendered some at a time, because senders may have to be recovered first.
"""

from typing import Final

from foreblock.ledger.stored_block import Header, Part, Portion
from foreblock.methods import shapes

RECOVERY: Final = 8  # how much more it takes where the sender is recovered, in transactions


class PortionText:
    """Hashes and fragments of some consecutive transactions."""

    def __init__(self, part: Part, first: int, header: Header) -> None:
        """`first` is the place of the first transaction, `header` that of its block."""
        portion = part.read()
        self.number: Final = part.number  # of the partial that it belongs to, if it does
        self.count: Final = len(portion.raws)
        self.encoded_bytes: Final = portion.size  # of the transactions in a block
        self.hashes: Final = b",".join(map(shapes.data, portion.hashes()))
        self.fragments: list[bytes] = []
        self._first: Final = first
        self._header: Final = header
        self._portion: Portion | None = portion if self.count else None
        self._source_bytes: Final = sum(map(len, portion.raws + portion.receipts))
        self.size = len(self.hashes) + self._source_bytes  # about what it takes to keep it

    @property
    def is_whole(self) -> bool:
        """Whether all transactions are rendered."""
        return len(self.fragments) == self.count

    def render(self, budget: int) -> int:
        """Render the next transactions; gives what is left of the budget.

        One transaction whose sender is known takes one of it, or two microseconds.
        """
        portion, start = self._portion, len(self.fragments)
        if portion is None:
            return budget
        cost = RECOVERY if portion.senders is None else 1
        stop = start + max(budget // cost, 1)
        for index, transaction in enumerate(portion.transactions(start, stop), start):
            deposit = portion.deposit_fields(index)
            place = self._first + index
            fragment = shapes.fragment(transaction, place, self._header, deposit)
            self.fragments.append(fragment)
            self.size += len(fragment)
        if self.is_whole:
            self._portion = None
            self.size -= self._source_bytes
        return budget - cost * (len(self.fragments) - start)
