"""The examples of docs/clients.md, run unchanged on a chain of `foreblock dev`."""

import json
import re
import shlex
from collections.abc import Iterator

import pytest

from foreblock.methods import make_table
from foreblock.settings import Settings
from support.servers.client_libraries import HERE, run
from support.servers.dev_processes import Network, dev_chain
from support.servers.long_work import scheduler

CHECKOUT = HERE.parent.parent
PAGE = (CHECKOUT / "docs" / "clients.md").read_text("utf-8")
LOCAL = "127.0.0.1:8545"
MODULE = ["--input-type=module", "-"]
HOW = {"viem": MODULE, "ethers": MODULE, "web3.js": MODULE, "web3.py": ["-"]}
PROGRAMS = [mark for mark in re.findall(r"<!-- run (.*) -->", PAGE) if mark.split()[0] in HOW]


@pytest.fixture(scope="module")
def network() -> Iterator[Network]:
    with dev_chain("--test-listen=") as dev:
        yield dev.main


def block_after(mark: str) -> str:
    found = re.search(rf"<!-- {re.escape(mark)} -->\n```\w+\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None, f"docs/clients.md has no block after {mark}"
    return found[1]


def test_the_chain_definition_is_the_one_that_viem_is_tried_with() -> None:
    assert block_after("chain.mjs") == (HERE / "chain.mjs").read_text("utf-8")


def test_every_library_has_a_program() -> None:
    assert {mark.split()[0] for mark in PROGRAMS} == set(HOW)


@pytest.mark.parametrize("mark", PROGRAMS)
def test_example_prints_what_the_page_shows(network: Network, mark: str) -> None:
    program = block_after(f"run {mark}")
    assert LOCAL in program
    library, here = mark.split(maxsplit=1)[0], network.url.removeprefix("http://")
    shown = PAGE.split(program, 1)[1].split("```text\n", 1)[1].split("```", 1)[0]
    assert run(library, *HOW[library], program=program.replace(LOCAL, here)) == shown


@pytest.mark.parametrize("path", ["", "/eth"])
def test_cast_prints_what_the_page_shows(network: Network, path: str) -> None:
    def cast(command: str) -> list[str]:
        inner = re.search(r"\$\((.*)\)", command)
        if inner is not None:
            command = command.replace(inner[0], "".join(cast(inner[1])))
        program, *arguments = shlex.split(command)
        assert program == "cast"
        return run("cast", *arguments, url=network.url + path).splitlines()

    examples = block_after(f"run cast at {path}" if path else "run cast")
    for example in re.split(r"^\$ ", examples, flags=re.MULTILINE)[1:]:
        command, *shown = example.splitlines()
        said = cast(command)
        if "…" in shown:
            assert set(shown) - {"…"} <= set(said)
        else:
            assert said == shown


def test_versions_are_those_that_are_locked() -> None:
    package = json.loads((HERE / "package.json").read_text("utf-8"))
    versions = package["dependencies"] | package["optionalDependencies"]
    locked = (HERE / "requirements.in").read_text("utf-8").split()
    web3 = next(each.removeprefix("web3==") for each in locked if each.startswith("web3=="))
    for said in (
        f"viem {versions['viem']}",
        f"ethers {versions['ethers']}",
        f"web3.js {versions['web3']}",
        f"web3.py {web3}",
        f"cast {versions['@foundry-rs/cast-linux-amd64']}",
    ):
        assert said in PAGE


def test_methods_that_are_said_not_to_be_served_are_not() -> None:
    table = PAGE.split("## Methods that are not served", 1)[1]
    named = set(re.findall(r"`((?:eth|debug)_\w+)`", table))
    assert named
    assert named.isdisjoint(make_table(Settings(), scheduler(1)).functions)
