"""Words in the data of a revert, strict in nothing but bounds."""

from hypothesis import given
from hypothesis import strategies as st

from foreblock.methods.calls.call_methods import PANICS, revert_reason
from support.each_case import each_case

ERROR = bytes.fromhex("08c379a0")
PANIC = bytes.fromhex("4e487b71")


def word(number: int) -> bytes:
    return number.to_bytes(32)


def error(text: bytes, padding: int | None = None) -> bytes:
    """`Error(string)`, padded as Solidity pads it."""
    padding = -len(text) % 32 if padding is None else padding
    return ERROR + word(32) + word(len(text)) + text + bytes(padding)


VECTORS = {
    "nothing": (b"", ""),
    "part of a selector": (ERROR[:3], ""),
    "selector alone": (ERROR, ""),
    "padded text": (error(b"user error"), "user error"),
    "text without padding": (error(b"user error", padding=0), "user error"),
    "text and more": (error(b"user error", padding=100), "user error"),
    "text of a whole word": (error(b"x" * 32), "x" * 32),
    "empty text": (error(b""), ""),
    "offset alone": (ERROR + word(32), ""),
    "length beyond the data": (ERROR + word(32) + word(11) + b"user error", ""),
    "offset beyond the data": (ERROR + word(64) + word(1) + b"x", ""),
    "huge offset": (ERROR + word(2**256 - 1) + word(1) + b"x", ""),
    "huge length": (ERROR + word(32) + word(2**256 - 1) + b"x", ""),
    "text behind a gap": (ERROR + word(64) + word(0) + word(2) + b"hi", "hi"),
    "text that is not UTF-8": (error(b"a\xffb"), "a�b"),
    "text with a quote": (error('say "ä"\n'.encode()), 'say "ä"\n'),
    "custom error": (bytes.fromhex("cafebabe") + word(1), ""),
    "panic": (PANIC + word(0x11), "arithmetic underflow or overflow"),
    "panic and more": (PANIC + word(0x12) + b"more", "division or modulo by zero"),
    "unknown panic": (PANIC + word(0x99), "unknown panic code: 0x99"),
    "huge panic": (PANIC + word(2**255), f"unknown panic code: {2**255:#x}"),
    "panic cut short": (PANIC + word(1)[:-1], ""),
}


@each_case("name", VECTORS)
def test_reason(name: str) -> None:
    output, reason = VECTORS[name]
    assert revert_reason(output) == reason


@each_case("code", PANICS)
def test_every_panic_has_words(code: int) -> None:
    assert revert_reason(PANIC + word(code)) == PANICS[code]


@given(st.sampled_from([b"", ERROR, PANIC, ERROR + word(32)]), st.binary(max_size=200))
def test_any_data_has_a_reason_or_none(start: bytes, rest: bytes) -> None:
    assert isinstance(revert_reason(start + rest), str)


@given(st.text())
def test_every_text_survives(text: str) -> None:
    assert revert_reason(error(text.encode())) == text
