"""Clients that send and read in step: a request on each connection, then all the answers.

The worker is halted while requests are sent, so that it finds them all at once, however slow it or
the machine is: its loop turns as often in every round.
"""

import http.client
import os
import signal
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import cycle
from typing import Final
from urllib.parse import urlsplit

from foreblock.errors import NotAnAnswer

TIMEOUT_SECONDS: Final = 300.0
SEND_BYTES: Final = 1 << 20  # a request lies in the socket until the worker goes on

_HEADERS: Final = {"Content-Type": "application/json"}


class ClientsInStep:
    """Open connections to a server, and the requests that they send in turn."""

    def __init__(
        self,
        connections: Sequence[http.client.HTTPConnection],
        bodies: Sequence[bytes],
        worker: int,
    ) -> None:
        """`worker` is the process that reads from all the connections."""
        self._connections: Final = connections
        self._bodies: Final = cycle(bodies)
        self._worker: Final = worker

    def rounds(self, number: int) -> int:
        """Run the given number of rounds; returns how many requests they had."""
        for _ in range(number):
            self._round()
        return number * len(self._connections)

    def _round(self) -> None:
        os.kill(self._worker, signal.SIGSTOP)
        try:
            for connection in self._connections:
                connection.request("POST", "/", next(self._bodies), _HEADERS)
        finally:
            os.kill(self._worker, signal.SIGCONT)
        for connection in self._connections:
            answer = connection.getresponse()
            answer.read()
            if answer.status != http.HTTPStatus.OK:
                raise NotAnAnswer(connection.host, f"HTTP {answer.status}")


@contextmanager
def clients_in_step(
    url: str, connections: int, bodies: Sequence[bytes], worker: int
) -> Iterator[ClientsInStep]:
    """Connect; close all connections at the end."""
    with ExitStack() as stack:
        opened = [_connect(url) for _ in range(connections)]
        for each in opened:
            stack.callback(each.close)
        yield ClientsInStep(opened, bodies, worker)


def _connect(url: str) -> http.client.HTTPConnection:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=TIMEOUT_SECONDS)
    connection.connect()
    connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BYTES)
    return connection
