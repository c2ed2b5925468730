"""The pool over a clean stop: a file of the transactions that waited.

A line that names the format, then a record for each transaction in the order in which they
came: a mark, its length, a checksum and its bytes. Damaged bytes are skipped up to the next
mark, and the rest counts. Reading and writing hold one record in memory at a time.

The file is for one start: it is removed when its transactions are in a pool, so that an older
one never restores replaced transactions, and not before, so that a failed start loses none.
Files of earlier versions, lines of hex, are read as well.
"""

import os
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final
from zlib import crc32

from foreblock.errors import Undecodable
from foreblock.types import Transaction, decode_transaction

FORMAT: Final = b"foreblock pool 2\n"
MARK: Final = b"\xfetx\xff"
HEAD: Final = struct.Struct(">4sII")  # the mark, the length and the checksum of a transaction
LONGEST: Final = 1 << 20  # bytes; the pool takes an eighth of it
_CHUNK: Final = 1 << 16


def save_pool(path: Path, transactions: Iterable[Transaction]) -> int:
    """Write the file, whole or not; returns the number of transactions."""
    part, count = _part(path), 0
    try:
        with part.open("wb") as file:
            file.write(FORMAT)
            for each in transactions:
                file.write(HEAD.pack(MARK, len(each.raw), crc32(each.raw)))
                file.write(each.raw)
                count += 1
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    return count


@contextmanager
def saved_pool(path: Path) -> Iterator[Iterator[Transaction]]:
    """The transactions of the file, as far as it is whole; none without a file.

    They are read inside the context. The file is removed at its end, unless an exception shows
    that they were not accepted; an unfinished file is removed at once.
    """
    _part(path).unlink(missing_ok=True)
    try:
        file = path.open("rb")
    except FileNotFoundError:
        yield iter(())
        return
    with file:
        yield _transactions(file)
    path.unlink(missing_ok=True)


def _part(path: Path) -> Path:
    return path.with_name(path.name + ".part")


def _transactions(file: BinaryIO) -> Iterator[Transaction]:
    first = _next_mark(file, 0)
    if first is None:  # nothing waited, or hex, which has none
        file.seek(0)
        found = (_read_line(line) for line in iter(lambda: file.readline(3 * LONGEST), b""))
    else:
        found = (_decoded(raw) for raw in _records(file, first))
    return (each for each in found if each is not None)


def _records(file: BinaryIO, at: int | None) -> Iterator[bytes]:
    while at is not None:
        file.seek(at)
        raw = _record(file)
        if raw is None:
            at = _next_mark(file, at + 1)
        else:
            yield raw
            at += HEAD.size + len(raw)


def _record(file: BinaryIO) -> bytes | None:
    """The transaction of the record that begins here; None if none does, or a damaged one."""
    head = file.read(HEAD.size)
    if len(head) < HEAD.size:
        return None
    mark, length, checksum = HEAD.unpack(head)
    if mark != MARK or length > LONGEST:
        return None
    raw = file.read(length)
    return raw if len(raw) == length and crc32(raw) == checksum else None


def _next_mark(file: BinaryIO, at: int) -> int | None:
    """Where the next mark is, from here on."""
    file.seek(at)
    held = b""
    while chunk := file.read(_CHUNK):
        held += chunk
        found = held.find(MARK)
        if found >= 0:
            return at + found
        at += max(len(held) - len(MARK) + 1, 0)
        held = held[-len(MARK) + 1 :]
    return None


def _decoded(raw: bytes) -> Transaction | None:
    try:
        return decode_transaction(raw, unsigned=True)
    except Undecodable:
        return None


def _read_line(line: bytes) -> Transaction | None:
    """Of an earlier version: the hash and the bytes of a transaction in hex."""
    hash_text, _, raw_text = line.decode("ascii", "replace").strip().partition(" ")
    try:
        transaction = decode_transaction(bytes.fromhex(raw_text))
    except (ValueError, Undecodable):
        return None
    return transaction if transaction.hash.hex() == hash_text else None
