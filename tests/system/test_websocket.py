"""A whole service gives the same answers over WebSocket as over HTTP."""

import json
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest
from websockets.sync.client import connect

from conftest import ChainFiles
from foreblock.ledger.importing.importer import import_files
from foreblock.service.running import serving
from support.servers.waiting import PATIENCE

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


@pytest.fixture(scope="module")
def address(example: ChainFiles, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """HOST:PORT of a service over the example chain."""
    store: Path = tmp_path_factory.mktemp("websocket") / "store"
    import_files(example.genesis, example.chain, store, example.fork_choice, lambda _: None)
    with serving(store, ["--workers=1"]) as running:
        yield running.url.removeprefix("http://")


def over_http(address: str, body: str) -> object:
    connection = HTTPConnection(address, timeout=PATIENCE)
    try:
        connection.request("POST", "/", body, {"Content-Type": "application/json"})
        return json.loads(connection.getresponse().read())
    finally:
        connection.close()


def test_answers_are_those_of_http(address: str) -> None:
    with connect(f"ws://{address}/", proxy=None) as client:
        for body in [*BODIES, f"[{','.join(BODIES)}]", "[]", "{", '"x"', "[1]"]:
            client.send(body)
            assert json.loads(client.recv(PATIENCE)) == over_http(address, body), body


def test_requests_sent_together_are_all_answered(address: str) -> None:
    with connect(f"ws://{address}/", proxy=None) as client:
        for body in BODIES * 20:
            client.send(body)
        found = [json.loads(client.recv(PATIENCE))["id"] for _ in BODIES * 20]
        assert sorted(found) == sorted([*range(len(BODIES))] * 20)


def test_long_answers_are_whole(address: str) -> None:
    batch = f"[{','.join([BODIES[1]] * 900)}]"
    expected = over_http(address, batch)
    with connect(f"ws://{address}/", proxy=None, max_size=None, max_queue=1) as client:
        for _ in range(3):
            client.send(batch)
        client.send(BODIES[0])
        found = [client.recv(PATIENCE) for _ in range(4)]
        short, *long = sorted(found, key=len)
        assert json.loads(short)["id"] == 0
        assert min(map(len, long)) > 1 << 20
        assert [json.loads(each) for each in long] == [expected] * 3


def test_a_notification_is_not_answered(address: str) -> None:
    with connect(f"ws://{address}/", proxy=None) as client:
        client.send('{"jsonrpc":"2.0","method":"eth_chainId"}')
        client.send(BODIES[0])
        assert json.loads(client.recv(PATIENCE))["id"] == 0
