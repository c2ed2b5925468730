"""Clients that switch between workers and instances, over real sockets.

Each request has a separate connection, which the kernel gives to one of two workers. The instance
that is behind serves an earlier copy of the other's store.
"""

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect

from conftest import CHECKOUT
from foreblock.service.running import serving
from support.chains.dev_chain import DevChain
from support.each_case import each_case
from support.servers.dev_processes import Dev, HttpReply, Network, dev_chain, exchange
from support.servers.waiting import PATIENCE, until

REQUEST = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "eth_chainId", "params": []})
READS = json.dumps(
    [
        {"jsonrpc": "2.0", "id": 1, "method": "foreblock_snapshot", "params": []},
        {"jsonrpc": "2.0", "id": 2, "method": "eth_blockNumber", "params": []},
    ]
)
FAR = 10**9
ONE = ["--workers=1"]
FUTURE = f"?min_commit={FAR};wait=0"
CONNECTIONS = 40  # enough to reach both workers
PAGE = "http://localhost:3000"
DOCS = (CHECKOUT / "docs" / "http.md").read_text("utf-8")
EXAMPLES = [
    example.split("\n", 1)
    for block in re.findall(r"<!-- run -->\n```console\n\$ (.*?)\n```", DOCS, flags=re.DOTALL)
    for example in block.split("\n$ ")
]


