"""The calls of a run as text: console lines, the failure, the whole tree. No I/O.

All of it is read from the text of geth's callTracer (`Tracer("calls")`).

Contracts log lines with `console.log`, the same library in Hardhat and Foundry. Each overload
`log(type,type,…)` is a function of an address without code, so a call does nothing, and its data
are the line. There are hundreds of them: up to four values of six types, and one of `bytes1` to
`bytes32`. Early versions of the library hashed `uint` and `int` where the ABI has `uint256` and
`int256`, so both spellings are known.

A first value that is a text may contain specifiers for the following values; other values are
appended after spaces. They mean what Foundry makes of them: %s the value itself, %d and %i a
number, %x its hex, %e its decimal exponent, %18e that many decimals, %o the value in quotes, %% a
percent sign. A value that a specifier does not fit is NaN.
"""

import re
from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Final

import msgspec
from msgspec import Struct

from foreblock._engine import decode_output, keccak256
from foreblock.errors import Undecodable
from foreblock.ledger.rules.transaction_rules import checksum_address

CONSOLE: Final = bytes.fromhex("000000000000000000636f6e736f6c652e6c6f67")
MOST_LINES: Final = 1_000  # of the console, and of a tree; the rest is counted
MOST_DATA: Final = 2 + 2 * 68  # characters of the data of a revert that are shown
SELECTOR: Final = 2 + 2 * 4  # characters
REVERTED: Final = "execution reverted"  # geth's error of a call that reverted
INDENT: Final = "    "
_CONSOLE: Final = "0x" + CONSOLE.hex()


class TracedCall(Struct, rename="camel", frozen=True):
    """A call, with those that it made."""

    type: str
    gas_used: str
    to: str = ""  # unknown of a creation that failed
    value: str = "0x0"
    input: str = "0x"
    output: str = "0x"
    error: str = ""
    revert_reason: str = ""
    calls: list["TracedCall"] = []


_decode_call: Final = msgspec.json.Decoder(TracedCall).decode


def read_call(text: bytes) -> TracedCall | None:
    """The outermost call of a trace; None if calls are nested too deep to be read."""
    try:
        return _decode_call(text)
    except RecursionError:
        return None


def console_lines(call: TracedCall) -> list[str]:
    """The lines that contracts logged in a call, even if it was reverted."""
    logged = (
        logged_line(bytes.fromhex(each.input[2:])) for _, each in _all(call) if each.to == _CONSOLE
    )
    return _bounded(line for line in logged if line is not None)


def failure(call: TracedCall) -> str:
    """Why a call failed, in the words of anvil where it has some; empty where it did not."""
    if call.error != REVERTED:
        return call.error
    if call.revert_reason:
        return f"reverted with: {printable(call.revert_reason)}"
    if call.output == "0x":
        return "reverted"
    more = "…" if len(call.output) > MOST_DATA else ""
    return f"reverted with: custom error {call.output[:MOST_DATA]}{more}"


def explained(call: TracedCall, *, with_tree: bool) -> list[str]:
    """A call in lines: its console, all its calls, and why it failed."""
    lines = console_lines(call)
    if with_tree:
        lines += ["Traces:", *("  " + line for line in tree_lines(call))]
    if call.error:
        lines += [f"{INDENT}Error: {failure(call)}"]
    return lines


def tree_lines(call: TracedCall) -> list[str]:
    """All calls, each on a line, those that a call made below it."""
    return _bounded("  " * depth + _described(each) for depth, each in _all(call))


def _all(call: TracedCall) -> Iterator[tuple[int, TracedCall]]:
    """A call and all below it, each with its depth, in the order in which they began."""
    waiting = [(0, call)]
    while waiting:
        depth, each = waiting.pop()
        yield depth, each
        waiting += [(depth + 1, below) for below in reversed(each.calls)]


def _described(call: TracedCall) -> str:
    """One line: gas, kind, target, selector, value, and why it failed."""
    parts = [f"[{int(call.gas_used, 16)}]", call.type]
    if call.to:
        parts.append(checksum_address(bytes.fromhex(call.to[2:])))
    if not call.type.startswith("CREATE") and len(call.input) >= SELECTOR:
        parts.append(call.input[:SELECTOR])
    if value := int(call.value, 16):
        parts.append(f"value {value}")
    if call.error:
        parts.append(f"← {failure(call)}")
    return " ".join(parts)


