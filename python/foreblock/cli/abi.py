"""Encode and decode calls: signatures to call data, outputs to text, revert data to reasons.

    balanceOf(address)(uint256)      a function, its inputs and, optionally, its outputs

Types are address, bool, uintN, intN, bytesN, bytes and string; arrays and tuples are refused,
and `--data` takes any call data. Outputs are read strictly, revert reasons leniently, since
some contracts leave out padding. No I/O.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from foreblock.errors import InvalidArgument
from foreblock.primitives import format_data, parse_address, parse_data, parse_number
from foreblock.types import keccak256

WORD: Final = 32
ERROR_STRING: Final = bytes.fromhex("08c379a0")  # selector of Error(string)
PANIC: Final = bytes.fromhex("4e487b71")  # selector of Panic(uint256)
# Codes of Solidity's Panic, in its documentation's words.
PANICS: Final = {
    0x00: "generic panic",
    0x01: "assertion failed",
    0x11: "arithmetic overflow or underflow",
    0x12: "division or modulo by zero",
    0x21: "conversion to an enum out of range",
    0x22: "storage byte array encoded wrongly",
    0x31: "pop of an empty array",
    0x32: "index out of bounds",
    0x41: "too much memory",
    0x51: "call of an uninitialised function",
}

_SIGNATURE = re.compile(r"([A-Za-z_$][\w$]*)\(([^()]*)\)(?:\(([^()]*)\))?", re.ASCII)
_NUMBER = re.compile(r"(u?)int(\d*)")
_BYTES = re.compile(r"bytes(\d+)")


@dataclass(frozen=True)
class Function:
    """A function: its selector, inputs, and outputs if given."""

    selector: bytes
    inputs: tuple[str, ...]
    outputs: tuple[str, ...] | None

    def call_data(self, arguments: Sequence[str]) -> bytes:
        """Encode selector and arguments."""
        if len(arguments) != len(self.inputs):
            raise InvalidArgument(
                f"the function takes {len(self.inputs)} arguments, {len(arguments)} were given"
            )
        heads, tails = b"", b""
        for kind, text in zip(self.inputs, arguments, strict=True):
            encoded = _encode(kind, text)
            if kind in ("bytes", "string"):
                heads += (WORD * len(self.inputs) + len(tails)).to_bytes(WORD, "big")
                tails += encoded
            else:
                heads += encoded
        return self.selector + heads + tails

    def values(self, output: bytes) -> list[str]:
        """Decode the output to text."""
        return [_decode(kind, output, at * WORD) for at, kind in enumerate(self.outputs or ())]


def parse_function(signature: str) -> Function:
    """Parse a signature. Raises `InvalidArgument`."""
    match = _SIGNATURE.fullmatch(signature.replace(" ", ""))
    if match is None:
        raise InvalidArgument(f"{signature!r} is not a signature such as balanceOf(address)")
    name, inputs, outputs = match.groups()
    kinds = _kinds(inputs)
    selector = keccak256(f"{name}({','.join(kinds)})".encode())[:4]
    return Function(selector, kinds, None if outputs is None else _kinds(outputs))


def revert_reason(data: bytes) -> str | None:
    """The reason in revert data, if it is Error(string) or Panic(uint256)."""
    if data[:4] == PANIC and len(data) >= 4 + WORD:
        code = int.from_bytes(data[4 : 4 + WORD], "big")
        return f"panic 0x{code:02x}: {PANICS.get(code, 'unknown')}"
    if data[:4] == ERROR_STRING:
        try:
            return _tail(data[4:], 0).decode("utf-8", "replace")
        except InvalidArgument:
            return None
    return None


def _kinds(text: str) -> tuple[str, ...]:
    return tuple(_kind(each) for each in text.split(",")) if text else ()


def _kind(name: str) -> str:
    """The canonical name of a type that is supported."""
    if name in ("address", "bool", "bytes", "string"):
        return name
    if match := _NUMBER.fullmatch(name):
        bits = int(match[2] or 256)
        if 8 <= bits <= 256 and bits % 8 == 0 and not match[2].startswith("0"):
            return f"{match[1]}int{bits}"
    if (match := _BYTES.fullmatch(name)) and match[1] in map(str, range(1, WORD + 1)):
        return name
    raise InvalidArgument(f"type {name!r} is not supported; give the call data with --data")


def _encode(kind: str, text: str) -> bytes:
    try:
        return _word(kind, text)
    except ValueError as failure:
        raise InvalidArgument(f"{text!r} is no {kind}: {failure}") from failure


def _word(kind: str, text: str) -> bytes:
    match kind:
        case "address":
            return parse_address(text).rjust(WORD, b"\0")
        case "bool":
            if text not in ("true", "false"):
                raise ValueError("expected true or false")
            return bytes(WORD - 1) + bytes([text == "true"])
        case "string":
            return _dynamic(text.encode())
        case "bytes":
            return _dynamic(parse_data(text))
        case _ if match := _BYTES.fullmatch(kind):
            return parse_data(text, int(match[1])).ljust(WORD, b"\0")
        case _ if match := _NUMBER.fullmatch(kind):
            return _number(text, int(match[2]), signed=not match[1])
        case _:
            raise AssertionError(kind)


def _number(text: str, bits: int, *, signed: bool) -> bytes:
    negative = signed and text.startswith("-")
    number = parse_number(text[1:] if negative else text, bits)
    number = -number if negative else number
    if signed and not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise ValueError(f"expected -2^{bits - 1} to 2^{bits - 1} - 1")
    return number.to_bytes(WORD, "big", signed=signed)


def _dynamic(data: bytes) -> bytes:
    return len(data).to_bytes(WORD, "big") + data.ljust(-(-len(data) // WORD) * WORD, b"\0")


def _decode(kind: str, output: bytes, at: int) -> str:
    word = output[at : at + WORD]
    if len(word) < WORD:
        raise InvalidArgument(f"the output has no {kind} at byte {at}: it has {len(output)} bytes")
    match kind:
        case "address":
            return format_data(word[12:])
        case "bool":
            return "true" if any(word) else "false"
        case "bytes":
            return format_data(_tail(output, at))
        case "string":
            return _tail(output, at).decode("utf-8", "replace")
        case _ if match := _BYTES.fullmatch(kind):
            return format_data(word[: int(match[1])])
        case _:
            return str(int.from_bytes(word, "big", signed=kind.startswith("int")))


def _tail(data: bytes, at: int) -> bytes:
    """The bytes that the word at `at` points to; padding may be missing."""
    start = int.from_bytes(data[at : at + WORD], "big")
    length = int.from_bytes(data[start : start + WORD], "big")
    if start + WORD + length > len(data):
        raise InvalidArgument("the output ends before its bytes do")
    return data[start + WORD : start + WORD + length]