def ask(url: str, **headers: str) -> HttpReply:
    """Send a request with these headers, `_` for `-` in their names."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return exchange(url, "/", REQUEST, named)


def read(client: ClientConnection) -> int:
    """The commit of a batch over WebSocket."""
    client.send(READS)
    snapshot, number = (each["result"] for each in json.loads(client.recv(PATIENCE)))
    assert snapshot["latest"]["number"] == number, "a batch sees one commit"
    return int(snapshot["commit"], 16)


def over_websocket(network: Network, query: str = "") -> ClientConnection:
    return connect(f"{network.url.replace('http', 'ws')}/{query}", proxy=None)


@pytest.fixture(scope="module")
def dev() -> Iterator[Dev]:
    """A chain with a commit every 50 ms, and requests that may wait for it on a busy machine."""
    options = ("--test-listen=", "--workers=2", "--interval=0.05", "--min-commit-wait=10")
    with dev_chain(*options) as running:
        assert len(running.pids("worker")) == 2
        yield running


def test_each_answer_is_of_the_commit_that_is_demanded_or_a_later_one(dev: Dev) -> None:
    """Every request requires one commit more than the highest seen, and so has to wait for it."""
    commit = ask(dev.main.url).commit
    for _ in range(CONNECTIONS):
        found = ask(dev.main.url, Foreblock_Min_Commit=str(commit + 1))
        assert found.status == 200
        assert found.commit > commit, "an older commit than was demanded"
        commit = found.commit


def test_a_place_is_waited_for(dev: Dev) -> None:
    number, index = (int(each) for each in (dev.main.latest() + 2, 1))
    found = ask(dev.main.url, Foreblock_Min_Place=f"{number:#x}.{index}")
    named = re.search(r"latest=(0x[0-9a-f]+):", found.headers["Foreblock-Snapshot"])
    pending = re.search(r"pending=(0x[0-9a-f]+)\.(\d+):", found.headers["Foreblock-Snapshot"])
    assert found.status == 200
    assert named
    reached = (int(pending[1], 16), int(pending[2])) if pending else (0, 0)
    assert int(named[1], 16) >= number or reached >= (number, index)


def test_a_commit_of_the_future_is_refused(dev: Dev) -> None:
    before = ask(dev.main.url).commit
    for _ in range(CONNECTIONS):
        found = ask(dev.main.url, Foreblock_Min_Commit=f"{FAR}; wait=0")
        assert (found.status, found.headers["Retry-After"]) == (503, "1")
        said = re.fullmatch(
            rf"commit {FAR} is not here yet, this instance is at (\d+)\n", found.text
        )
        assert said
        assert int(said[1]) >= before
    assert ask(dev.main.url, Foreblock_Min_Commit="next").status == 400


def test_pages_may_read_the_snapshot_and_when_to_ask_again(dev: Dev) -> None:
    refused = ask(dev.main.url, Foreblock_Min_Commit=f"{FAR}; wait=0", Origin=PAGE)
    assert refused.headers["Access-Control-Allow-Origin"] == PAGE
    exposed = refused.headers["Access-Control-Expose-Headers"]
    assert set(exposed.split(", ")) == {
        "Foreblock-Snapshot",
        "Foreblock-Source",
        "Retry-After",
    }


def test_a_session_goes_on_at_another_worker(dev: Dev) -> None:
    """Each connection requires one commit more than the previous one has seen."""
    commit = 0
    for _ in range(CONNECTIONS):
        with over_websocket(dev.main, f"?min_commit={commit + 1:#x}") as client:
            found = read(client)
            assert found > commit
            commit = found
    with pytest.raises(InvalidStatus) as refused, over_websocket(dev.main, FUTURE):
        pass
    assert refused.value.response.status_code == 503
    assert refused.value.response.headers["Retry-After"] == "1"


def test_sessions_of_one_instance_never_go_backwards(dev: Dev) -> None:
    with ExitStack() as opened:
        clients = [opened.enter_context(over_websocket(dev.main)) for _ in range(8)]
        commit, first = 0, 0
        while not first or commit < first + 5:
            for client in clients:
                found = read(client)
                assert found >= commit, "a response is older than an earlier one"
                commit, first = found, first or found


def test_a_client_between_instances_never_goes_backwards(tmp_path: Path) -> None:
    chain, behind = DevChain(tmp_path / "store"), tmp_path / "behind"
    chain.run(1_000)
    chain.kill()
    shutil.copytree(tmp_path / "store", behind)
    chain.open()
    with serving(tmp_path / "store", ONE) as current, serving(behind, ONE) as lagging:
        copied = ask(lagging.url).commit
        chain.run(1_000)
        seen = until(
            lambda: found if (found := ask(current.url).commit) > copied else None, "it continues"
        )
        assert ask(lagging.url).commit == copied < seen, "without the header it goes backwards"
        for _ in range(5):
            chain.run(1_000)
            found = ask(current.url, Foreblock_Min_Commit=str(seen))
            assert found.commit >= seen
            seen = found.commit
            refused = ask(lagging.url, Foreblock_Min_Commit=str(seen))
            assert (refused.status, refused.commit) == (503, 0)
            assert refused.text.endswith(f"this instance is at {copied}\n")
        assert ask(lagging.url, Foreblock_Min_Commit=str(copied)).commit == copied
    chain.kill()


def shown_as(text: str) -> re.Pattern[str]:
    """Compare the structure with an example: numbers, hashes and omitted parts may differ."""
    pattern = re.escape(text.strip())
    pattern = re.sub(r"(commit=|is\\ at\\ )\S+?(?=;|\n|$)", r"\1\\S+", pattern)
    pattern = re.sub(r"0x[0-9a-f]+(\\\.\d+)?:0x[0-9a-f]+…", r"0x[0-9a-f]+\1?:0x[0-9a-f]+", pattern)
    return re.compile(pattern.replace(r"\.4?:", r"\.\d+:").replace("…", ".*?"), re.DOTALL)


@each_case(("command", "shown"), EXAMPLES)
def test_examples_of_the_docs_answer_as_shown(dev: Dev, command: str, shown: str) -> None:
    until(lambda: ask(dev.main.url).commit >= 56 and dev.main.latest() >= 1, "the chain has grown")
    words = shlex.split(command.replace("http://127.0.0.1:8545", dev.main.url))
    assert words[0] == "curl"
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert shown_as(shown).fullmatch(done.stdout.replace("\r\n", "\n").strip()), done.stdout
