"""Byte-for-byte comparison of stores with LMDB's own library.

Compares the tables that commits determine. Data specific to a store is excluded: trie nodes, the
indices of logs and addresses (rows `L`, `T`, `a`), its id, its note.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import lmdb

TABLES = (b"flat", b"deltas", b"codes", b"sealed", b"partials", b"rows", b"trash")
LOCAL_ROWS = (b"L", b"T", b"a")


def differences(stores: Sequence[Path]) -> list[str]:
    """Return the differences of stores from the first one; all are closed and at one commit."""
    found = []
    for other in stores[1:]:
        for table in TABLES:
            for key in _unequal(stores[0], other, table):
                found.append(f"{other}: {table.decode()} differs at {key.hex()}")
                break
    return found


def _unequal(one: Path, other: Path, table: bytes) -> Iterator[bytes]:
    left, right = _entries(one, table), _entries(other, table)
    while True:
        a, b = next(left, None), next(right, None)
        if a is None and b is None:
            return
        if a != b:
            yield min(each[0] for each in (a, b) if each is not None)


def _entries(store: Path, table: bytes) -> Iterator[tuple[bytes, bytes]]:
    with lmdb.open(str(store), readonly=True, max_dbs=32, lock=False) as environment:
        database = environment.open_db(table, create=False)
        with environment.begin() as reading:
            for key, value in reading.cursor(database):
                if table != b"rows" or not key.startswith(LOCAL_ROWS):
                    yield bytes(key), bytes(value)


def count_entries(store: Path) -> int:
    """The number of entries in the compared tables."""
    return sum(1 for table in TABLES for _ in _entries(store, table))
