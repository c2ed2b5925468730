"""The state of the service that systemd receives, in the event loop of a test."""

import asyncio
import os
import socket
from pathlib import Path

import pytest

from foreblock.service.systemd import ServiceState
from support.servers.waiting import PATIENCE

HOUR = "3600000000"


def received(address: str, environment: dict[str, str], count: int) -> list[bytes]:
    """The first messages of a service with this environment."""

    async def run() -> list[bytes]:
        ServiceState({"NOTIFY_SOCKET": address} | environment).started()
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(PATIENCE):
            return [await loop.sock_recv(sock, 100) for _ in range(count)]

    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.setblocking(False)
        sock.bind(f"\0{address[1:]}" if address.startswith("@") else address)
        found = asyncio.run(run())
        with pytest.raises(BlockingIOError):
            sock.recv(100)
        return found


def test_an_abstract_address_is_one_of_the_kernel() -> None:
    assert received(f"@foreblock-test-{os.getpid()}", {}, 1) == [b"READY=1"]


def test_only_the_watched_process_reports_that_it_runs(tmp_path: Path) -> None:
    own = {"WATCHDOG_USEC": HOUR, "WATCHDOG_PID": str(os.getpid())}
    assert received(str(tmp_path / "a"), own, 2) == [b"READY=1", b"WATCHDOG=1"]
    others = own | {"WATCHDOG_PID": "1"}
    assert received(str(tmp_path / "b"), others, 1) == [b"READY=1"]


def test_a_service_goes_on_if_nobody_reads_its_state(tmp_path: Path) -> None:
    """systemd may be busy or about to restart itself."""

    async def start() -> None:
        for address in ("", str(tmp_path / "absent"), str(tmp_path / "full")):
            state = ServiceState({"NOTIFY_SOCKET": address})
            for _ in range(10_000):  # more than the queue of the socket holds
                state.started()

    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(str(tmp_path / "full"))
        asyncio.run(start())
