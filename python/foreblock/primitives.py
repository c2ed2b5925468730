"""Forms at the edges: hex, read strictly; RLP; foreign texts made safe to log; similar words.

Inside foreblock numbers are `int` and byte strings are `bytes`; hex exists only in files and
on the wire. A refused text raises `ValueError` with the reason; the caller knows the place of
the text and adds it.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final, Union

ADDRESS_BYTES: Final = 20
HASH_BYTES: Final = 32

ZERO_ADDRESS: Final = bytes(ADDRESS_BYTES)
ZERO_HASH: Final = bytes(HASH_BYTES)

LONGEST: Final = 200  # characters of a foreign text that are kept

RlpItem = Union[bytes, int, "Sequence[RlpItem]"]

_RLP_STRING: Final = 0x80
_RLP_LIST: Final = 0xC0
_RLP_SHORT: Final = 55  # payloads up to this length have a prefix of one byte

_HEX_DIGITS = re.compile(r"[0-9a-fA-F]*", re.ASCII)
_DECIMAL = re.compile(r"0|[1-9][0-9]*", re.ASCII)
_SIMILAR: Final = 0.65  # of two words, from 0 to 1
_NOT_HEX: Final = "not all characters are hex digits"
_UNPRINTABLE: Final = "\N{REPLACEMENT CHARACTER}"


def parse_quantity(text: object, bits: int = 256) -> int:
    """The number written as ``0x…`` without leading zeros, at most `bits` wide."""
    digits = _hex_digits(text)
    if not digits:
        raise ValueError("a quantity needs at least one digit")
    if digits[0] == "0" and digits != "0":
        raise ValueError("a quantity has no leading zeros")
    return _bounded(int(digits, 16), bits)


def parse_number(value: object, bits: int = 256) -> int:
    """The number in a genesis file: JSON integer, decimal text or hex text, zeros allowed."""
    if isinstance(value, bool):
        raise ValueError("expected a number, found a boolean")  # noqa: TRY004, see module docstring
    if isinstance(value, int):
        return _bounded(value, bits)
    if isinstance(value, str) and _DECIMAL.fullmatch(value):
        return _bounded(int(value), bits)
    digits = _hex_digits(value)
    if not digits:
        raise ValueError("a number needs at least one digit")
    return _bounded(int(digits, 16), bits)


def parse_data(text: object, length: int | None = None) -> bytes:
    """The bytes written as ``0x…`` with an even number of digits, `length` of them if given."""
    digits = _after_prefix(text)
    if len(digits) % 2:
        raise ValueError("a byte string needs an even number of digits")
    if length is not None and len(digits) != 2 * length:
        raise ValueError(f"expected {length} bytes, found {len(digits) // 2}")
    try:
        data = bytes.fromhex(digits)
    except ValueError:
        raise ValueError(_NOT_HEX) from None
    # Spaces between bytes are passed over by `fromhex`, and only by it.
    if 2 * len(data) != len(digits):
        raise ValueError(_NOT_HEX)
    return data


def parse_address(text: object) -> bytes:
    """The 20 bytes of an address in any letter case; a checksum is not looked at."""
    return parse_data(text, ADDRESS_BYTES)


def parse_hash(text: object) -> bytes:
    """The 32 bytes of a hash."""
    return parse_data(text, HASH_BYTES)


def format_quantity(number: int) -> str:
    """The number as ``0x…`` without leading zeros."""
    if number < 0:
        raise ValueError("a quantity is not negative")
    return hex(number)


def format_data(data: bytes) -> str:
    """The bytes as ``0x…``, two digits each, in lower case."""
    return "0x" + data.hex()


def harmless(text: str, longest: int = LONGEST) -> str:
    """The beginning of a text as one line that can be printed and encoded.

    For texts of feeds and endpoints that go to logs, over the bus and into readiness facts.
    """
    line = " ".join(text[: 4 * longest].split())[:longest]
    return "".join(each if each.isprintable() else _UNPRINTABLE for each in line)


def did_you_mean(word: str, known: Iterable[str], prefix: str = "") -> str:
    """A question that ends an error message, or nothing if no known word is similar."""
    from difflib import get_close_matches  # noqa: PLC0415, only for an error

    found = get_close_matches(word, sorted(known), n=1, cutoff=_SIMILAR)
    return f"; did you mean {prefix}{found[0]}?" if found else ""


def _hex_digits(text: object) -> str:
    digits = _after_prefix(text)
    if not _HEX_DIGITS.fullmatch(digits):
        raise ValueError(_NOT_HEX)
    return digits


def _after_prefix(text: object) -> str:
    if not isinstance(text, str):
        raise ValueError(f"expected hex text, found {_kind(text)}")  # noqa: TRY004, as above
    if not text.startswith("0x"):
        raise ValueError("hex text begins with 0x")
    return text[2:]


def _bounded(number: int, bits: int) -> int:
    if not 0 <= number < 1 << bits:
        raise ValueError(f"expected 0 to 2^{bits} - 1")
    return number


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case list():
            return "a list"
        case dict():
            return "an object"
        case _:
            return type(value).__name__


def encode_rlp(item: RlpItem) -> bytes:
    """Encode bytes, numbers (without leading zeros) and lists of them."""
    if isinstance(item, int):
        item = item.to_bytes((item.bit_length() + 7) // 8)
    if isinstance(item, bytes):
        if len(item) == 1 and item[0] < _RLP_STRING:
            return item
        return _rlp_prefix(_RLP_STRING, len(item)) + item
    return encode_rlp_list([encode_rlp(each) for each in item])


def encode_rlp_list(encoded: Sequence[bytes]) -> bytes:
    """Encode a list of encoded items."""
    payload = b"".join(encoded)
    return rlp_list_prefix(len(payload)) + payload


def rlp_list_prefix(length: int) -> bytes:
    """Return the prefix of a list whose items have this total length."""
    return _rlp_prefix(_RLP_LIST, length)


def _rlp_prefix(kind: int, length: int) -> bytes:
    if length <= _RLP_SHORT:
        return bytes((kind + length,))
    size = (length.bit_length() + 7) // 8
    return bytes((kind + _RLP_SHORT + size,)) + length.to_bytes(size)
