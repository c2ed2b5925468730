"""The page's ABI decoder and encoder, on the examples of Solidity's specification.

https://docs.soliditylang.org/en/latest/abi-spec.html, sections Examples and Use of Dynamic Types.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from foreblock._engine import keccak256
from foreblock.page.files import load_files
from support.browser.chromium import Browser
from support.browser.tab import Tab, opened_tab
from support.chains.dev_service import dev_service
from support.each_case import each_case
from support.servers.toy_endpoint import HttpRequest, ToyResponse, http_endpoint

FILES = load_files()
MULTICALL = "0xca11bde05977b3631167028862be2a173976ca11"
HELLO = "0x" + b"Hello, world!".hex()
EXAMPLES = {
    "baz(uint32,bool)": ("69, true", "cdcd77c0", ["45", "1"]),
    "bar(bytes3[2])": ("[0x616263, 0x646566]", "fce353f6", ["616263<", "646566<"]),
    "sam(bytes,bool,uint256[])": ("0x64617665, true, [1,2,3]", "a5643bf2",
        ["60", "1", "a0", "4", "64617665<", "3", "1", "2", "3"]),
    "f(uint256,uint32[],bytes10,bytes)": (
        f"0x123, [0x456, 0x789], 0x{b'1234567890'.hex()}, {HELLO}", "8be65246",
        ["123", "80", "31323334353637383930<", "e0", "2", "456", "789", "d",
         "48656c6c6f2c20776f726c6421<"]),
    "g(uint256[][],string[])": ('[[1, 2], [3]], ["one", "two", "three"]', "2289b18c",
        ["40", "140", "2", "40", "a0", "2", "1", "2", "1", "3", "3", "60", "a0", "e0", "3",
         "6f6e65<", "3", "74776f<", "5", "7468726565<"]),
}  # fmt: skip


def words(short: list[str]) -> str:
    """Words of 32 bytes; < marks right-padded ones."""
    return "".join(w[:-1].ljust(64, "0") if w.endswith("<") else w.rjust(64, "0") for w in short)


def static(request: HttpRequest) -> ToyResponse:
    """A file of the page; an empty page at any other path."""
    found = FILES.get(request.path.encode())
    if found is None or request.path == "/ui":
        return ToyResponse(
            body=b"<!doctype html><title>abi</title>", headers={"Content-Type": "text/html"}
        )
    return ToyResponse(body=found.text, headers={"Content-Type": found.kind.decode()})


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Tab]:
    with http_endpoint(static) as url, opened_tab(browser, url) as tab:
        yield tab


def run(page: Tab, body: str) -> Any:  # noqa: ANN401, JSON
    """The result of a function body with the module as `abi`; bigints as texts."""
    text = f"import('./ui/abi.js').then((abi) => {{ {body} }})"
    as_text = "(key, value) => (typeof value === 'bigint' ? String(value) : value)"
    return json.loads(page.evaluate(f"{text}.then((value) => JSON.stringify(value, {as_text}))"))


@each_case("signature", EXAMPLES)
def test_examples_of_the_specification(page: Tab, signature: str) -> None:
    arguments, selector, expected = EXAMPLES[signature]
    told = f"const parsed = abi.parseSignature({json.dumps(signature)});"
    name = run(page, f"{told} return abi.canonical(parsed);")
    assert name == signature
    assert keccak256(name.encode())[:4].hex() == selector
    texts = f"abi.split({json.dumps(arguments)})"
    assert run(page, f"{told} return abi.encode(parsed.inputs, {texts});") == words(expected)
    again = run(page, f"{told} return abi.decode(parsed.inputs, '0x{words(expected)}');")
    written = ", ".join(json.dumps(each).replace('"', "") for each in again)
    plain = arguments.replace("0x123", "291").replace("[0x456, 0x789]", "[1110, 1929]")
    assert written.replace(" ", "") == plain.replace('"', "").replace(" ", "")


def test_signatures_as_people_write_them(page: Tab) -> None:
    for text in (
        "balanceOf(address owner) external view returns (uint256 balance)",
        "function balanceOf(address) returns (uint)",
        "balanceOf(address)(uint256)",
        "balanceOf( address ) -> (uint256)",
    ):
        parsed = f"const parsed = abi.parseSignature({json.dumps(text)});"
        found = run(page, f"{parsed} return [abi.canonical(parsed), parsed.outputs[0].canonical];")
        assert found == ["balanceOf(address)", "uint256"]


def test_hashes_are_those_of_the_engine(page: Tab) -> None:
    texts = ["", "abc", "a" * 135, "b" * 136, "c" * 137, "d" * 300]
    body = f"return import('./ui/keccak.js').then((k) => {json.dumps(texts)}.map(k.keccak));"
    assert run(page, body) == [keccak256(text.encode()).hex() for text in texts]


def test_addresses_have_the_checksums_of_eip_55(page: Tab) -> None:
    """The addresses of https://eips.ethereum.org/EIPS/eip-55."""
    addresses = [
        "0x52908400098527886E0F7030069857D2E4169EE7", "0xde709f2102306220921060314715629080e2fb77",
        "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
        "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB", "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
    ]  # fmt: skip
    lower = json.dumps([each.lower() for each in addresses])
    body = f"return import('./ui/names.js').then((names) => {lower}.map(names.addressText));"
    assert run(page, body) == addresses


