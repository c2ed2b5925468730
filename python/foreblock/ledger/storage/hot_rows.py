"""The rows of the keys that are in use on a partial base: what to fetch again at another anchor.

    rows             key                    value
    hot account      K ‖ address (20)       when it was wanted last (8), slots (32 each)

Times are numbers that grow, of no clock. No answer depends on these rows: the writer puts them now
and then, without a number, and reads them when it starts. They stay when the store begins anew.
"""

import struct
from collections.abc import Mapping, Sequence
from typing import Final

from foreblock._engine import Store, View
from foreblock.errors import StoreDamaged

HOT: Final = b"K"
MOST_ROWS: Final = 1 << 20
ADDRESS_BYTES: Final = 20
WORD: Final = 32
_USED: Final = struct.Struct(">Q")

HotRow = tuple[int, tuple[int, ...]]


def put_hot(store: Store, put: Mapping[bytes, HotRow], gone: Sequence[bytes]) -> None:
    """Keep these accounts, and those no longer."""
    rows = [(HOT + address, _encoded(*row)) for address, row in put.items()]
    store.put_rows(rows, [HOT + address for address in gone])


def read_hot(view: View) -> dict[bytes, HotRow]:
    """All accounts. Raises `StoreDamaged`."""
    return dict(map(_decoded, view.rows(HOT, MOST_ROWS)))


def _encoded(used: int, slots: Sequence[int]) -> bytes:
    return _USED.pack(used) + b"".join(slot.to_bytes(WORD) for slot in slots)


def _decoded(row: tuple[bytes, bytes]) -> tuple[bytes, HotRow]:
    key, value = row
    address, slots = key[len(HOT) :], value[_USED.size :]
    if len(address) != ADDRESS_BYTES or len(value) < _USED.size or len(slots) % WORD:
        raise StoreDamaged(f"the row of a hot account: {key.hex()}")
    (used,) = _USED.unpack_from(value)
    words = range(0, len(slots), WORD)
    return address, (used, tuple(int.from_bytes(slots[at : at + WORD]) for at in words))
