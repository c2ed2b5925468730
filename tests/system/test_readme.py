"""What the README and the first page of the docs show of the local chains is what they answer."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator

import pytest

from conftest import CHECKOUT
from foreblock.upstream.rpc_client import Endpoint
from support.servers.dev_processes import Dev, dev_chain, package_environment
from support.servers.waiting import PATIENCE

README = (CHECKOUT / "README.md").read_text("utf-8")
START = (CHECKOUT / "docs" / "index.md").read_text("utf-8")
EXAMPLES = re.findall(r"<!-- dev -->\n```console\n\$ (.*)\n(.*)\n```", README + START)
MAIN, TEST = "http://127.0.0.1:8545", "http://127.0.0.1:9545"


@pytest.fixture(scope="module")
def dev() -> Iterator[Dev]:
    with dev_chain() as running:
        yield running


def pattern(shown: str) -> str:
    """What is shown, with … for what differs from time to time."""
    return ".*".join(map(re.escape, shown.split("…")))


def answer(dev: Dev, command: str) -> str:
    words = shlex.split(command)
    if words[0] == "curl":
        *_, url, header_option, header, data_option, body = words
        assert (header_option, header, data_option) == (
            "-H",
            "Content-Type: application/json",
            "-d",
        )
        assert dev.test is not None
        with Endpoint({MAIN: dev.main.url, TEST: dev.test.url}[url]) as endpoint:
            return endpoint.exchange(body.encode()).decode()
    assert words[0] == "foreblock"
    done = subprocess.run(
        [sys.executable, "-m", "foreblock", *words[1:]], capture_output=True, text=True,
        timeout=PATIENCE, check=True, env={**package_environment(), "FOREBLOCK_URL": dev.main.url},
    )  # fmt: skip
    return done.stdout


def test_every_line_of_the_readme_answers_as_shown(dev: Dev) -> None:
    """In their order: what is sent in one is seen in the next."""
    methods = set()
    for command, shown in EXAMPLES:
        found = answer(dev, command)
        assert re.fullmatch(pattern(shown), found.strip(), re.DOTALL), (command, found)
        methods |= set(re.findall(r'"(eth_\w+)"', command))
    assert methods == {"eth_getBlockByNumber", "eth_getBalance", "eth_call", "eth_simulateV1"}


def test_what_it_prints_at_its_start_is_shown_as_it_is(dev: Dev) -> None:
    said = "".join(dev.said)
    shown = re.search(r"```console\n(main  http.*?)```", README, re.DOTALL)
    assert shown is not None
    ports = re.compile(r"127\.0\.0\.1:\d+")
    assert ports.sub("HERE", shown[1]) in ports.sub("HERE", said)