def test_pasted_abis_are_signatures(page: Tab) -> None:
    pair = {"type": "tuple[]", "name": "pairs", "components": [{"type": "address", "name": "to"}]}
    abi = [
        {"type": "function", "name": "f", "inputs": [pair], "outputs": [{"type": "bool"}]},
        {
            "type": "event",
            "name": "E",
            "inputs": [{"type": "string", "name": "s", "indexed": True}],
        },
        {"type": "constructor", "inputs": []},
    ]
    expected = ["function f((address to)[] pairs) returns (bool)", "event E(string indexed s)"]
    for text in (json.dumps(abi), json.dumps({"abi": abi}), "\n".join(expected)):
        body = f"return import('./ui/abis.js').then((abis) => abis.readAbi({json.dumps(text)}));"
        assert run(page, body) == expected


@each_case(
    ("types", "arguments", "why"),
    [
        ("uint8", "256", "256 is outside uint8"),
        ("int8", "-129", "-129 is outside int8"),
        ("uint256", "one", "not a number: one"),
        ("address", "0x12", "not address: 0x12"),
        ("uint7", "1", "not a type: uint7"),
        ("bytes33", "0x", "not a type: bytes33"),
        ("bool", "maybe", "not a truth value: maybe"),
        ("uint256[2]", "[1]", "uint256[2] needs 2 items"),
        ("uint256[]", "1", "uint256[] is written in brackets: 1"),
    ],
)
def test_what_cannot_be_encoded_says_why(page: Tab, types: str, arguments: str, why: str) -> None:
    body = f"""try {{ abi.encode(abi.parseTypes('{types}'), abi.split('{arguments}')); return ''; }}
        catch (error) {{ return error.message; }}"""
    assert run(page, body) == why


@pytest.mark.parametrize(
    "data",
    ["0x", "0x" + "f" * 64, "0x" + words(["20", "f" * 64]), "0x" + words(["20", "ffff", "0"])],
)
def test_data_that_lies_about_its_length_ends_at_once(page: Tab, data: str) -> None:
    body = f"""try {{ abi.decode(abi.parseTypes('string[][][]'), '{data}'); return ''; }}
        catch (error) {{ return error.message; }}"""
    assert run(page, body) in ("the data is too short", "too many items")


def test_little_data_that_claims_very_many_items_is_refused(page: Tab) -> None:
    """Four nested lists of a hundred: a hundred million items."""
    count = 100
    level = [f"{count:x}", *[f"{32 * count:x}"] * count]
    data = words(["20", *level * 4, "0"])
    body = f"""try {{ abi.decode(abi.parseTypes('uint8[][][][][]'), '0x{data}'); return ''; }}
        catch (error) {{ return error.message; }}"""
    assert run(page, body) == "too many items"


def test_a_real_contract_understands_it(page: Tab, tmp_path: Path) -> None:
    """Multicall3, compiled by solc: tuples with bytes, in lists, in and out."""
    signature = (
        "aggregate3((address target, bool allowFailure, bytes callData)[] calls)"
        " returns ((bool success, bytes returnData)[] results)"
    )
    # getChainId() of itself, and a call that fails and may
    calls = f"[({MULTICALL}, false, 0x3408e470), ({MULTICALL}, true, 0x12345678)]"
    told = f"const parsed = abi.parseSignature({json.dumps(signature)});"
    data = run(page, f"{told} return abi.encode(parsed.inputs, abi.split({json.dumps(calls)}));")
    with dev_service(tmp_path) as (_, client):
        found = client.ask("eth_call", {"to": MULTICALL, "input": "0x82ad56cb" + data}, "latest")
    values = run(page, f"{told} return abi.decode(parsed.outputs, '{found}');")
    assert values == [[[True, "0x" + f"{31337:064x}"], [False, "0x"]]]
