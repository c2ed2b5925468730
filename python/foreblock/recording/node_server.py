"""Serves an offline node over HTTP, on threads, for as long as a replay runs."""

import json
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import socket
from typing import Final

from foreblock.recording.offline_node import OfflineNode

LONGEST_BODY: Final = 16 << 20


class NodeServer:
    """An HTTP server on a socket that listens; `close` it."""

    def __init__(self, node: OfflineNode, sock: socket) -> None:
        self._server: Final = _Server(node, sock)
        self._thread: Final = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, node: OfflineNode, sock: socket) -> None:
        super().__init__(sock.getsockname()[:2], _Handler, bind_and_activate=False)
        self.socket.close()
        sock.settimeout(None)
        self.socket = sock
        self.node: Final = node


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        """Answer a request of JSON-RPC, or a batch of them."""
        assert isinstance(self.server, _Server)
        length = int(self.headers.get("Content-Length") or 0)
        if length > LONGEST_BODY:
            self.send_error(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            return
        try:
            asked = json.loads(self.rfile.read(length))
        except ValueError:
            self.send_error(HTTPStatus.BAD_REQUEST)
            return
        answer = self.server.node.answer
        said = [answer(each) for each in asked] if isinstance(asked, list) else answer(asked)
        body = json.dumps(said).encode()
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing is logged of requests."""
