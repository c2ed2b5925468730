"""A request that is named by its client and takes long is found in the log."""

import json
from http.client import HTTPConnection
from typing import Any

from support.servers.dev_processes import SOLO, Dev, dev_chain
from support.servers.waiting import PATIENCE


def event(dev: Dev, name: str) -> dict[str, Any]:
    """The next event of this name."""
    assert dev.process.stdout is not None
    for line in dev.process.stdout:
        if line.startswith("{") and (found := json.loads(line))["event"] == name:
            return dict(found)
    raise AssertionError(f"no {name}")


def test_a_slow_request_is_logged_with_its_id() -> None:
    with dev_chain("--slow-request=0.000000001", "--log-format=json", *SOLO) as dev:
        connection = HTTPConnection(dev.main.url.removeprefix("http://"), timeout=PATIENCE)
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "eth_chainId", "params": []})
        headers = {"Content-Type": "application/json", "X-Request-Id": "mine"}
        connection.request("POST", "/", body, headers)
        response = connection.getresponse()
        assert response.headers["X-Request-Id"] == "mine"
        assert json.loads(response.read())["result"] == "0x7a69"
        connection.close()
        found = event(dev, "slow_request")
        assert (found["method"], found["network"], found["code"]) == ("eth_chainId", "main", None)
        assert (found["request_id"], found["level"]) == ("mine", "warning")
        assert 0 < found["seconds"] < PATIENCE
