"""Call data as the ABI specification has it, and reasons as contracts give them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreblock.cli.abi import parse_function, revert_reason
from foreblock.errors import InvalidArgument
from support.each_case import each_case

ADDRESS = "0x" + "ab" * 20


def word(number: int) -> str:
    return f"{number % 2**256:064x}"


@pytest.mark.parametrize(
    ("signature", "arguments", "data"),
    [
        # The first is an example of the ABI specification, the selectors are well known.
        ("baz(uint32,bool)", ["69", "true"], "cdcd77c0" + word(69) + word(1)),
        ("transfer(address,uint)", [ADDRESS, "3"], "a9059cbb" + word(int(ADDRESS, 16)) + word(3)),
        ("totalSupply()", [], "18160ddd"),
        ("f(int8)", ["-1"], parse_function("f(int8)").selector.hex() + "ff" * 32),
    ],
)  # fmt: skip
def test_call_data(signature: str, arguments: list[str], data: str) -> None:
    assert parse_function(signature).call_data(arguments).hex() == data


def test_dynamic_arguments_follow_the_heads() -> None:
    function = parse_function("f(string,uint256,bytes)")
    data = function.call_data(["abc", "7", "0x" + "11" * 33]).hex()[8:]
    words = [data[at : at + 64] for at in range(0, len(data), 64)]
    assert words == [
        word(96), word(7), word(160),
        word(3), "616263".ljust(64, "0"),
        word(33), "11" * 32, "11".ljust(64, "0"),
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
        ("uint256", "1e3"),
    ],
)
def test_values_outside_their_type_are_refused(kind: str, text: str) -> None:
    with pytest.raises(InvalidArgument, match=f"is no {kind}"):
        parse_function(f"f({kind})").call_data([text])


@each_case(
    "signature",
    ["f", "f(", "f(uint7)", "f(uint264)", "f(uint256[])", "f((bool))", "f(bytes33)", "f(bytes0)",
     "f(uint08)", "1f()", "f(bool,)", "f(int)(x)"],
)  # fmt: skip
def test_signatures_that_are_refused(signature: str) -> None:
    with pytest.raises(InvalidArgument):
        parse_function(signature)


def test_number_of_arguments() -> None:
    with pytest.raises(InvalidArgument, match="takes 1 arguments, 2 were given"):
        parse_function("f(bool)").call_data(["true", "true"])


KINDS = {
    "address": st.binary(min_size=20, max_size=20).map(lambda data: "0x" + data.hex()),
    "bool": st.sampled_from(["true", "false"]),
    "uint256": st.integers(0, 2**256 - 1).map(str),
    "int64": st.integers(-(2**63), 2**63 - 1).map(str),
    "bytes7": st.binary(min_size=7, max_size=7).map(lambda data: "0x" + data.hex()),
    "bytes": st.binary(max_size=70).map(lambda data: "0x" + data.hex()),
    "string": st.text(max_size=70),
}


@given(st.data())
def test_what_is_encoded_is_decoded(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from(sorted(KINDS)), max_size=6))
    values = [data.draw(KINDS[kind]) for kind in kinds]
    listed = ",".join(kinds)
    function = parse_function(f"f({listed})({listed})")
    assert function.values(function.call_data(values)[4:]) == values


@pytest.mark.parametrize("output", ["", "00" * 31, word(32), word(32) + word(33) + "00" * 32])
def test_short_output_is_refused(output: str) -> None:
    with pytest.raises(InvalidArgument, match="output"):
        parse_function("f()(string)").values(bytes.fromhex(output))


@each_case(
    ("data", "reason"),
    [
        ("", None),
        ("12345678", None),
        ("08c379a0" + word(32) + word(4) + b"user".hex(), "user"),  # without padding
        ("08c379a0" + word(32) + word(5) + b"user".hex(), None),
        ("4e487b71" + word(0x11), "panic 0x11: arithmetic overflow or underflow"),
        ("4e487b71" + word(0x99), "panic 0x99: unknown"),
    ],
)
def test_revert_reasons(data: str, reason: str | None) -> None:
    assert revert_reason(bytes.fromhex(data)) == reason
