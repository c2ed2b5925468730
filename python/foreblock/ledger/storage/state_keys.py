"""Keys of a state that is known in part: missed by a run, or to be fetched. No I/O.

The engine collects the keys that a run misses (`MissingKeys`). `StateKeys` are keys as a plain
value, in which they are requested, compared, and sent between processes.
"""

from collections.abc import Iterable, Mapping
from typing import Final, Self

import msgspec
from msgspec import Struct

from foreblock._engine import MissingKeys
from foreblock.errors import BusBroken

NO_ADDRESS: Final = b""
_NO_SLOTS: Final[frozenset[int]] = frozenset()

_Packed = tuple[
    frozenset[bytes],
    dict[bytes, list[bytes]],
    dict[bytes, bytes],
    frozenset[bytes],
    frozenset[int],
]
_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(_Packed).decode


class StateKeys(Struct, frozen=True):
    """Keys of one state. A code is named by its hash, with an account that has it.

    If no such account is known, `NO_ADDRESS` takes its place. `codes_of` are accounts whose code is
    wanted whatever its hash is, so that it comes in the same round trip.
    """

    accounts: frozenset[bytes] = frozenset()
    slots: Mapping[bytes, frozenset[int]] = {}
    codes: Mapping[bytes, bytes] = {}
    codes_of: frozenset[bytes] = frozenset()
    blocks: frozenset[int] = frozenset()

    @classmethod
    def of(cls, misses: MissingKeys) -> Self:
        """Return the keys that a run missed, without slots that only old blocks have."""
        gone = misses.destroyed_after
        return cls(
            frozenset(misses.accounts),
            {at: frozenset(keys) for at, keys in misses.slots.items() if keys and at not in gone},
            misses.codes,
            blocks=frozenset(misses.blocks),
        )

    @classmethod
    def union(cls, parts: Iterable["StateKeys"]) -> Self:
        """Return the keys of all parts; a code has the account that one of them knows."""
        parts = list(parts)
        slots: dict[bytes, set[int]] = {}
        codes: dict[bytes, bytes] = {}
        for each in parts:
            for address, keys in each.slots.items():
                slots.setdefault(address, set()).update(keys)
            for code, home in each.codes.items():
                codes[code] = codes.get(code) or home
        return cls(
            frozenset().union(*(each.accounts for each in parts)),
            {address: frozenset(keys) for address, keys in slots.items()},
            codes,
            frozenset().union(*(each.codes_of for each in parts)),
            frozenset().union(*(each.blocks for each in parts)),
        )

    def __len__(self) -> int:
        slots = sum(map(len, self.slots.values()))
        return len(self.accounts) + slots + len(self.codes) + len(self.codes_of) + len(self.blocks)

    def also(self, other: "StateKeys") -> "StateKeys":
        """Return the keys of both."""
        return StateKeys.union((self, other))

    def without(self, other: "StateKeys") -> "StateKeys":
        """Return these keys without those of another."""
        slots = {a: keys - other.slots.get(a, _NO_SLOTS) for a, keys in self.slots.items()}
        return StateKeys(
            self.accounts - other.accounts,
            {address: keys for address, keys in slots.items() if keys},
            {code: at for code, at in self.codes.items() if code not in other.codes},
            self.codes_of - other.codes_of,
            self.blocks - other.blocks,
        )

    def still_missing(self, missed: MissingKeys) -> "StateKeys":
        """Return these keys without the accounts and slots that are not missed."""
        accounts, slots = missed.accounts, missed.slots  # each access makes a copy
        left = {at: keys.intersection(slots.get(at, ())) for at, keys in self.slots.items()}
        return msgspec.structs.replace(
            self,
            accounts=self.accounts.intersection(accounts),
            slots={address: keys for address, keys in left.items() if keys},
        )

    def first(self, most: int) -> "StateKeys":
        """Return up to about `most` of these keys, those of an account together if they fit."""
        if len(self) <= most:
            return self
        slots: dict[bytes, frozenset[int]] = {}
        taken, left = set[bytes](), most
        for address in sorted(self.accounts | self.slots.keys() | self.codes_of):
            if left <= 0:
                break
            keys = sorted(self.slots.get(address, ()))[:left]
            if keys:
                slots[address] = frozenset(keys)
            taken.add(address)
            left -= max(1, len(keys))
        if not taken:
            return self
        return StateKeys(self.accounts & taken, slots, codes_of=self.codes_of & taken)

    def pack(self) -> bytes:
        """Return the keys as bytes. MessagePack has no integers of 256 bits: slots are bytes."""
        slots = {address: list(map(packed_int, keys)) for address, keys in self.slots.items()}
        return _encode((self.accounts, slots, self.codes, self.codes_of, self.blocks))

    @classmethod
    def unpack(cls, data: bytes) -> Self:
        """Return the keys in these bytes. Raises `BusBroken`."""
        try:
            accounts, packed, codes, codes_of, blocks = _decode(data)
        except msgspec.MsgspecError as why:
            raise BusBroken(str(why)) from None
        slots = {at: frozenset(map(int.from_bytes, keys)) for at, keys in packed.items()}
        return cls(accounts, slots, codes, codes_of, blocks)


def packed_int(number: int) -> bytes:
    """Return a number as bytes without leading zeros."""
    return number.to_bytes((number.bit_length() + 7) // 8)
