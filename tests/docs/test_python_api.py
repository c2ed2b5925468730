"""docs/python-api.md has every public name, with its docstring as it is in the code."""

import inspect

import foreblock
import foreblock.client
import foreblock.dev_chain
from foreblock import pytest_plugin
from support.each_case import each_case
from website.python_api import NAMES, PAGE, Name, entries, page

ALL = [name for section in NAMES.values() for name in section]
PUBLIC = [
    *(f"foreblock.{name}" for name in ("AsyncClient", "Client", "DevChain")),
    *(f"foreblock.client.{name}" for name in foreblock.client.__all__),
    *(f"foreblock.dev_chain.{name}" for name in foreblock.dev_chain.__all__),
]


def test_the_page_is_that_of_the_docstrings() -> None:
    """`python -m website.python_api` writes it."""
    assert PAGE.read_text("utf-8") == page()


def test_the_page_has_every_public_name() -> None:
    known = {each.path.rpartition(".")[2] for each in ALL}
    assert {each.rpartition(".")[2] for each in PUBLIC} <= known
    fixtures = {name for name, value in vars(pytest_plugin).items() if is_fixture(value)}
    assert fixtures - {"foreblock_chains"} == {each.path for each in NAMES["Fixtures of pytest"]}


def is_fixture(value: object) -> bool:
    return type(value).__name__ == "FixtureFunctionDefinition"


@each_case("name", ALL, ids=lambda name: name.path)
def test_a_name_and_its_methods_have_docstrings(name: Name) -> None:
    without = [each.title for each in entries(name) if not each.text]
    assert without == []


@each_case("name", PUBLIC)
def test_the_page_has_the_methods_that_python_finds(name: str) -> None:
    found = getattr(foreblock, name.rpartition(".")[2], None)
    found = found or getattr(foreblock.client, name.rpartition(".")[2], None)
    found = found or getattr(foreblock.dev_chain, name.rpartition(".")[2])
    if not inspect.isclass(found) or found.__name__ in {"Client", "RequestBatch", "Hex"}:
        return  # the methods of a client, or those of bytes
    shown = next(each for each in ALL if each.path.rpartition(".")[2] == found.__name__)
    titles = {each.title.partition("(")[0] for each in entries(shown)}
    public = {
        each for each, value in inspect.getmembers(found)
        if not each.startswith("_") and (inspect.isfunction(value) or isinstance(value, property))
    }  # fmt: skip
    assert public <= titles
