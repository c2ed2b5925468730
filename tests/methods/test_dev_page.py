"""docs/dev-methods.md: every method of dev chains, and examples with the documented results."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from foreblock.methods import make_families
from foreblock.methods.openrpc import read_signature, summary_of
from foreblock.methods.openrpc.schemas import SCHEMAS
from foreblock.methods.openrpc.tool_schemas import DEV
from foreblock.methods.sequencing import Sequencing
from foreblock.methods.table import Family
from foreblock.settings import Settings
from methods.test_openrpc import OPENRPC, VALIDATOR
from support.chains.dev_service import InProcess, dev_service
from support.each_case import each_case
from support.servers.long_work import scheduler

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "dev-methods.md").read_text("utf-8")
EVERYWHERE = {each.title for each in make_families(Settings(), scheduler(1))}
WITH_COMMANDS = make_families(
    Settings(),
    scheduler(1),
    Sequencing(commands=InProcess(None)),  # type: ignore[arg-type]
)
FAMILIES = [each for each in WITH_COMMANDS if each.title not in EVERYWHERE]
METHODS = {method.name: method for family in FAMILIES for method in family.methods}
SECTIONS = re.findall(r"^## `([\w.]+)`\n(.*?)(?=^#{1,2} |\Z)", PAGE, flags=re.DOTALL | re.MULTILINE)
EXAMPLE = re.compile(r"^--> (.*)\n<-- (.*)$", re.MULTILINE)
TABLE = PAGE[PAGE.index("| Method | Other names |") :].partition("\n\n")[0]
ROW = "| `{name}` | {also} | {parameters} |"


def _names(family: Family) -> list[str]:
    return [method.name for method in family.methods]


def test_page_has_every_method_in_order_with_all_names() -> None:
    methods = [method for family in FAMILIES for method in family.methods]
    assert [name for name, _ in SECTIONS] == [method.name for method in methods]
    assert re.findall(r"^# (.*)", PAGE, re.MULTILINE)[1:] == [each.title for each in FAMILIES]
    rows = [row for family in FAMILIES for row in (family.title, *_names(family))]
    assert re.findall(r"^\| (?:\*\*|`)([^`*]*)(?:\*\*|`) \|.*\|.*\|", TABLE, re.MULTILINE) == rows
    for method in methods:
        parameters = read_signature(method.signature).parameters
        names = ", ".join(each.name + ("?" if each.mark == "?" else "") for each in parameters)
        also = ", ".join(f"`{name}`" for name in method.also)
        assert ROW.format(name=method.name, also=also, parameters=names) in PAGE, method.name


@pytest.mark.parametrize(("name", "section"), SECTIONS, ids=[name for name, _ in SECTIONS])
def test_examples_answer_as_shown(tmp_path: Path, name: str, section: str) -> None:
    """On a new chain for each section, mined per transaction; … stands for the rest."""
    examples = EXAMPLE.findall(section)
    assert any(f'"{name}"' in request for request, _ in examples), "it has no example"
    with dev_service(tmp_path) as (_, client):
        for body, shown in examples:
            answer = client.reply(body.encode()).body.decode()
            pattern = ".*".join(map(re.escape, shown.split("…")))
            assert re.fullmatch(pattern, answer), answer
            check_shape(json.loads(body)["method"], json.loads(answer))


def check_shape(name: str, answer: dict[str, Any]) -> None:
    """Check that a result has the shape in the table of methods."""
    method = METHODS.get(name)
    if method is None or "result" not in answer:
        return
    components = {"components": {"schemas": SCHEMAS}}
    shape = read_signature(method.signature).result.schema
    assert list(VALIDATOR.failures(answer["result"], shape, components)) == [], name


def test_the_document_of_a_dev_chain_is_valid(tmp_path: Path) -> None:
    with dev_service(tmp_path) as (_, client):
        document = client.ask("rpc.discover")
        prefixes = client.ask("rpc_modules")
    assert list(VALIDATOR.failures(document, OPENRPC, OPENRPC)) == []
    named = re.findall(r'"#/components/schemas/(\w+)"', json.dumps(document))
    assert set(named) <= set(document["components"]["schemas"])
    assert set(METHODS) <= {each["name"] for each in document["methods"]}
    assert {"anvil", "hardhat", "evm", "tenderly", "wallet", "foreblock"} <= set(prefixes)


@each_case("name", METHODS)
def test_every_method_has_a_summary_and_known_shapes(name: str) -> None:
    method = METHODS[name]
    assert summary_of(method).endswith("."), f"{name} lacks a sentence"
    signature = read_signature(method.signature)
    shapes = {each.shape.name for each in signature.parameters} | {signature.result.name}
    assert shapes <= set(SCHEMAS), f"{name}: add its shapes to methods/openrpc/tool_schemas.py"


def test_every_shape_of_dev_chains_is_used() -> None:
    used = {
        name for name in DEV if any(f'/{name}"' in json.dumps(each) for each in SCHEMAS.values())
    }
    for method in METHODS.values():
        signature = read_signature(method.signature)
        used |= {each.shape.name for each in signature.parameters} | {signature.result.name}
    assert set(DEV) <= used
