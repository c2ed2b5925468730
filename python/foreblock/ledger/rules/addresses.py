"""Addresses: the checksum that people read (EIP-55), and those of created contracts."""

from typing import Final

from foreblock._engine import keccak256

_STRING: Final = 0x80  # RLP: a string of 0 to 55 bytes begins with this and its length
_LIST: Final = 0xC0  # the same for a list


def checksum_address(address: bytes) -> str:
    """The address with its checksum, ``0x`` before it."""
    digits = address.hex()
    nibbles = keccak256(digits.encode()).hex()
    upper = "".join(
        digit.upper() if nibble > "7" else digit
        for digit, nibble in zip(digits, nibbles, strict=False)
    )
    return "0x" + upper


def created_address(creator: bytes, nonce: int) -> bytes:
    """The address of a contract: from the hash of the RLP list of its creator and nonce."""
    number = nonce.to_bytes((nonce.bit_length() + 7) // 8)
    if nonce == 0 or nonce >= _STRING:
        number = bytes([_STRING + len(number)]) + number
    payload = bytes([_STRING + len(creator)]) + creator + number
    return keccak256(bytes([_LIST + len(payload)]) + payload)[12:]
