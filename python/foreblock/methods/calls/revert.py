"""The reason in the data of a revert.

Solidity reverts with `Error(string)` or `Panic(uint256)`. Decoding is tolerant: the text must
be inside the data, but need not be padded, and bytes may follow it. Anything else, custom
errors included, has no reason.
"""

from typing import Final

ERROR: Final = bytes.fromhex("08c379a0")  # Error(string)
PANIC: Final = bytes.fromhex("4e487b71")  # Panic(uint256)

# The texts of geth.
PANICS: Final = {
    0x00: "generic panic",
    0x01: "assert(false)",
    0x11: "arithmetic underflow or overflow",
    0x12: "division or modulo by zero",
    0x21: "enum overflow",
    0x22: "invalid encoded storage byte array accessed",
    0x31: "out-of-bounds array access; popping on an empty array",
    0x32: "out-of-bounds access of an array or bytesN",
    0x41: "out of memory",
    0x51: "uninitialized function",
}


def revert_reason(output: bytes) -> str:
    """The reason, or an empty text."""
    selector, arguments = output[:4], output[4:]
    if selector == ERROR:
        return _text(arguments)
    if selector == PANIC and len(arguments) >= 32:
        code = int.from_bytes(arguments[:32])
        return PANICS.get(code, f"unknown panic code: {code:#x}")
    return ""


def _text(arguments: bytes) -> str:
    """The string among ABI-encoded arguments: an offset to its length and its bytes."""
    start = int.from_bytes(arguments[:32])
    if len(arguments) < 64 or start + 32 > len(arguments):
        return ""
    length = int.from_bytes(arguments[start : start + 32])
    text = arguments[start + 32 : start + 32 + length]
    # JSON holds UTF-8 only.
    return text.decode("utf-8", "replace") if len(text) == length else ""
