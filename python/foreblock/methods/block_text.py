"""Rendered blocks, and the ones that are kept.

A block has two forms. That with hashes is whole from the start; full transactions are
rendered in portions, because each sender has to be recovered. Rendered blocks are kept
by their hash, from which all of them follows, up to a number of bytes.
"""

from collections import OrderedDict
from typing import Final

from foreblock.ledger.stored_block import StoredBlock
from foreblock.methods import shapes

PORTION: Final = 32  # transactions rendered at once: about 2 ms


class BlockText:
    """One sealed block as JSON."""

    def __init__(self, stored: StoredBlock) -> None:
        self._stored: StoredBlock | None = stored
        self._count: Final = len(stored.body.transactions)
        self._hash: Final = stored.header.hash
        self._head: Final = _head(stored)
        self._fragments: list[bytes] = []
        self.hashes: Final = _whole(
            self._head, shapes.array(list(map(shapes.data, stored.transaction_hashes())))
        )

    @property
    def is_whole(self) -> bool:
        """Whether all transactions are rendered."""
        return len(self._fragments) == self._count

    @property
    def full(self) -> bytes:
        """The form with full transactions, once it is whole."""
        return _whole(self._head, shapes.join_fragments(self._hash, self._fragments))

    @property
    def size(self) -> int:
        """About how many bytes it takes to keep."""
        return len(self._head) + len(self.hashes) + sum(map(len, self._fragments))

    def render_some(self) -> bool:
        """Render the next transactions; true when none are left."""
        stored, start = self._stored, len(self._fragments)
        if stored is not None:
            optimism = bool(stored.receipts)
            for index, transaction in enumerate(stored.transactions(start, start + PORTION), start):
                deposit = stored.deposit_fields(index) if optimism else None
                self._fragments.append(shapes.fragment(transaction, index, stored.header, deposit))
        return self.is_whole

    def settle(self) -> None:
        """Let go of what it was rendered from."""
        self._stored = None


def _head(stored: StoredBlock) -> bytes:
    """Everything before the transactions."""
    parts = [
        shapes.header_members(stored.header, stored.size),
        b'"uncles":' + shapes.array([shapes.data(uncle.hash) for uncle in stored.body.uncles]),
    ]
    if stored.body.withdrawals is not None:
        withdrawals = list(map(shapes.withdrawal, stored.body.withdrawals))
        parts.append(b'"withdrawals":' + shapes.array(withdrawals))
    return b",".join(parts)


def _whole(head: bytes, transactions: bytes) -> bytes:
    return b"".join((b"{", head, b',"transactions":', transactions, b"}"))


class BlockTexts:
    """Rendered blocks by their hash; the one not asked for longest goes first."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes: Final = max_bytes
        self._bytes = 0
        self._texts: OrderedDict[bytes, BlockText] = OrderedDict()

    def get(self, block_hash: bytes) -> BlockText | None:
        """A rendered block, if it is kept."""
        text = self._texts.get(block_hash)
        if text is not None:
            self._texts.move_to_end(block_hash)
        return text

    def keep(self, block_hash: bytes, text: BlockText) -> None:
        """Keep a block that will not change any more."""
        text.settle()
        former = self._texts.pop(block_hash, None)
        self._bytes += text.size - (0 if former is None else former.size)
        self._texts[block_hash] = text
        while self._bytes > self._max_bytes:
            _, oldest = self._texts.popitem(last=False)
            self._bytes -= oldest.size
