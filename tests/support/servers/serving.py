"""A service in separate processes, and clients at real sockets."""

import os
import re
import resource
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from support.servers.waiting import PATIENCE
from support.servers.wire import Parsed, answer, post

TESTS = Path(__file__).resolve().parents[2]

SERVE = """
import sys
from foreblock.service import launch
from foreblock.cli.verb import failing_in_one_line
from foreblock.settings.networks import Network
from foreblock.settings import Settings
from foreblock.settings.loading import load
flags = dict(each.split("=", 1) for each in sys.argv[1:])
say = lambda started: print(*started.addresses, started.workers, flush=True)
with failing_in_one_line():
    settings = load(Settings, flags, {}).settings
    network = Network(name="main", data="none", source="store")
    place = launch.ServedNetwork(network, settings.listen)
    launch.run(settings, [place], say, "support.servers.toy:make_served")
"""

_END = re.compile(rb"\r\n\r\n")
_LENGTH = re.compile(rb"\r\nContent-Length: (\d+)")


def command(*settings: str) -> list[str]:
    return [sys.executable, "-c", SERVE, "data=none", *settings]


def environment() -> dict[str, str]:
    paths = [str(TESTS.parent / "python"), str(TESTS)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


@dataclass
class Service:
    """A running service."""

    process: subprocess.Popen[str]
    port: int

    def connect(self) -> "Client":
        return Client(socket.create_connection(("127.0.0.1", self.port), PATIENCE))

    def resident(self) -> int:
        """Resident memory of the workers, in bytes."""
        texts = [Path(f"/proc/{pid}/statm").read_text("ascii") for pid in self.workers()]
        return sum(int(text.split()[1]) for text in texts) * resource.getpagesize()

    def open_files(self) -> int:
        """Open file descriptors of the workers."""
        return sum(len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in self.workers())

    def workers(self) -> set[int]:
        """The processes of the current workers."""
        listed = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text(
            "ascii"
        )
        return {int(pid) for pid in listed.split()}


@contextmanager
def serving(*settings: str, logs: int | None = None) -> Iterator[Service]:
    """A service on a free port, ended in any case after the test.

    Its logs go to stderr, or to `logs`, an argument of subprocess.
    """
    process = subprocess.Popen(
        command("listen=127.0.0.1:0", "log_level=error", *settings),
        env=environment(), stdout=subprocess.PIPE, stderr=logs, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    with process:
        address = process.stdout.readline().split()[0]
        service = Service(process, int(address.rpartition(":")[2]))
        workers = service.workers()
        try:
            yield service
        finally:
            process.kill()
            for pid in workers | ended_children(service):
                if alive(pid):
                    os.kill(pid, signal.SIGKILL)


def ended_children(service: Service) -> set[int]:
    try:
        return service.workers()
    except (FileNotFoundError, ProcessLookupError):
        return set()


def alive(pid: int) -> bool:
    """Return whether a process runs; a zombie does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


class Closed(Exception):
    """The server has closed before a response began."""


class Client:
    """A client with one connection that reads responses incrementally."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.rest = bytearray()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.sock.close()

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def ask(self, body: bytes) -> Parsed:
        self.send(post(body))
        return self.receive()

    def receive(self) -> Parsed:
        """Return the next response. Raises `Closed` at the end, `ConnectionError` at a reset."""
        while not (end := _END.search(self.rest)):
            self._more()
        length = _LENGTH.search(self.rest, 0, end.end())
        size = end.end() + (int(length[1]) if length else 0)
        while len(self.rest) < size:
            self._more()
        data = bytes(self.rest[:size])
        del self.rest[:size]
        return answer(data)

    def receive_all(self) -> bytes:
        """Everything until the server closes."""
        while True:
            try:
                self._more()
            except Closed:
                return bytes(self.rest)

    def _more(self) -> None:
        piece = self.sock.recv(65536)
        if not piece:
            raise Closed
        self.rest += piece


@dataclass
class Load:
    """Clients that send requests without pause, each in a thread, and their observations."""

    service: Service
    body: bytes = b"x"
    pipelined: int = 1
    answered: int = 0
    reset: int = 0  # requests that were sent without a response
    refused: int = 0  # failed connections
    malformed: list[str] = field(default_factory=list)
    _stop: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def running(self, clients: int) -> Iterator[None]:
        threads = [threading.Thread(target=self._run) for _ in range(clients)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stop = True
            for thread in threads:
                thread.join()

    def _run(self) -> None:
        while not self._stop:
            try:
                client = self.service.connect()
            except OSError:
                with self._lock:
                    self.refused += 1
                return
            with client:
                self._converse(client)

    def _converse(self, client: Client) -> None:
        while not self._stop:
            due = self.pipelined
            try:
                client.send(post(self.body) * due)
                while due:
                    found = client.receive()
                    due -= 1
                    assert found.text.endswith(":" + self.body.decode()), found
                    with self._lock:
                        self.answered += 1
                    if found.headers.get("connection") == "close":
                        return
            except (ConnectionError, Closed):
                with self._lock:
                    self.reset += due
                return
            except AssertionError as failure:
                with self._lock:
                    self.malformed.append(str(failure))
                return
