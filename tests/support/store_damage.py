"""Damage to a copy of a store, made through LMDB without the engine.

The package `lmdb` reads and writes the same file format; the engine deliberately cannot write
invalid rows.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import lmdb

from foreblock.ledger.storage.copy_store import LOCK

Wanted = Callable[[bytes, bytes], bool]


class Rows:
    """The rows of one table, in a transaction."""

    def __init__(self, txn: lmdb.Transaction, table: lmdb._Database) -> None:
        self._txn = txn
        self._table = table

    def items(self) -> list[tuple[bytes, bytes]]:
        with self._txn.cursor(self._table) as cursor:
            return [(bytes(key), bytes(value)) for key, value in cursor]

    def find(self, wanted: Wanted) -> tuple[bytes, bytes]:
        """Find the last matching row."""
        return [row for row in self.items() if wanted(*row)][-1]

    def put(self, key: bytes, value: bytes) -> bytes:
        assert self._txn.put(key, value, db=self._table)
        return key

    def flip(self, wanted: Wanted, at: int = -1) -> bytes:
        """Flip a bit of a byte of the row; return its key."""
        key, value = self.find(wanted)
        changed = bytearray(value)
        changed[at] ^= 1
        return self.put(key, bytes(changed))

    def remove(self, wanted: Wanted) -> bytes:
        """Remove the row; return its key."""
        key, _ = self.find(wanted)
        assert self._txn.delete(key, db=self._table)
        return key


class Tables:
    """The tables of a store, by name; the empty name is LMDB's main table."""

    def __init__(self, env: lmdb.Environment, txn: lmdb.Transaction) -> None:
        self._env = env
        self._txn = txn

    def __getitem__(self, name: str) -> Rows:
        if not name:
            return Rows(self._txn, self._env.open_db(None, txn=self._txn))
        table = self._env.open_db(name.encode(), txn=self._txn, create=False)
        return Rows(self._txn, table)


@contextmanager
def damaging(folder: Path) -> Iterator[Tables]:
    """One transaction on a store that no process has open."""
    (folder / LOCK).unlink(missing_ok=True)
    env = lmdb.open(str(folder), max_dbs=16, map_size=1 << 30)
    try:
        with env.begin(write=True) as txn:
            yield Tables(env, txn)
    finally:
        env.close()
        (folder / LOCK).unlink(missing_ok=True)
