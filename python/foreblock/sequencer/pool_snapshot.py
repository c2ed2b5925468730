"""Snapshots of the transactions that wait, for queries of the pool.

A snapshot holds references, taken at one moment on the thread that writes the network. A
transaction that has run in the open index and is not committed counts as waiting, and can run.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from foreblock.sequencer.transaction_pool import TransactionPool
from foreblock.types import Transaction


class PoolSnapshot(NamedTuple):
    """Transactions that wait, and the counts of the whole pool."""

    transactions: list[tuple[Transaction, bool]]  # each with whether it can run
    size: int  # bytes of these, as they are encoded
    pending: int  # in the whole pool: those that can run
    queued: int  # and those that wait for a nonce


class PoolReader:
    """The pool of a sequencer, and the transactions that have run since the last commit."""

    def __init__(self, pool: TransactionPool, ran: Mapping[bytes, Transaction]) -> None:
        self._pool = pool
        self._ran = ran

    def numbers(self) -> PoolSnapshot:
        """The counts, without transactions."""
        return self._snapshot([], 0)

    def found(self, hashes: Iterable[bytes]) -> PoolSnapshot:
        """The transactions with these hashes."""
        both = (self._ran.get(each) or self._pool.get(each) for each in hashes)
        found = [(each, True) for each in both if each is not None]
        return self._snapshot(found, _size(found))

    def of_senders(self, senders: Iterable[bytes]) -> PoolSnapshot:
        """The transactions of these senders."""
        chosen = frozenset(senders)
        found = [(each, True) for each in self._ran.values() if each.sender in chosen]
        for sender in chosen:
            found += self._pool.of_sender(sender)
        return self._snapshot(found, _size(found))

    def all(self) -> PoolSnapshot:
        ran = [(each, True) for each in self._ran.values()]
        return self._snapshot([*ran, *self._pool.content()], _size(ran) + self._pool.size)

    def _snapshot(self, found: list[tuple[Transaction, bool]], size: int) -> PoolSnapshot:
        gapped = self._pool.gapped
        return PoolSnapshot(found, size, len(self._pool) - gapped + len(self._ran), gapped)


def _size(found: Iterable[tuple[Transaction, bool]]) -> int:
    return sum(len(each.raw) for each, _ in found)
