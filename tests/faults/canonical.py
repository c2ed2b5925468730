"""An endpoint with the sealed blocks of a store that another process writes."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from foreblock.errors import StoreError
from foreblock.ledger.reading.view import Ledger
from support.servers.asking import Asker, asker


@contextmanager
def canonical(store: Path) -> Iterator[str]:
    """Its address, from before there is a store until it is not needed any more."""
    with ExitStack() as opened:
        ready: list[Asker] = []  # made on the thread that answers

        class Answering(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                try:
                    if not ready:
                        ready.append(opened.enter_context(asker(Ledger.open(str(store)))))
                except StoreError as why:
                    self.send_error(503, str(why))
                    return
                answer = ready[0].reply(body).body
                with suppress(ConnectionError):  # whoever asked may have been closed meanwhile
                    self.send_response(200)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(answer)))
                    self.send_header("Connection", "close")  # one thread serves all connections
                    self.end_headers()
                    self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                pass

        server = opened.enter_context(HTTPServer(("127.0.0.1", 0), Answering))
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
