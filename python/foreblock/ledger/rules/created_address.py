"""The address of a contract that a transaction creates."""

from typing import Final

from foreblock._engine import keccak256

_STRING: Final = 0x80  # RLP: a string of 0 to 55 bytes begins with this and its length
_LIST: Final = 0xC0  # the same for a list


def created_address(creator: bytes, nonce: int) -> bytes:
    """Follows from who creates and from its nonce: the hash of the RLP list of both."""
    number = nonce.to_bytes((nonce.bit_length() + 7) // 8)
    if nonce == 0 or nonce >= _STRING:
        number = bytes([_STRING + len(number)]) + number
    payload = bytes([_STRING + len(creator)]) + creator + number
    return keccak256(bytes([_LIST + len(payload)]) + payload)[12:]
