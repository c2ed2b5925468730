"""The transactions of one portion of a block as JSON.

Rendered once and without the hash of their block, so that they serve every later partial
of the block and at last the sealed one. Both hashes and full transactions are rendered some
at a time, because a portion may be a whole block, and senders may have to be recovered.
"""

from typing import Final

from foreblock.ledger.reading.stored_block import Header, Portion
from foreblock.scheduling.thresholds import THRESHOLDS


class PortionText:
    """Hashes and fragments of some consecutive transactions."""

    def __init__(self, portion: Portion, first: int, header: Header) -> None:
        """`first` is the place of the first transaction, `header` that of its block."""
        self.count: Final = len(portion)
        self.encoded_bytes: Final = portion.items.encoded_size  # of the transactions in a block
        self.hashes: Final[list[bytes]] = []
        self.fragments: Final[list[bytes]] = []
        self._hashed = 0  # transactions
        self._first: Final = first
        self._header: Final = header
        self._portion: Portion | None = portion if self.count else None
        self.size = portion.stored_bytes  # about what it takes to keep it

    @property
    def is_hashed(self) -> bool:
        """Whether all hashes are there."""
        return self._hashed == self.count

    @property
    def is_whole(self) -> bool:
        """Whether all transactions are rendered."""
        return len(self.fragments) == self.count

    def render_hashes(self) -> None:
        """Render the next hashes."""
        assert self._portion is not None, "there is something to render"
        stop = min(self._hashed + THRESHOLDS.rendered_hashes, self.count)
        text = self._portion.items.hashes(self._hashed, stop)
        self.hashes.append(text)
        self._hashed = stop
        self.size += len(text)
        self._settle()

    def render_fragments(self) -> None:
        """Render the next transactions."""
        portion = self._portion
        assert portion is not None, "there is something to render"
        start = len(self.fragments)
        if portion.senders is None:
            stop = start + THRESHOLDS.recovered_senders
        else:
            stop = start + THRESHOLDS.rendered_transactions
        texts = portion.fragments(start, stop, self._first, self._header)
        self.fragments.extend(texts)
        self.size += sum(map(len, texts))
        self._settle()

    def _settle(self) -> None:
        """Let go of what it was rendered from, once nothing is left to render."""
        if self._portion is not None and self.is_hashed and self.is_whole:
            self.size -= self._portion.stored_bytes
            self._portion = None
