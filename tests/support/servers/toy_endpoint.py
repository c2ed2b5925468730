"""An endpoint that answers from a table, for tests of what asks endpoints."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[list[Any]], object]


class ToyError(Exception):
    """What a method of a toy endpoint raises to answer with an error."""


@contextmanager
def toy_endpoint(
    methods: Mapping[str, Answer], pages: Mapping[str, tuple[int, str]] | None = None
) -> Iterator[str]:
    """The URL of an endpoint with these methods, and pages: status and text by path."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            asked = json.loads(body)
            answers = [answer(each) for each in asked] if isinstance(asked, list) else answer(asked)
            self.reply(200, json.dumps(answers).encode())

        def do_GET(self) -> None:
            status, text = (pages or {}).get(self.path, (404, "not found"))
            self.reply(status, text.encode())

        def reply(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """A test prints nothing."""

    def answer(request: dict[str, Any]) -> dict[str, object]:
        envelope = {"jsonrpc": "2.0", "id": request["id"]}
        method = methods.get(request["method"])
        if method is None:
            error = {"code": -32601, "message": f"the method {request['method']} does not exist"}
            return {**envelope, "error": error}
        try:
            return {**envelope, "result": method(request["params"])}
        except ToyError as failure:
            return {**envelope, "error": failure.args[0]}

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
