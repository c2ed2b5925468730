"""Clients as processes that start at once, and the minimal HTTP connection that they use.

A client prints `ready`, waits for a line of input, works for a given time and prints its
results, one JSON value per line. It must notice a change within a fraction of a millisecond
beside a server that uses all cores, so its requests are built once and its answers are cheap to
read.
"""

import json
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Final
from urllib.parse import urlsplit

from foreblock.errors import InvalidArgument, NotAnAnswer

READY: Final = "ready\n"
PATIENCE: Final = 60.0  # seconds beyond its time for a client to end


class ClientProcess:
    """A client process."""

    def __init__(self, module: ModuleType, *arguments: object) -> None:
        module_name = module.__name__.rpartition(".")[2]
        self._name: Final = f"{module_name} {arguments[0]}"
        self._process: Final = subprocess.Popen(  # noqa: S603, a module of this package
            [sys.executable, "-m", module.__name__, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_until_ready(self) -> None:
        assert self._process.stdout is not None
        if self._process.stdout.readline() != READY:
            self._fail()

    def begin(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def found(self, seconds: float) -> list[list[int]]:
        """Its results, after it has worked for `seconds` and ended."""
        said, complaint = self._process.communicate(timeout=seconds + PATIENCE)
        if self._process.returncode:
            self._fail(complaint)
        return [json.loads(line) for line in said.splitlines()]

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()

    def _fail(self, complaint: str = "") -> None:
        if not complaint:
            _, complaint = self._process.communicate(timeout=PATIENCE)
        last = complaint.strip().splitlines()[-1:] or ["no output"]
        raise InvalidArgument(f"the {self._name} ended early: {last[0]}")


@contextmanager
def begun(parts: Iterable[ClientProcess]) -> Iterator[None]:
    """Run all of them; none outlives the block."""
    parts = list(parts)
    try:
        for part in parts:
            part.wait_until_ready()
        for part in parts:
            part.begin()
        yield
    finally:
        for part in parts:
            part.end()


# --- In the client process ---------------------------------------------------------------


def wait_to_begin() -> None:
    """Report that this client is ready, and wait for the start."""
    sys.stdout.write(READY)
    sys.stdout.flush()
    sys.stdin.readline()


def print_results(found: Iterable[Iterable[int]]) -> None:
    """Print results."""
    for each in found:
        sys.stdout.write(json.dumps(list(each)) + "\n")


# --- Requests ------------------------------------------------------------------------------

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
        """Send a request; return the time, head and body of the response."""
        self.send(message)
        return self.receive()

    def send(self, message: bytes) -> None:
        """Send a request, and do not wait."""
        self.socket.sendall(message)

    def receive(self) -> tuple[int, bytes, bytes]:
        """Wait for a response; return its time, head and body."""
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


def pending_position(head: bytes) -> tuple[int, int] | None:
    """The pending block and flashblock index that an answer names, if any."""
    found = _PENDING.search(head)
    return None if found is None else (int(found[1], 16), int(found[2]))
