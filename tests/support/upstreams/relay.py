"""A relay before an upstream: it counts requests, and delays, alters or refuses them."""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

# From a request to its response in place of the upstream's; None passes it on.
Instead = Callable[[dict[str, Any]], dict[str, Any] | None]


class Relay:
    """Requests to one upstream, until it is closed."""

    def __init__(self, url: str) -> None:
        self.delay = 0.0  # seconds, of each exchange
        self.status = 200  # of another one than 200, nothing is passed on
        self.instead: Instead = lambda _: None
        self.methods: Counter[str] = Counter()
        self.exchanges = 0
        self.headers: dict[str, str] = {}  # of the last exchange
        self.place = urlsplit(url).netloc
        self._server = _Server(self)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def forget(self) -> None:
        """Count from 0."""
        self.methods.clear()
        self.exchanges = 0

    @property
    def state_requests(self) -> int:
        """Requests for state, but those that a start makes."""
        named = ("eth_getProof", "eth_getBalance", "eth_getStorage", "eth_getCode", "eth_call")
        return sum(count for method, count in self.methods.items() if method.startswith(named))

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, relay: Relay) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.relay = relay

    def handle_error(self, *_: object) -> None:
        """Ignore clients that went away."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        assert isinstance(self.server, _Server)
        relay = self.server.relay
        body = self.rfile.read(int(self.headers["Content-Length"]))
        asked = json.loads(body)
        relay.exchanges += 1
        relay.headers = dict(self.headers)
        items = asked if isinstance(asked, list) else [asked]
        relay.methods.update(each["method"] for each in items)
        if relay.delay:
            time.sleep(relay.delay)
        if relay.status != 200:
            self._reply(relay.status, b"{}")
            return
        made = {each["id"]: relay.instead(each) for each in items}
        if any(made.values()):
            items = [each for each in items if made[each["id"]] is None]
            passed = self._passed(relay, json.dumps(items).encode()) if items else b"[]"
            found = [*json.loads(passed), *filter(None, made.values())]
            body = json.dumps(found if isinstance(asked, list) else found[0]).encode()
            self._reply(200, body)
        else:
            self._reply(200, self._passed(relay, body))

    def _passed(self, relay: Relay, body: bytes) -> bytes:
        connection = HTTPConnection(relay.place, timeout=30)
        connection.request("POST", "/", body, {"Content-Type": "application/json"})
        answer = connection.getresponse().read()
        connection.close()
        return answer

    def _reply(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def relayed(url: str) -> Iterator[Relay]:
    """A relay before this upstream."""
    relay = Relay(url)
    try:
        yield relay
    finally:
        relay.close()


def refusing(*methods: str, code: int = -32601, message: str = "no such method") -> Instead:
    """Refuse these methods."""

    def instead(request: dict[str, Any]) -> dict[str, Any] | None:
        if request["method"] not in methods:
            return None
        error = {"code": code, "message": message}
        return {"jsonrpc": "2.0", "id": request["id"], "error": error}

    return instead
