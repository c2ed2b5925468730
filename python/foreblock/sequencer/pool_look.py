"""A look at the transactions that wait: references taken at one moment, for those who ask.

Called on the thread that writes the network. What has run in the open index and is not
committed counts as waiting, and can run.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from foreblock.sequencer.transaction_pool import TransactionPool
from foreblock.types import Transaction


class PoolLook(NamedTuple):
    """Transactions that wait, and the numbers of the whole pool."""

    transactions: list[tuple[Transaction, bool]]  # each with whether it can run
    size: int  # bytes of these, as they are encoded
    pending: int  # in the whole pool: those that can run
    queued: int  # and those that wait for a nonce


class PoolWindow:
    """The pool of a sequencer, and the transactions that have run since the last commit."""

    def __init__(self, pool: TransactionPool, ran: Mapping[bytes, Transaction]) -> None:
        self._pool = pool
        self._ran = ran

    def numbers(self) -> PoolLook:
        """No transaction, only how many there are."""
        return self._look([], 0)

    def found(self, hashes: Iterable[bytes]) -> PoolLook:
        """Those of these hashes that wait."""
        both = (self._ran.get(each) or self._pool.get(each) for each in hashes)
        found = [(each, True) for each in both if each is not None]
        return self._look(found, _size(found))

    def of_senders(self, senders: Iterable[bytes]) -> PoolLook:
        """Those of these senders."""
        chosen = frozenset(senders)
        found = [(each, True) for each in self._ran.values() if each.sender in chosen]
        for sender in chosen:
            found += self._pool.of_sender(sender)
        return self._look(found, _size(found))

    def all(self) -> PoolLook:
        """All of them."""
        ran = [(each, True) for each in self._ran.values()]
        return self._look([*ran, *self._pool.content()], _size(ran) + self._pool.size)

    def _look(self, found: list[tuple[Transaction, bool]], size: int) -> PoolLook:
        gapped = self._pool.gapped
        return PoolLook(found, size, len(self._pool) - gapped + len(self._ran), gapped)


def _size(found: Iterable[tuple[Transaction, bool]]) -> int:
    return sum(len(each.raw) for each, _ in found)
