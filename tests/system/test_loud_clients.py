"""Clients of the feed of a running service that flood it, and come back when they are closed."""

import socket
import threading
from contextlib import suppress
from pathlib import Path

from support.servers.dev_processes import dev_chain, until_latest
from support.servers.waiting import PATIENCE, until

SHAKE = (
    b"GET /ws HTTP/1.1\r\nHost: here\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
PONGS = b"\x8a\x80\0\0\0\0" * 20_000
CLIENTS = 4
MEMORY_MIB = 64  # more than before


class Loud(threading.Thread):
    """Connects, sends pongs until it is closed, and does it again."""

    def __init__(self, port: int, address: str, over: threading.Event) -> None:
        super().__init__()
        self._port = port
        self._address = address
        self._over = over
        self.closed = 0
        self.start()

    def run(self) -> None:
        while not self._over.is_set():
            with suppress(OSError), socket.socket() as sock:
                sock.settimeout(PATIENCE)
                sock.bind((self._address, 0))
                sock.connect(("127.0.0.1", self._port))
                sock.sendall(SHAKE)
                if sock.recv(4096):
                    with suppress(ConnectionError):
                        while not self._over.is_set():
                            sock.sendall(PONGS)
                    self.closed += 1


def memory_mib(pid: int) -> float:
    text = Path(f"/proc/{pid}/status").read_text("ascii")
    (line,) = [line for line in text.splitlines() if line.startswith("VmRSS:")]
    return int(line.split()[1]) / 1024


def test_blocks_of_all_networks_go_on_beside_clients_that_flood_a_feed() -> None:
    over = threading.Event()
    with dev_chain("--block-time=1", "--workers=1") as dev:
        assert dev.test is not None
        (writer,) = dev.pids("writer")
        before = memory_mib(writer)
        port = int(dev.main.feed.split(":")[2].split("/")[0])
        loud = [Loud(port, f"127.0.0.{2 + at}", over) for at in range(CLIENTS)]
        try:
            until(lambda: all(each.closed for each in loud), "each was closed")
            begun = dev.main.latest(), dev.test.latest()
            until_latest(dev.main, begun[0] + 1)
            until_latest(dev.test, begun[1] + 1)
            assert dev.pids("writer") == [writer]
            assert memory_mib(writer) < before + MEMORY_MIB
        finally:
            over.set()
            for each in loud:
                each.join()
