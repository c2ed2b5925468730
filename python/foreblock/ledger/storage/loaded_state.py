"""Accounts on their way from a worker to the writer of a dev chain, in a file.

A state may have many megabytes, more than goes over the bus. The worker reads what the client
sent, in any of the formats of `genesis.allocation`, and writes cheats in portions; the writer
sets each portion in an index of its own, so that no flashblock is longer than a feed carries.

    file    portions, each a length (4 bytes, big-endian) and a row of `cheat_rows`
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from foreblock.ledger.genesis.allocation import read_allocation
from foreblock.ledger.storage.cheat_rows import decode_cheats, encode_cheats, in_portions
from foreblock.types import Cheat

LENGTH: Final = 4


def write_loaded(data: bytes, file: Path, most: int) -> None:
    """Write the accounts in what a client sent, `most` bytes unpacked; raises `BadGenesis`."""
    with file.open("wb") as out:
        for portion in in_portions(_cheats(data, most)):
            row = encode_cheats(portion)
            out.write(len(row).to_bytes(LENGTH) + row)


def read_loaded(file: Path) -> Iterator[tuple[Cheat, ...]]:
    """The portions in a file."""
    with file.open("rb") as source:
        while length := source.read(LENGTH):
            yield decode_cheats(source.read(int.from_bytes(length)))


def _cheats(data: bytes, most: int) -> Iterator[Cheat]:
    for address, account in read_allocation(data, most).items():
        slots = tuple(account.storage.items())
        yield Cheat(address, account.balance, account.nonce, account.code, slots)
