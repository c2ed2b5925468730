"""One block as JSON, put together from the texts of its portions.

A block has two forms: with hashes, and with full transactions. Each is put together when it
is first asked for, some transactions at a time; a long one is left in pieces.
"""

from binascii import hexlify
from collections.abc import Sequence
from typing import Final

from foreblock.ledger.reading.stored_block import StoredBlock
from foreblock.methods import shapes
from foreblock.methods.portion_text import PortionText
from foreblock.scheduling.reply import Text, in_pieces, length_of
from foreblock.scheduling.steps import Steps
from foreblock.scheduling.thresholds import THRESHOLDS

# Where number and hash, the identity of a block, end in its text.
_AFTER_IDENTITY: Final = b',"parentHash":'


class BlockText:
    """Both forms of a block, as far as they were asked for."""

    def __init__(self, stored: StoredBlock, portions: Sequence[PortionText]) -> None:
        encoded_bytes = sum(portion.encoded_bytes for portion in portions)
        self._hash: Final = stored.header.hash
        self._head: Final = _head(stored, stored.size(encoded_bytes))
        self.full: Text | None = None
        self.hashes: Text | None = None
        self.size = len(self._head)  # about how many bytes it takes to keep

    def join(self, portions: Sequence[PortionText], *, full: bool) -> Steps[Text]:
        """One form, from portions that are rendered."""
        between = b'},{"blockHash":"0x%b",' % hexlify(self._hash) if full else b","
        before, end = (between[2:], b"}]}") if full else (b"", b"]}")
        pieces = [b'{%b,"transactions":[' % self._head]
        some = THRESHOLDS.joined_transactions
        for portion in portions:
            texts = portion.fragments if full else portion.hashes
            for start in range(0, len(texts), some):
                pieces.append(before + between.join(texts[start : start + some]))
                before = between
                yield None
        pieces.append(end if len(pieces) > 1 else b"]}")
        text = in_pieces(pieces)
        if full:
            self.full = text
        else:
            self.hashes = text
        self.size += length_of(text)
        return text


def without_identity(text: Text) -> Text:
    """A block as clients expect it that take a pending block to have no number and no hash."""
    first = text if isinstance(text, bytes) else text[0]
    first = b'{"number":null,"hash":null' + first[first.index(_AFTER_IDENTITY) :]
    return first if isinstance(text, bytes) else [first, *text[1:]]


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
