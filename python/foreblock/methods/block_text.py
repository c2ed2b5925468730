"""One block as JSON, put together from the texts of its portions.

A block has two forms. That with hashes is whole from the start; the other one is joined
once all transactions are rendered. What it was made from is let go of when it is settled,
because blocks are kept for long.
"""

from collections.abc import Sequence
from typing import Final

from foreblock.ledger.stored_block import StoredBlock
from foreblock.methods import shapes
from foreblock.methods.portion_text import PortionText

BUDGET: Final = 256  # of rendering at once, see `PortionText.render`: 2 ms at most

# Where number and hash, the identity of a block, end in its text.
_AFTER_IDENTITY: Final = b',"parentHash":'


class BlockText:
    """Both forms of a block."""

    def __init__(self, stored: StoredBlock, portions: Sequence[PortionText]) -> None:
        encoded_bytes = sum(portion.encoded_bytes for portion in portions)
        self._hash: Final = stored.header.hash
        self._head: Final = _head(stored, stored.size(encoded_bytes))
        self.portions = portions
        self.full: bytes | None = None  # the form with full transactions, once it is rendered
        hashes = [portion.hashes for portion in portions if portion.count]
        self.hashes: Final = _whole(self._head, shapes.array(hashes))

    @property
    def size(self) -> int:
        """About how many bytes it takes to keep."""
        return len(self._head) + len(self.hashes) + len(self.full or b"")

    def render_some(self) -> bool:
        """Render the next transactions; true when none are left."""
        left = BUDGET
        for portion in self.portions:
            if left > 0:
                left = portion.render(left)
        if not all(portion.is_whole for portion in self.portions):
            return False
        fragments = [each for portion in self.portions for each in portion.fragments]
        self.full = _whole(self._head, shapes.join_fragments(self._hash, fragments))
        return True

    def settle(self) -> None:
        """Let go of what it was rendered from."""
        self.portions = ()


def without_identity(text: bytes) -> bytes:
    """A block as clients expect it that take a pending block to have no number and no hash."""
    return b'{"number":null,"hash":null' + text[text.index(_AFTER_IDENTITY) :]


def _head(stored: StoredBlock, size: int) -> bytes:
    """Everything before the transactions."""
    parts = [
        shapes.header_members(stored.header, size),
        b'"uncles":' + shapes.array([shapes.data(uncle.hash) for uncle in stored.uncles]),
    ]
    if stored.withdrawals is not None:
        withdrawals = list(map(shapes.withdrawal, stored.withdrawals))
        parts.append(b'"withdrawals":' + shapes.array(withdrawals))
    return b",".join(parts)


def _whole(head: bytes, transactions: bytes) -> bytes:
    return b"".join((b"{", head, b',"transactions":', transactions, b"}"))
