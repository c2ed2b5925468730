"""HTTP as bytes: handmade requests, strictly parsed responses."""

import json
import socket
from dataclasses import dataclass
from urllib.parse import urlsplit

Address = tuple[str, int]


class Malformed(Exception):
    """An invalid response."""


class Closed(Exception):
    """The server ended the connection at the end of a response, or without one."""


@dataclass(frozen=True)
class Answer:
    """One HTTP response."""

    status: int
    headers: dict[str, str]
    body: bytes


def address_of(url: str) -> Address:
    parts = urlsplit(url)
    assert parts.hostname is not None
    return parts.hostname, parts.port or 80


def head(length: int, extra: str = "") -> bytes:
    """The head of a request, followed by a body of this length."""
    return (
        f"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"{extra}Content-Length: {length}\r\n\r\n"
    ).encode()


def post(body: bytes, extra: str = "") -> bytes:
    """A request; `extra` are more header lines."""
    return head(len(body), extra) + body


def request(method: str, *params: object) -> bytes:
    """The body of a JSON-RPC request."""
    envelope = {"jsonrpc": "2.0", "id": 1, "method": method, "params": list(params)}
    return json.dumps(envelope).encode()


def batch(body: bytes, count: int) -> bytes:
    """The body of a batch of equal requests."""
    return b"[" + b",".join([body] * count) + b"]"


class Connection:
    """A connection that reads one response at a time, and rejects anything else."""

    def __init__(self, address: Address, timeout: float = 30.0) -> None:
        self.socket = socket.create_connection(address, timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.unread = b""

    def exchange(self, body: bytes, extra: str = "") -> Answer:
        self.socket.sendall(post(body, extra))
        return self.answer()

    def answer(self) -> Answer:
        """Return the next response; `Closed` if the connection ends cleanly before it."""
        while (end := self.unread.find(b"\r\n\r\n")) < 0:
            self._more(at_boundary=not self.unread)
        status, headers = _parse_head(self.unread[:end])
        length = _length(status, headers)
        while len(self.unread) < end + 4 + length:
            self._more(at_boundary=False)
        body = self.unread[end + 4 : end + 4 + length]
        self.unread = self.unread[end + 4 + length :]
        return Answer(status, headers, body)

    def _more(self, *, at_boundary: bool) -> None:
        try:
            data = self.socket.recv(1 << 20)
        except ConnectionError as failure:
            raise Closed(str(failure)) from failure
        if not data:
            if at_boundary:
                raise Closed("end of stream")
            raise Malformed(f"the connection ends within a response: {self.unread[:200]!r}")
        self.unread += data

    def close(self) -> None:
        self.socket.close()


def _parse_head(text: bytes) -> tuple[int, dict[str, str]]:
    try:
        first, *lines = text.decode("ascii").split("\r\n")
        version, status, *_ = first.split(" ", 2)
        headers = {}
        for line in lines:
            name, value = line.split(":", 1)
            headers[name.lower()] = value.strip()
        number = int(status)
    except ValueError as failure:
        raise Malformed(f"not a head: {text[:200]!r}") from failure
    if version not in ("HTTP/1.1", "HTTP/1.0") or not 100 <= number < 600:
        raise Malformed(f"not a status line: {first!r}")
    return number, headers


def _length(status: int, headers: dict[str, str]) -> int:
    if status in (100, 204, 304):
        return 0
    try:
        return int(headers["content-length"])
    except (KeyError, ValueError) as failure:
        raise Malformed(f"a response without its length: {headers}") from failure
