"""Lines of console.log: every overload of Hardhat's and Foundry's libraries, and their formats.

`console_vectors.json` has the selectors of all overloads of the libraries of Hardhat 2.10, which
hashed `uint`, and 2.29; calls of the latter, compiled with solc 0.8.30; and texts with specifiers.
Each line is anvil 1.7.1's output for it.
"""

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from foreblock.ledger.tracing.call_tree import logged_line
from support.each_case import each_case
from support.payloads.solidity import call_data, encode

VECTORS = json.loads(Path(__file__).with_name("console_vectors.json").read_text("utf-8"))
VALUES = {"uint256": 1, "int256": 1, "string": b"a", "bool": 1, "address": 1, "bytes": b"\1"}
SHOWN = {
    "uint256": "1", "int256": "1", "string": "a", "bool": "true",
    "address": "0x" + "1".rjust(40, "0"), "bytes": "0x01",
}  # fmt: skip


def test_every_overload_is_known_by_both_selectors() -> None:
    for selector, signature in VECTORS["overloads"]:
        types = [each for each in signature[4:-1].split(",") if each]
        arguments = encode(tuple(VALUES.get(each, 1) for each in types))
        line = logged_line(bytes.fromhex(selector[2:]) + arguments)
        size = {f"bytes{count}": "0x" + "00" * count for count in range(1, 32)}
        shown = SHOWN | size | {"bytes32": "0x" + "1".rjust(64, "0")}
        assert line == " ".join(shown[each] for each in types), signature


@each_case(("data", "line"), VECTORS["lines"])
def test_lines_are_those_of_anvil(data: str, line: str) -> None:
    assert logged_line(bytes.fromhex(data[2:])) == line


@each_case(("text", "kind", "value", "line"), VECTORS["formats"])
def test_specifiers_mean_what_they_mean_to_anvil(
    text: str, kind: str, value: str, line: str
) -> None:
    given = value.encode() if kind == "string" else int(value, 16)
    assert logged_line(call_data(f"log(string,{kind})", text.encode(), given)) == line


def test_too_many_decimals_are_no_specifier() -> None:
    """anvil stops at these."""
    assert logged_line(call_data("log(string,uint256)", b"%1025e", 1)) == "%1025e 1"
    assert logged_line(call_data("log(string,uint256)", b"%99999999e", 1)) == "%99999999e 1"
    assert logged_line(call_data("log(string,uint256)", b"%e", 0)) == "0e0"


def test_what_is_no_call_of_the_console_is_no_line() -> None:
    assert logged_line(b"") is None
    assert logged_line(b"\1\2\3\4") is None
    assert logged_line(call_data("log(uint256)", 1)[:-1]) is None
    assert logged_line(call_data("log(string)", b"text")[:-32]) is None


@given(st.sampled_from([row[0] for row in VECTORS["overloads"]]), st.binary(max_size=400))
def test_any_data_is_a_line_or_none(selector: str, arguments: bytes) -> None:
    line = logged_line(bytes.fromhex(selector[2:]) + arguments)
    controls = set(map(chr, range(32))) - {"\n", "\t"}
    assert line is None or not controls & set(line)