def _bounded(lines: Iterator[str]) -> list[str]:
    """The first lines, and how many more there are."""
    shown: list[str] = []
    more = 0
    for line in lines:
        if len(shown) < MOST_LINES:
            shown.append(line)
        else:
            more += 1
    return [*shown, f"… and {more} more"] if more else shown


TYPES: Final = ("uint256", "int256", "string", "bool", "address", "bytes")
MOST_VALUES: Final = 4
_SELECTOR_BYTES: Final = 4
MOST_DECIMALS: Final = 1024  # of a specifier
EARLY: Final = {"uint256": "uint", "int256": "int"}  # the spelling of early versions
Value = int | bool | str | bytes  # addresses are `Address`
_SPECIFIER: Final = re.compile(r"%(%|[sdiox]|([0-9]{0,4})e)")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # except line ends and tabs


class Address(bytes):
    """An address among the values of a line."""


def logged_line(data: bytes) -> str | None:
    """Decode a call of the console; None if its overload is unknown or its data are too short."""
    types = _overloads().get(data[:_SELECTOR_BYTES])
    if types is None:
        return None
    try:
        decoded = decode_output(f"log()({','.join(types)})", data[_SELECTOR_BYTES:])
    except Undecodable:
        return None
    pairs = zip(types, decoded, strict=True)
    return printable(_line([Address(v) if kind == "address" else v for kind, v in pairs]))


def printable(text: str) -> str:
    """Escape control characters in the text of a contract, which a terminal would obey."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


@cache
def _overloads() -> dict[bytes, tuple[str, ...]]:
    """The types of the values of each overload, by its selector."""
    found: dict[bytes, tuple[str, ...]] = {}
    for count in range(MOST_VALUES + 1):
        for types in product(TYPES, repeat=count):
            early = tuple(EARLY.get(each, each) for each in types)
            for spelled in {types, early}:
                found.setdefault(_selector(spelled), types)
    for size in range(1, 33):
        types = (f"bytes{size}",)
        found.setdefault(_selector(types), types)
    return found


def _selector(types: tuple[str, ...]) -> bytes:
    return keccak256(f"log({','.join(types)})".encode())[:_SELECTOR_BYTES]


# --- Formatting ------------------------------------------------------------------------


def _line(values: list[Value]) -> str:
    if not values or not isinstance(values[0], str):
        return " ".join(_formatted(each, "s") for each in values)
    rest = iter(values[1:])
    text = _SPECIFIER.sub(lambda found: _replaced(found, rest), values[0])
    shown = [_formatted(each, "s") for each in rest]
    return " ".join([text, *shown] if values[0] else shown)


def _replaced(found: re.Match[str], rest: Iterator[Value]) -> str:
    """The replacement of a specifier; itself if no value is left for it."""
    if found[1] == "%":
        return "%"
    if int(found[2] or 0) > MOST_DECIMALS:
        return found[0]
    value = next(rest, None)
    if value is None:
        return found[0]
    return _formatted(value, found[1][-1], found[2])


def _formatted(value: Value, specifier: str, decimals: str | None = None) -> str:
    """A value as a specifier wants it."""
    if isinstance(value, bool):
        text, number = ("true" if value else "false"), str(int(value))
        return {"s": text, "d": number, "o": f"'{text}'"}.get(specifier, "NaN")
    if isinstance(value, int):
        return _number(value, specifier, decimals)
    text = _text(value)
    shown = {"s": text, "o": f"'{text}'"}
    if not isinstance(value, str):
        shown["x"] = text
    return shown.get(specifier, "NaN")


def _text(value: str | bytes) -> str:
    if isinstance(value, str):
        return value
    return checksum_address(value) if isinstance(value, Address) else "0x" + value.hex()


def _number(value: int, specifier: str, decimals: str | None) -> str:
    if specifier == "x":
        return hex(value % (1 << 256))
    if specifier != "e":
        return str(value)
    size, sign = abs(value), "-" if value < 0 else ""
    if decimals:
        return sign + _with_decimals(size, int(decimals))
    exponent = len(str(size)) - 1
    return f"{sign}{_with_decimals(size, exponent)}e{exponent}"


def _with_decimals(size: int, decimals: int) -> str:
    digits = str(size).rjust(decimals + 1, "0")
    whole, part = digits[: len(digits) - decimals], digits[len(digits) - decimals :].rstrip("0")
    return f"{whole}.{part}" if part else whole
