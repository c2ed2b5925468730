"""Accounts on their way from a worker to the writer of a dev chain, in a file.

A state may have many megabytes, more than goes over the bus. The worker reads what the client
sent, in any of the formats of `genesis.allocation`, and writes cheats in portions; the writer
sets each portion in an index of its own, so that no flashblock is longer than a feed carries.

    file    portions, each a length (4 bytes, big-endian) and a row of `cheat_rows`
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from foreblock.ledger.genesis.allocation import read_allocation
from foreblock.ledger.storage.cheat_rows import decode_cheats, encode_cheats
from foreblock.types import Cheat

LENGTH: Final = 4
SLOTS: Final = 4_096  # of one cheat
PORTION: Final = 1 << 20  # bytes, about: 4 MiB as JSON


def write_loaded(data: bytes, file: Path) -> None:
    """Write the accounts in what a client sent; raises `BadGenesis`."""
    with file.open("wb") as out:
        for portion in _portions(_cheats(data)):
            row = encode_cheats(portion)
            out.write(len(row).to_bytes(LENGTH) + row)


def read_loaded(file: Path) -> Iterator[tuple[Cheat, ...]]:
    """The portions in a file."""
    with file.open("rb") as source:
        while length := source.read(LENGTH):
            yield decode_cheats(source.read(int.from_bytes(length)))


def _cheats(data: bytes) -> Iterator[Cheat]:
    for address, account in read_allocation(data).items():
        slots = list(account.storage.items())
        yield Cheat(address, account.balance, account.nonce, account.code, tuple(slots[:SLOTS]))
        for start in range(SLOTS, len(slots), SLOTS):
            yield Cheat(address, storage=tuple(slots[start : start + SLOTS]))


def _portions(cheats: Iterable[Cheat]) -> Iterator[list[Cheat]]:
    portion: list[Cheat] = []
    size = 0
    for each in cheats:
        portion.append(each)
        size += 80 + len(each.code or b"") + 70 * len(each.storage)
        if size >= PORTION:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion
