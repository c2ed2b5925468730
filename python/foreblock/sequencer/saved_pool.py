"""The pool over a clean stop: a file of what waited, for the next start.

One transaction a line, its hash and its bytes in hex, in the order in which they came. The
hash tells whether the line is whole, so what is damaged is passed over and the rest counts.
The file is for one start: it goes when its transactions are in a pool, so that an older one
never brings back what was replaced since, and no sooner, so that a start that fails loses
none of them.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from foreblock.errors import Undecodable
from foreblock.ledger.transactions import Transaction, decode_transaction


def save_pool(path: Path, transactions: Iterable[Transaction]) -> int:
    """Write the file, whole or not at all; gives how many there are."""
    lines = [f"{each.hash.hex()} {each.raw.hex()}\n" for each in transactions]
    part = path.with_name(path.name + ".part")
    with part.open("w", encoding="ascii") as file:
        file.writelines(lines)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
    return len(lines)


@contextmanager
def saved_pool(path: Path) -> Iterator[list[Transaction]]:
    """What the file holds, as far as it is whole; none where there is no file.

    The file is removed at the end, unless an exception says that they were not taken up.
    """
    try:
        text = path.read_text(encoding="ascii", errors="replace")
    except FileNotFoundError:
        text = ""
    found = (_read(line) for line in text.splitlines())
    yield [each for each in found if each is not None]
    path.unlink(missing_ok=True)


def _read(line: str) -> Transaction | None:
    hash_text, _, raw_text = line.partition(" ")
    try:
        transaction = decode_transaction(bytes.fromhex(raw_text))
    except (ValueError, Undecodable):
        return None
    return transaction if transaction.hash.hex() == hash_text else None
