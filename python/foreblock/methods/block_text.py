"""One block as JSON, put together from the texts of its portions.

A block has two forms: with hashes, and with full transactions. Each is joined when it is
first asked for, and what they have in common is kept with them.
"""

from collections.abc import Sequence
from typing import Final

from foreblock.ledger.stored_block import StoredBlock
from foreblock.methods import shapes
from foreblock.methods.portion_text import PortionText

# Where number and hash, the identity of a block, end in its text.
_AFTER_IDENTITY: Final = b',"parentHash":'


class BlockText:
    """Both forms of a block, as far as they were asked for."""

    def __init__(self, stored: StoredBlock, portions: Sequence[PortionText]) -> None:
        encoded_bytes = sum(portion.encoded_bytes for portion in portions)
        self._hash: Final = stored.header.hash
        self._head: Final = _head(stored, stored.size(encoded_bytes))
        self.full: bytes | None = None
        self.hashes: bytes | None = None

    @property
    def size(self) -> int:
        """About how many bytes it takes to keep."""
        return len(self._head) + len(self.hashes or b"") + len(self.full or b"")

    def join(self, portions: Sequence[PortionText], *, full: bool) -> bytes:
        """One form, from portions that are rendered."""
        if full:
            fragments = [each for portion in portions for each in portion.fragments]
            text = self.full = _whole(self._head, shapes.join_fragments(self._hash, fragments))
        else:
            hashes = [each for portion in portions for each in portion.hashes]
            text = self.hashes = _whole(self._head, shapes.array(hashes))
        return text


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
