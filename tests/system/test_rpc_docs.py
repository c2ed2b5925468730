"""A service over the example chain: examples of the docs have the documented results, over
WebSocket too.
"""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from websockets.sync.client import connect

from conftest import CHECKOUT, ChainFiles
from foreblock.ledger.importing.importer import import_files
from foreblock.methods import make_table
from foreblock.service.running import serving
from foreblock.settings import Settings
from foreblock.upstream.rpc_client import Endpoint
from support.each_case import each_case
from support.rpc_pages import rpc_text
from support.servers.long_work import scheduler
from support.servers.waiting import PATIENCE

TEXT = rpc_text()
README = (CHECKOUT / "README.md").read_text("utf-8")
EXAMPLES = re.findall(r"^--> (.*)\n<-- (.*)$", TEXT, re.MULTILINE)
CURL = ["curl", "-s", "http://127.0.0.1:18545", "-H", "Content-Type: application/json", "-d"]
for command, shown in re.findall(r"<!-- ask -->\n```console\n\$ (.*)\n(.*)\n```", README):
    *start, body = shlex.split(command)
    assert start == CURL
    EXAMPLES.append((body, shown))


@pytest.fixture(scope="module")
def endpoint(example: ChainFiles, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    """The service over the example chain."""
    store: Path = tmp_path_factory.mktemp("docs") / "store"
    files = (example.genesis, example.chain, store, example.fork_choice)
    import_files(*files, lambda _: None, address_index=True)
    with serving(store, ["--workers=1"]) as service, Endpoint(service.url) as opened:
        yield opened


@pytest.fixture
def address(endpoint: Endpoint) -> str:
    return endpoint.url.replace("http:", "ws:")


def over_http(endpoint: Endpoint, body: str) -> object:
    return json.loads(endpoint.exchange(body.encode()))


@each_case(("body", "shown"), EXAMPLES)
def test_examples_answer_as_shown(endpoint: Endpoint, body: str, shown: str) -> None:
    """A response that ends in … is shown in part."""
    answer = endpoint.exchange(body.encode()).decode()
    if shown.endswith("…"):
        assert answer.startswith(shown.removesuffix("…"))
    else:
        assert answer == shown


def test_every_method_has_a_row_and_an_example() -> None:
    served = make_table(Settings(), scheduler(1)).functions
    assert list(served) == re.findall(r"^\| `(\w+[_.]\w+)` \|", TEXT, flags=re.MULTILINE)
    for method in served:
        assert f"\n## `{method}`\n" in TEXT
        assert any(f'"{method}"' in body for body, _ in EXAMPLES)


# --- WebSocket -------------------------------------------------------------------------------

NOBODY = "0x" + "11" * 20
REQUESTS: list[tuple[str, list[object]]] = [
    ("eth_chainId", []),
    ("eth_getBlockByNumber", ["latest", True]),
    ("eth_getBalance", [NOBODY, "latest"]),
    ("eth_call", [{"to": NOBODY, "data": "0x"}, "latest"]),
    ("eth_simulateV1", [{"blockStateCalls": [{"calls": [{"to": NOBODY}]}]}, "latest"]),
    ("eth_getBalance", ["0x", "latest"]),
    ("eth_noSuchMethod", []),
]
BODIES = [
    json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
    for number, (method, params) in enumerate(REQUESTS)
]


def test_answers_are_those_of_http(endpoint: Endpoint, address: str) -> None:
    with connect(address, proxy=None) as client:
        for body in [*BODIES, f"[{','.join(BODIES)}]", "[]", "{", '"x"', "[1]"]:
            client.send(body)
            assert json.loads(client.recv(PATIENCE)) == over_http(endpoint, body), body


def test_requests_sent_together_are_all_answered(address: str) -> None:
    with connect(address, proxy=None) as client:
        for body in BODIES * 20:
            client.send(body)
        found = [json.loads(client.recv(PATIENCE))["id"] for _ in BODIES * 20]
        assert sorted(found) == sorted([*range(len(BODIES))] * 20)


def test_long_answers_are_whole(endpoint: Endpoint, address: str) -> None:
    batch = f"[{','.join([BODIES[1]] * 900)}]"
    expected = over_http(endpoint, batch)
    with connect(address, proxy=None, max_size=None, max_queue=1) as client:
        for _ in range(3):
            client.send(batch)
        client.send(BODIES[0])
        found = [client.recv(PATIENCE) for _ in range(4)]
        short, *long = sorted(found, key=len)
        assert json.loads(short)["id"] == 0
        assert min(map(len, long)) > 1 << 20
        assert [json.loads(each) for each in long] == [expected] * 3


def test_a_notification_is_not_answered(address: str) -> None:
    with connect(address, proxy=None) as client:
        client.send('{"jsonrpc":"2.0","method":"eth_chainId"}')
        client.send(BODIES[0])
        assert json.loads(client.recv(PATIENCE))["id"] == 0
