"""rpc.discover: a valid OpenRPC document with the real parameters and results of methods."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import CHECKOUT
from foreblock.conformance.cases import read_cases
from foreblock.methods import make_families
from foreblock.methods.openrpc import Shape, make_document, read_signature, summary_of
from foreblock.methods.openrpc.schemas import CORE, SCHEMAS
from foreblock.settings import Settings
from support.each_case import each_case
from support.json_schema import Validator
from support.rpc_pages import rpc_text
from support.servers.asking import Asker, error
from support.servers.long_work import scheduler

FAMILIES = make_families(Settings(), scheduler(1))
METHODS = {method.name: method for family in FAMILIES for method in family.methods}
SCHEMA_FILES = CHECKOUT / "tests" / "support" / "openrpc"


def schema(name: str) -> Any:  # noqa: ANN401, it is JSON
    return json.loads((SCHEMA_FILES / f"{name}.json").read_text("utf-8"))


OPENRPC = schema("openrpc")
VALIDATOR = Validator(OPENRPC, schema("json-schema"))


def test_a_document_is_valid_in_both_dialects(preconf: Asker, ethereum: Asker) -> None:
    for client in (preconf, ethereum):
        document = client.ask("rpc.discover")
        assert list(VALIDATOR.failures(document, OPENRPC, OPENRPC)) == []
        assert [each["name"] for each in document["methods"]] == list(METHODS)
        assert client.ask("rpc.discover") == document


def test_an_invalid_document_is_noticed(preconf: Asker) -> None:
    document = preconf.ask("rpc.discover")
    for spoiled in (
        document | {"openrpc": "9"},
        {name: value for name, value in document.items() if name != "info"},
        document | {"methods": [{"name": 1, "params": []}]},
        document | {"components": {"schemas": {"Data": {"type": "bytes"}}}},
    ):
        assert list(VALIDATOR.failures(spoiled, OPENRPC, OPENRPC))


def test_the_dialect_decides_whether_a_block_is_required(preconf: Asker, ethereum: Asker) -> None:
    def block(client: Asker) -> Any:  # noqa: ANN401, it is JSON
        found = {each["name"]: each for each in client.ask("rpc.discover")["methods"]}
        return found["eth_getBalance"]["params"][1]["required"]

    assert block(preconf) is True
    assert block(ethereum) is False


@each_case("name", METHODS)
def test_every_method_has_a_summary_and_known_shapes(name: str) -> None:
    method = METHODS[name]
    assert summary_of(method).endswith("."), f"{name} lacks a sentence"
    signature = read_signature(method.signature)
    shapes = [each.shape.name for each in signature.parameters] + [signature.result.name]
    assert set(shapes) <= set(SCHEMAS), f"{name}: add its shapes to methods/openrpc/schemas.py"
    optional = [each.mark == "?" for each in signature.parameters]
    assert optional == sorted(optional), "what may be left out comes last"


def references(value: object) -> set[str]:
    """The names of the components that a part of the document refers to."""
    return set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(value)))


def test_shapes_are_used_and_refer_to_known_ones() -> None:
    assert {name for each in SCHEMAS.values() for name in references(each)} <= set(SCHEMAS)
    used = references(make_document(FAMILIES, block_required=True)["methods"])
    while more := {name for each in used for name in references(SCHEMAS[each])} - used:
        used |= more
    assert set(CORE) <= used <= set(SCHEMAS)


def test_signatures_are_taken_apart() -> None:
    found = read_signature("a_b(x: Hash, y!: Data, z?: Hash[]?) -> Hash?[]")
    assert found.name == "a_b"
    assert [(each.name, each.mark) for each in found.parameters] == [
        ("x", ""), ("y", "!"), ("z", "?"),
    ]  # fmt: skip
    assert found.parameters[2].shape == Shape("Hash", ("[]", "?"))
    assert found.result.schema["type"] == "array"
    for wrong in ("a", "a()", "a() -> hash", "a(x) -> Hash"):
        with pytest.raises(ValueError, match="not a"):
            read_signature(wrong)


def results(folder: Path) -> Iterator[tuple[str, str, Any]]:
    """The result of every exchange in a folder of cases, with the name of its case."""
    for case in read_cases(folder):
        for exchange in case.exchanges:
            request, reply = json.loads(exchange.request), json.loads(exchange.reply or b"{}")
            if isinstance(request, dict) and "result" in reply:
                yield str(case), request["method"], reply["result"]


def check_results(folder: Path) -> int:
    """Check results against their schemas; return the number of checked results."""
    components = {"components": {"schemas": SCHEMAS}}
    checked = 0
    for case, name, result in results(folder):
        if name not in METHODS:
            continue
        shape = read_signature(METHODS[name].signature).result
        assert list(VALIDATOR.failures(result, shape.schema, components)) == [], case
        checked += 1
    return checked


def test_results_of_the_cases_here_have_their_shapes() -> None:
    assert check_results(CHECKOUT / "tests" / "cases") > 20


def test_results_of_the_published_cases_have_their_shapes(conformance: Path) -> None:
    assert check_results(conformance) > 80


def test_answers_to_the_examples_have_their_shapes(preconf: Asker) -> None:
    """Every method has an example in the docs, so every result schema is checked against a
    response.
    """
    components = {"components": {"schemas": SCHEMAS}}
    for body in re.findall(r"^--> (.*)$", rpc_text(), flags=re.MULTILINE):
        request = json.loads(body)
        answer = json.loads(preconf.reply(body.encode()).body)
        if "result" in answer:
            shape = read_signature(METHODS[request["method"]].signature).result
            failures = VALIDATOR.failures(answer["result"], shape.schema, components)
            assert list(failures) == [], request["method"]


def test_modules_are_the_prefixes_of_methods(preconf: Asker) -> None:
    modules = preconf.ask("rpc_modules")
    assert set(modules) == {name.partition("_")[0] for name in METHODS if "_" in name}
    assert set(modules.values()) == {"1.0"}
    assert preconf.ask("rpc.discover", 1) == error(-32602, "too many arguments, want at most 0")
