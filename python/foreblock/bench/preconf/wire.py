"""A minimal HTTP client: a request is built once, and an answer is cheap to read.

A client that must notice a change within a fraction of a millisecond, beside a server that uses
all cores, cannot afford more.
"""

import json
import re
import socket
import time
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from foreblock.errors import NotAnAnswer

TIMEOUT: Final = 30.0
_LENGTH: Final = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
_PENDING: Final = re.compile(rb"pending=(0x[0-9a-f]+)\.(\d+):")


class RawConnection:
    """A keep-alive connection to an endpoint."""

    def __init__(self, url: str) -> None:
        self.url: Final = url
        parts = urlsplit(url)
        self.socket: Final = socket.create_connection((parts.hostname, parts.port), TIMEOUT)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, message: bytes) -> tuple[int, bytes, bytes]:
        """Send a request; gives time, head and body of the answer."""
        self.send(message)
        return self.receive()

    def send(self, message: bytes) -> None:
        """Send a request, and do not wait."""
        self.socket.sendall(message)

    def receive(self) -> tuple[int, bytes, bytes]:
        """Wait for an answer; gives its time, head and body."""
        data = self.socket.recv(1 << 16)
        while (end := data.find(b"\r\n\r\n")) < 0:
            data += self._more()
        length = _LENGTH.search(data, 0, end)
        if length is None:
            raise NotAnAnswer(self.url, data[:end].decode("latin-1"))
        while len(data) < end + 4 + int(length[1]):
            data += self._more()
        return time.monotonic_ns(), data[:end], data[end + 4 :]

    def _more(self) -> bytes:
        data = self.socket.recv(1 << 16)
        if not data:
            raise NotAnAnswer(self.url, "it closed the connection")
        return data


def request(url: str, method: str, params: Sequence[object]) -> bytes:
    """A whole HTTP request."""
    envelope = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    body = json.dumps(envelope).encode()
    parts = urlsplit(url)
    head = (
        f"POST {parts.path or '/'} HTTP/1.1\r\nHost: {parts.netloc}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def pending_place(head: bytes) -> tuple[int, int] | None:
    """The pending block and flashblock index that an answer names, if any."""
    found = _PENDING.search(head)
    return None if found is None else (int(found[1], 16), int(found[2]))
