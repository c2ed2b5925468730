"""API keys of a whole service: one budget for all workers, changes of the file, no secrets out."""

import json
import os
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from support.servers.dev_processes import Dev, dev_chain, exchange, refused
from support.servers.waiting import PATIENCE, until

SCARCE, PLENTY = "scarce-secret-0123456789", "plenty-secret-0123456789"
BALANCE = {
    "jsonrpc": "2.0", "id": 1, "method": "eth_getBalance", "params": ["0x" + "00" * 20, "latest"],
}  # fmt: skip
BURST = 40
# Seconds for one unit of the scarce key; nothing is repaid while a test runs.
SLOW = 0.001


def table(**more: object) -> dict[str, Any]:
    keys: dict[str, object] = {
        "scarce": {"secret": SCARCE, "units": SLOW, "burst": BURST},
        "plenty": {"secret": PLENTY, "units": 1e6, "methods": ["eth_*"]},
    }
    return {"keys": keys | more}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("keys") / "keys.json"
    path.write_text(json.dumps(table()))
    return path


@pytest.fixture(scope="module")
def dev(file: Path) -> Iterator[Dev]:
    with dev_chain(f"--api-keys={file}", "--test-listen=", "--log-level=debug") as running:
        yield running


def status(dev: Dev, secret: str, body: object = BALANCE) -> int:
    """The status of one request over a connection of its own, to either worker."""
    return exchange(dev.main.url, "/", json.dumps(body), {"X-API-Key": secret}).status


def metric(dev: Dev, name: str) -> float:
    lines = exchange(dev.main.url, "/metrics").text.splitlines()
    return sum(float(each.split()[-1]) for each in lines if each.startswith(name))


def test_both_workers_charge_one_budget(dev: Dev) -> None:
    found = [status(dev, SCARCE) for _ in range(BURST + 10)]
    assert found == [200] * BURST + [429] * 10
    assert metric(dev, 'foreblock_key_units_total{key="scarce"}') == BURST
    assert metric(dev, 'foreblock_key_refused_total{key="scarce"}') == 10
    assert metric(dev, 'foreblock_key_seconds_total{key="scarce"}') > 0
    pid = dev.kill("worker")
    until(lambda: pid not in dev.pids("worker") and len(dev.pids("worker")) == 2, "a new worker")
    until(lambda: status(dev, PLENTY) == 200, "it serves")
    assert [status(dev, SCARCE) for _ in range(8)] == [429] * 8


def test_every_view_and_way_needs_a_key(dev: Dev) -> None:
    for path in ("/", "/eth"):
        assert exchange(dev.main.url, path, json.dumps(BALANCE)).status == 401
        found = exchange(dev.main.url, f"{path}?key={PLENTY}", json.dumps(BALANCE))
        assert json.loads(found.text)["result"].startswith("0x")
        with pytest.raises(InvalidStatus, match="401"):
            connect(dev.main.url.replace("http", "ws") + path)
    for path in ("/healthz", "/readyz", "/metrics", "/ui"):
        assert exchange(dev.main.url, path).status == 200


def test_a_websocket_is_told_when_to_return(dev: Dev) -> None:
    url = dev.main.url.replace("http", "ws")
    with connect(f"{url}/?key={PLENTY}") as plenty, connect(f"{url}/?key={SCARCE}") as scarce:
        for socket in (plenty, scarce):
            socket.send(json.dumps(BALANCE))
        assert json.loads(plenty.recv(PATIENCE))["result"].startswith("0x")
        error = json.loads(scarce.recv(PATIENCE))["error"]
        assert error["code"] == -32005
        assert error["data"]["retryAfter"] > 500
        plenty.send(json.dumps({**BALANCE, "method": "eth_subscribe", "params": ["newHeads"]}))
        assert json.loads(plenty.recv(PATIENCE))["result"].startswith("0x")
        assert json.loads(plenty.recv(PATIENCE))["method"] == "eth_subscription"
        plenty.send(json.dumps({**BALANCE, "id": 9, "method": "debug_traceCall"}))
        while (found := json.loads(plenty.recv(PATIENCE))).get("id") != 9:
            pass
        assert found["error"]["code"] == -32601


def test_a_changed_file_is_in_use_soon(dev: Dev, file: Path) -> None:
    new = "new-secret-0123456789"
    with connect(f"{dev.main.url.replace('http', 'ws')}/?key={PLENTY}") as socket:
        replaced = table(new={"secret": new, "units": 1e6})
        del replaced["keys"]["plenty"]
        _replace(file, json.dumps(replaced))
        with pytest.raises(ConnectionClosed, match="not valid any more"):
            socket.recv(PATIENCE)
    until(lambda: [status(dev, new) for _ in range(8)] == [200] * 8, "both have the new key")
    until(lambda: [status(dev, PLENTY) for _ in range(8)] == [401] * 8, "and not the old one")
    _replace(file, "{")
    until(lambda: metric(dev, "foreblock_key_file_failures_total") == 2, "both have noticed")
    assert [status(dev, new) for _ in range(8)] == [200] * 8
    _replace(file, json.dumps(table()))
    until(lambda: [status(dev, PLENTY) for _ in range(8)] == [200] * 8, "both have the old key")


def _replace(file: Path, text: str) -> None:
    part = file.with_suffix(".part")
    part.write_text(text)
    part.replace(file)


def test_no_request_of_a_key_takes_the_fast_path_for_nothing(dev: Dev) -> None:
    """The engine alone would answer the second request of a connection."""
    connection = HTTPConnection(dev.main.url.removeprefix("http://"), timeout=PATIENCE)
    headers = {"Content-Type": "application/json", "X-API-Key": PLENTY}
    before = metric(dev, 'foreblock_key_units_total{key="plenty"}')
    for _ in range(50):
        connection.request("POST", "/", json.dumps(BALANCE), headers)
        connection.getresponse().read()
    connection.close()
    assert metric(dev, 'foreblock_key_units_total{key="plenty"}') == before + 50


def test_a_hangup_does_not_end_the_service(dev: Dev) -> None:
    os.kill(dev.process.pid, 1)
    assert status(dev, PLENTY) == 200
    assert dev.process.poll() is None


def test_secrets_do_not_get_out(dev: Dev, file: Path) -> None:
    for _ in range(2):
        status(dev, PLENTY + "-wrong")
        exchange(dev.main.url, "/", "{", {"X-API-Key": PLENTY})
    pages = [exchange(dev.main.url, each).text for each in ("/metrics", "/readyz?verbose", "/ui")]
    os.kill(dev.process.pid, 15)
    dev.process.wait(PATIENCE)
    assert dev.process.stdout is not None
    said = "".join([*pages, *dev.output, dev.process.stdout.read()])
    assert "api_keys_unusable" in said
    assert str(file) in said
    for secret in (SCARCE, PLENTY):
        assert secret not in said


def test_a_wrong_file_prevents_the_start(tmp_path: Path) -> None:
    wrong = tmp_path / "keys.toml"
    assert "No such file" in refused(f"--api-keys={wrong}")
    wrong.write_text(f'[keys.a]\nsecret = "{SCARCE}"\nunits = "many"')
    message = refused(f"--api-keys={wrong}")
    assert "keys.toml" in message
    assert SCARCE not in message
