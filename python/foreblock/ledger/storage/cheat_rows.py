"""Cheats in rows: the accounts that a user has set in one index of a block.

    rows       key                                  value
    cheats     p ‖ block (8) ‖ partial (8) ‖ c      MessagePack: a list of cheats

A block that is begun anew has its cheats again, in one index: later values replace earlier
ones. Nothing but an account's new fields is kept of a cheat, so the order within an index, and
how often a field was set, changes nothing.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
from msgspec import Struct

from foreblock._engine import View
from foreblock.ledger.storage.partial_rows import cheats_key
from foreblock.types import Cheat

MOST_SLOTS: Final = 4_096  # of one cheat in a portion
PORTION: Final = 1 << 20  # bytes, about: less than 4 MiB as JSON
_CHEAT_BYTES: Final = 80
_SLOT_BYTES: Final = 70


class _Stored(Struct, frozen=True, array_like=True):
    """A cheat whose numbers are bytes: MessagePack has none above 64 bits."""

    address: bytes
    balance: bytes | None
    nonce: int | None
    code: bytes | None
    storage: dict[bytes, bytes]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[_Stored]).decode


def encode_cheats(cheats: Iterable[Cheat]) -> bytes:
    """The row."""
    return _encode([_stored(each) for each in cheats])


def read_cheats(view: View, block: int, partials: Iterable[int]) -> tuple[Cheat, ...]:
    """The cheats in these partials of a block, as one for each account."""
    rows = (view.row(cheats_key(block, each)) for each in partials)
    return merged(each for row in rows if row is not None for each in decode_cheats(row))


def decode_cheats(row: bytes) -> tuple[Cheat, ...]:
    """The cheats in a row."""
    return tuple(_cheat(each) for each in _decode(row))


def merged(cheats: Iterable[Cheat]) -> tuple[Cheat, ...]:
    """One cheat for each account that does what these do one after the other."""
    found: dict[bytes, Cheat] = {}
    slots: dict[bytes, dict[int, int]] = {}
    for each in cheats:
        slots.setdefault(each.address, {}).update(each.storage)
        before = found.get(each.address, each)
        found[each.address] = Cheat(
            each.address,
            before.balance if each.balance is None else each.balance,
            before.nonce if each.nonce is None else each.nonce,
            before.code if each.code is None else each.code,
        )
    return tuple(
        Cheat(address, each.balance, each.nonce, each.code, tuple(slots[address].items()))
        for address, each in found.items()
    )


def in_portions(cheats: Iterable[Cheat]) -> Iterator[list[Cheat]]:
    """The same in portions, each of which a flashblock can carry."""
    portion: list[Cheat] = []
    size = 0
    for each in cheats:
        for part in _parts(each):
            portion.append(part)
            size += _CHEAT_BYTES + len(part.code or b"") + _SLOT_BYTES * len(part.storage)
            if size >= PORTION:
                yield portion
                portion, size = [], 0
    if portion:
        yield portion


def _parts(cheat: Cheat) -> Iterator[Cheat]:
    slots = cheat.storage
    yield Cheat(cheat.address, cheat.balance, cheat.nonce, cheat.code, slots[:MOST_SLOTS])
    for start in range(MOST_SLOTS, len(slots), MOST_SLOTS):
        yield Cheat(cheat.address, storage=slots[start : start + MOST_SLOTS])


def _stored(cheat: Cheat) -> _Stored:
    return _Stored(
        cheat.address,
        None if cheat.balance is None else cheat.balance.to_bytes(32),
        cheat.nonce,
        cheat.code,
        {slot.to_bytes(32): value.to_bytes(32) for slot, value in cheat.storage},
    )


def _cheat(stored: _Stored) -> Cheat:
    return Cheat(
        stored.address,
        None if stored.balance is None else int.from_bytes(stored.balance),
        stored.nonce,
        stored.code,
        tuple((int.from_bytes(a), int.from_bytes(b)) for a, b in stored.storage.items()),
    )
