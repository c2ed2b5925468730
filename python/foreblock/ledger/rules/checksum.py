"""Addresses as people read them: the letters' case is a checksum (EIP-55)."""

from foreblock._engine import keccak256


def checksum_address(address: bytes) -> str:
    """The address with its checksum, ``0x`` before it."""
    digits = address.hex()
    nibbles = keccak256(digits.encode()).hex()
    upper = "".join(
        digit.upper() if nibble > "7" else digit
        for digit, nibble in zip(digits, nibbles, strict=False)
    )
    return "0x" + upper
