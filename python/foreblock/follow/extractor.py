"""Read many slots of many contracts inside one `eth_call`. No I/O.

The call overrides code: each contract gets `READER`, which keeps its storage and returns the
requested slots; an address of our own gets `DISPATCHER`, which calls one contract after the other.
An endpoint that ignores overrides finds no code at that address and returns nothing, so its
response has the wrong length and is refused.

Calldata is one group for each contract: a word with the bytes of its keys above its address,
then the keys. The result is the words of all slots, in the same order. Precompiles cannot be read
like this: their code is not used.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

WORD: Final = 32
_ADDRESS_BITS: Final = 160
_PRECOMPILES: Final = 1 << 16  # addresses below it may be precompiles, also of other chains

# The last 20 bytes of keccak256("foreblock extractor").
DISPATCHER_ADDRESS: Final = bytes.fromhex("8d64ec077cde93743e429ac2cfd58a269b691a89")

# [x, y] is the stack, its top first. Nothing is newer than Byzantium.
#
#   RETURNDATASIZE                     [0]        i = 0, before any call
#   JUMPDEST loop
#   DUP1 CALLDATALOAD SLOAD            [value, i]
#   DUP2 MSTORE                        [i]        memory[i] = storage[calldata[i]]
#   PUSH1 32 ADD                       [i]        i += 32
#   CALLDATASIZE DUP2 LT               [i < size, i]
#   PUSH1 loop JUMPI                   [i]
#   CALLDATASIZE RETURNDATASIZE RETURN            memory[0 : size]
READER: Final = bytes.fromhex("3d 5b 803554 8152 602001 368110 600157 363df3")

# Needs Constantinople, for SHR. Calldata has one group at least.
#
#   PUSH1 0 PUSH1 0                    [at, out]
#   JUMPDEST loop                      [at, out]
#   DUP1 CALLDATALOAD                  [head, at, out]
#   DUP1 PUSH1 160 SHR                 [size, head, at, out]
#   DUP1 DUP4 PUSH1 32 ADD DUP6        [out, at + 32, size, size, head, at, out]
#   CALLDATACOPY                       [size, head, at, out]   the keys, to memory[out]
#   DUP1 DUP5 DUP3 DUP2 DUP6 GAS       [gas, head, out, size, out, size, size, head, at, out]
#   STATICCALL                         [ok, size, head, at, out]   keys in, words out
#   DUP2 RETURNDATASIZE EQ AND         [ok and as long as asked for, size, head, at, out]
#   PUSH1 fine JUMPI                   [size, head, at, out]
#   PUSH1 0 DUP1 REVERT
#   JUMPDEST fine
#   SWAP1 POP                          [size, at, out]
#   SWAP2 DUP3 ADD                     [out + size, at, size]
#   SWAP2 ADD PUSH1 32 ADD             [at + 32 + size, out + size]
#   CALLDATASIZE DUP2 LT               [at < size of calldata, at, out]
#   PUSH1 loop JUMPI                   [at, out]
#   POP PUSH1 0 RETURN                               memory[0 : out]
DISPATCHER: Final = bytes.fromhex(
    "60006000 5b 8035 8060a01c 80836020018537 8084828185 5afa 813d1416 602457 600080fd"
    "5b 9050 918201 9101602001 368110 600457 506000f3"
)

Slots = Mapping[bytes, Sequence[int]]


def is_readable(address: bytes) -> bool:
    """Return True if a call can read slots of this account: no precompile, nor our own."""
    return int.from_bytes(address) >= _PRECOMPILES and address != DISPATCHER_ADDRESS


def calldata(slots: Slots) -> bytes:
    """The input of the call that reads these slots, in this order."""
    parts = []
    for address, keys in slots.items():
        head = (len(keys) * WORD) << _ADDRESS_BITS | int.from_bytes(address)
        parts.append(head.to_bytes(WORD))
        parts.extend(key.to_bytes(WORD) for key in keys)
    return b"".join(parts)


def overrides(addresses: Iterable[bytes]) -> dict[bytes, bytes]:
    """Code by address, for the call that reads slots of these accounts."""
    return {DISPATCHER_ADDRESS: DISPATCHER, **dict.fromkeys(addresses, READER)}


def words(slots: Slots, output: bytes) -> dict[bytes, list[tuple[int, int]]]:
    """The values of slots in the output of the call. Raises `ValueError` for a wrong length."""
    expected = WORD * sum(map(len, slots.values()))
    if len(output) != expected:
        raise ValueError(f"expected {expected} bytes, found {len(output)}")
    found, at = {}, 0
    for address, keys in slots.items():
        values = (output[at + WORD * i : at + WORD * (i + 1)] for i in range(len(keys)))
        found[address] = [
            (key, int.from_bytes(value)) for key, value in zip(keys, values, strict=True)
        ]
        at += WORD * len(keys)
    return found
