"""A JSON-RPC connection that records times: small enough to be reviewed."""

import json
import time
from http.client import HTTPConnection, HTTPException
from typing import Self

from checker.journal import Exchange
from checker.json_type import Json
from support.servers.waiting import PATIENCE

USES = 40  # after which a connection is replaced, so that every worker gets a share


class Client:
    """A client of one service with one connection at a time."""

    def __init__(self, url: str, name: str) -> None:
        self._address = url.removeprefix("http://").rstrip("/")
        self._name = name
        self._connection = self._connect()
        self._uses = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def ask(self, requests: list[tuple[str, list[Json]]]) -> Exchange:
        """Send one batch. An exchange without a response is one whose connection broke."""
        text = json.dumps(
            [
                {"jsonrpc": "2.0", "id": at, "method": method, "params": params}
                for at, (method, params) in enumerate(requests)
            ]
        )
        self._renew()
        sent_ns = time.monotonic_ns()
        try:
            self._connection.request("POST", "/", text, {"Content-Type": "application/json"})
            response = self._connection.getresponse()
            answer = response.read().decode()
            snapshot = response.headers["Foreblock-Snapshot"]
        except (HTTPException, OSError):
            self._uses = USES
            answer, snapshot = "", None
        return Exchange(self._name, sent_ns, time.monotonic_ns(), text, answer, snapshot)

    def _renew(self) -> None:
        self._uses += 1
        if self._uses > USES:
            self._connection.close()
            self._connection = self._connect()
            self._uses = 0

    def _connect(self) -> HTTPConnection:
        return HTTPConnection(self._address, timeout=PATIENCE)


def results(exchange: Exchange) -> list[Json]:
    """The result of each item, or None for an error."""
    return [each.get("result") for each in json.loads(exchange.answer or "[]")]
