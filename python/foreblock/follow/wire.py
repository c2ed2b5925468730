"""The writer's response to a worker that misses state: values as bytes. No I/O.

The writer has proven the values, or the operator trusts upstreams; workers on the same machine take
them as they are. MessagePack has no integers of 256 bits: slots and balances are bytes without
leading zeros.
"""

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Struct

from foreblock.errors import BusBroken
from foreblock.follow.fetch_result import FetchResult
from foreblock.follow.learned_state import KnownValues
from foreblock.ledger.storage.state_keys import packed_int
from foreblock.types import Account


class _Packed(Struct, frozen=True, array_like=True):
    accounts: dict[bytes, tuple[int, bytes, bytes] | None]  # nonce, balance, hash of the code
    slots: dict[bytes, list[tuple[bytes, bytes]]]
    codes: list[bytes]
    blocks: dict[int, bytes]


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(_Packed).decode


def pack_values(result: FetchResult, blocks: Mapping[int, bytes]) -> bytes:
    """Return the values of a result, and hashes of blocks before the base, as bytes."""
    accounts = {address: claim.account for address, claim in result.accounts.items()}
    return _encode(
        _Packed(
            {
                address: each and (each.nonce, packed_int(each.balance), each.code_hash)
                for address, each in accounts.items()
            },
            {
                address: [(packed_int(slot), packed_int(value)) for slot, value in values.items()]
                for address, values in result.slots.items()
            },
            list(result.codes.values()),
            dict(blocks),
        )
    )


def unpack_values(data: bytes) -> KnownValues:
    """Return the values in these bytes. Raises `BusBroken`."""
    try:
        packed = _decode(data)
        return KnownValues(
            {
                address: each
                and Account(nonce=each[0], balance=int.from_bytes(each[1]), code_hash=each[2])
                for address, each in packed.accounts.items()
            },
            {
                address: {int.from_bytes(slot): int.from_bytes(value) for slot, value in values}
                for address, values in packed.slots.items()
            },
            packed.codes,
            packed.blocks,
        )
    except (msgspec.MsgspecError, ValueError, OverflowError) as why:
        raise BusBroken(str(why)) from None
