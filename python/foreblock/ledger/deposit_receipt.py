"""The two fields that only the receipt of a deposit has, read from its encoding."""

from collections.abc import Iterator
from typing import Final

DEPOSIT: Final = 0x7E
# status, cumulative gas, bloom, logs, and from Canyon on the nonce and the version
FIELDS: Final = 6


def deposit_fields(receipt: bytes) -> tuple[int, int] | None:
    """The nonce of a deposit and the version of its receipt; none where they are not stored.

    The receipt is one of our own: its encoding is canonical.
    """
    if receipt[0] != DEPOSIT:
        return None
    start, end = _payload(receipt, 1)
    items = list(_items(receipt, start, end))
    if len(items) < FIELDS:
        return None
    nonce, version = items[-2:]
    return int.from_bytes(nonce), int.from_bytes(version)


def _items(encoded: bytes, at: int, end: int) -> Iterator[bytes]:
    """The payloads of the items of an RLP list."""
    while at < end:
        start, stop = _payload(encoded, at)
        yield encoded[start:stop]
        at = stop


def _payload(encoded: bytes, at: int) -> tuple[int, int]:
    """Where the payload of the item at this offset begins and ends."""
    kind = encoded[at]
    if kind < 0x80:  # a byte that stands for itself
        return at, at + 1
    base = 0xC0 if kind >= 0xC0 else 0x80
    if kind - base <= 55:
        return at + 1, at + 1 + kind - base
    start = at + 1 + (kind - base - 55)
    return start, start + int.from_bytes(encoded[at + 1 : start])
