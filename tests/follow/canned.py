"""An upstream that gives answers as bytes, in their order, and keeps what it was sent."""

import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from follow.http_messages import HttpMessage, Splitter

Answer = Callable[[HttpMessage], bytes]


class Canned:
    """What it answers, and what it heard."""

    def __init__(self, url: str, answer: Answer) -> None:
        self.url = url
        self.answer = answer
        self.heard: list[bytes] = []


@contextmanager
def canned(answer: Answer) -> Iterator[Canned]:
    """Such an upstream on a free port."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            splitter = Splitter()
            while data := self.request.recv(65536):
                for message in splitter.feed(data):
                    found.heard.append(message.raw)
                    self.request.sendall(found.answer(message))

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as server:
        found = Canned(f"http://127.0.0.1:{server.server_address[1]}", answer)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield found
        finally:
            server.shutdown()
            thread.join()
