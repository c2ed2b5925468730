"""Call data according to the ABI specification, outputs, and revert reasons."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreblock.errors import InvalidArgument, Undecodable
from foreblock.types import decode_output, encode_call, keccak256, revert_reason
from support.each_case import each_case

ADDRESS = "0x" + "ab" * 20
ERROR = bytes.fromhex("08c379a0")
PANIC = bytes.fromhex("4e487b71")


def word(number: int) -> bytes:
    return (number % 2**256).to_bytes(32)


def selector(signature: str) -> bytes:
    return keccak256(signature.encode())[:4]


# --- Calls ------------------------------------------------------------------------------


@each_case(
    ("signature", "arguments", "data"),
    [
        # The first is an example of the ABI specification; the selectors are well known.
        ("baz(uint32,bool)", ["69", "true"], bytes.fromhex("cdcd77c0") + word(69) + word(1)),
        ("transfer(address,uint)", [ADDRESS, "3"],
         bytes.fromhex("a9059cbb") + word(int(ADDRESS, 16)) + word(3)),
        ("transfer(address to, uint256 amount) returns (bool)", [ADDRESS, "3"],
         bytes.fromhex("a9059cbb") + word(int(ADDRESS, 16)) + word(3)),
        ("totalSupply()", [], bytes.fromhex("18160ddd")),
        ("f(int8)", ["-1"], selector("f(int8)") + word(-1)),
        # An example of the ABI specification.
        ("f(uint,uint32[],bytes10,bytes)",
         ["0x123", "[0x456, 0x789]", "0x" + b"1234567890".hex(), "0x" + b"Hello, world!".hex()],
         bytes.fromhex("8be65246") + word(0x123) + word(0x80) + b"1234567890".ljust(32, b"\0")
         + word(0xe0) + word(2) + word(0x456) + word(0x789) + word(13)
         + b"Hello, world!".ljust(32, b"\0")),
        ("f((uint,bool),uint8[2])", ["(7, true)", "[1,2]"],
         selector("f((uint256,bool),uint8[2])") + word(7) + word(1) + word(1) + word(2)),
        ("f((uint))", ["(7)"], selector("f((uint256))") + word(7)),
        ("f(string)", [' "quoted" '],
         selector("f(string)") + word(32) + word(10) + b' "quoted" '.ljust(32, b"\0")),
        ("f(string[])", ['["a, b", c]'],
         selector("f(string[])") + word(32) + word(2) + word(64) + word(128)
         + word(4) + b"a, b".ljust(32, b"\0") + word(1) + b"c".ljust(32, b"\0")),
    ],
)  # fmt: skip
def test_call_data(signature: str, arguments: list[str], data: bytes) -> None:
    assert encode_call(signature, arguments) == data


def test_dynamic_arguments_follow_the_heads() -> None:
    data = encode_call("f(string,uint256,bytes)", ["abc", "7", "0x" + "11" * 33])[4:]
    assert [data[at : at + 32] for at in range(0, len(data), 32)] == [
        word(96), word(7), word(160),
        word(3), b"abc".ljust(32, b"\0"),
        word(33), b"\x11" * 32, b"\x11".ljust(32, b"\0"),
    ]  # fmt: skip


@each_case(
    ("kind", "text"),
    [
        ("uint8", "256"),
        ("uint8", "-1"),
        ("int8", "128"),
        ("int8", "-129"),
        ("bool", "1"),
        ("address", "0x12"),
        ("bytes4", "0x12"),
        ("bytes", "0x1"),
        ("uint256", "1.5"),
        ("uint256", ""),
        ("uint8[]", "[1, 256]"),
        ("uint8[]", "1"),
        ("uint8[2]", "[1]"),
        ("(bool,uint8)", "(true)"),
        ("(bool,uint8)", "(true, 1"),
    ],
)
def test_values_outside_their_type_are_refused(kind: str, text: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        encode_call(f"f({kind})", [text])
    message = str(refused.value)
    assert message.startswith(f'"{text}" is not a valid {kind}: ')
    assert "\n" not in message


@each_case(
    "signature",
    ["f", "f(", "f(uint7)", "f(uint264)", "f(bytes33)", "f(bytes0)", "1f()", "f(bool)(x)",
     "f((bool)", "f(bool[)", "f(bool[-1])", "", "f()()()", "f() f()"],
)  # fmt: skip
def test_signatures_that_are_refused(signature: str) -> None:
    with pytest.raises(InvalidArgument, match="is not a signature such as balanceOf") as refused:
        encode_call(signature, [])
    assert "\n" not in str(refused.value)


def test_number_of_arguments() -> None:
    with pytest.raises(InvalidArgument, match=r"^f takes 1 argument, 2 given$"):
        encode_call("f(bool)", ["true", "true"])


# --- Outputs ----------------------------------------------------------------------------

KINDS: dict[str, st.SearchStrategy[object]] = {
    "address": st.binary(min_size=20, max_size=20),
    "bool": st.booleans(),
    "uint256": st.integers(0, 2**256 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "bytes7": st.binary(min_size=7, max_size=7),
    "bytes": st.binary(max_size=70),
    "string": st.text(st.characters(exclude_characters='"'), max_size=70),
}


def written(value: object) -> str:
    """A value as an argument."""
    match value:
        case bool():
            return str(value).lower()
        case bytes():
            return "0x" + value.hex()
        case str():
            return f'"{value}"'
        case list():
            return f"[{','.join(map(written, value))}]"
        case tuple():
            return f"({','.join(map(written, value))})"
        case _:
            return str(value)


@st.composite
def typed(draw: st.DrawFn, depth: int = 2) -> tuple[str, object]:
    """A type and a value of this type."""
    shape = draw(st.sampled_from(["plain", "array", "fixed", "tuple"] if depth else ["plain"]))
    if shape == "plain":
        kind = draw(st.sampled_from(sorted(KINDS)))
        return kind, draw(KINDS[kind])
    if shape == "tuple":
        members = draw(st.lists(typed(depth - 1), min_size=1, max_size=3))
        return f"({','.join(k for k, _ in members)})", tuple(value for _, value in members)
    kind = draw(st.sampled_from(sorted(KINDS)))
    least = int(shape == "fixed")
    values = draw(st.lists(KINDS[kind], min_size=least, max_size=3))
    return f"{kind}[{len(values) if least else ''}]", values


@given(st.lists(typed(), max_size=4))
def test_encoded_values_are_decoded(members: list[tuple[str, object]]) -> None:
    listed = ",".join(kind for kind, _ in members)
    values = [value for _, value in members]
    arguments = [each if isinstance(each, str) else written(each) for each in values]
    signature = f"f({listed})({listed})"
    data = encode_call(signature, arguments)[4:]
    assert decode_output(signature, data) == values


def test_a_signature_without_outputs_has_no_values() -> None:
    assert decode_output("f()", word(1)) == []


def test_decoding_is_lenient() -> None:
    assert decode_output("f()(bool,address)", word(2) + b"\xff" * 32) == [True, b"\xff" * 20]
    assert decode_output("f()(string)", word(32) + word(2) + b"a\xff") == ["a�"]


@each_case("output", [b"", bytes(31), word(32), word(32) + word(33) + bytes(32), word(2**255)])
def test_short_output_is_refused(output: bytes) -> None:
    with pytest.raises(Undecodable, match=rf"^output: {len(output)} bytes are not \(string\): "):
        decode_output("f()(string)", output)


# --- Revert reasons -------------------------------------------------------------------


def error(text: bytes, padding: int | None = None) -> bytes:
    """`Error(string)`, padded as in Solidity."""
    padding = -len(text) % 32 if padding is None else padding
    return ERROR + word(32) + word(len(text)) + text + bytes(padding)


REASONS = {
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
    "panic and more": (PANIC + word(0x12) + b"more", "division or modulo by zero"),
    "unknown panic": (PANIC + word(0x99), "unknown panic code: 0x99"),
    "huge panic": (PANIC + word(2**255), f"unknown panic code: {2**255:#x}"),
    "panic cut short": (PANIC + word(1)[:-1], ""),
}
PANICS = {  # geth's texts
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


@each_case("name", REASONS)
def test_revert_reason(name: str) -> None:
    output, reason = REASONS[name]
    assert revert_reason(output) == reason


def test_every_panic_has_the_text_of_geth() -> None:
    assert {code: revert_reason(PANIC + word(code)) for code in PANICS} == PANICS


@given(st.sampled_from([b"", ERROR, PANIC, ERROR + word(32)]), st.binary(max_size=200))
def test_any_data_has_a_reason_or_none(start: bytes, rest: bytes) -> None:
    assert isinstance(revert_reason(start + rest), str)


@given(st.text())
def test_every_text_survives(text: str) -> None:
    assert revert_reason(error(text.encode())) == text
