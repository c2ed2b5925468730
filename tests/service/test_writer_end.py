"""The end of the writer process, in the test's loop, with toys instead of its networks."""

import asyncio
import socket
import sys
from pathlib import Path

import msgspec
import pytest

from foreblock.feed.server import FeedServer
from foreblock.server.child import END, READY
from foreblock.service import writer
from foreblock.service.launch import WriterOrder
from foreblock.settings import Settings
from foreblock.settings.networks import Network
from support.servers.waiting import PATIENCE

NAMES = ("main", "test")


class Toys:
    """Networks that record their end, and feeds that wait for their clients."""

    def __init__(self) -> None:
        self.closed: list[str] = []
        self.stopping = 0
        self.all_stopping = asyncio.Event()
        self.clients_gone = asyncio.Event()

    async def begin(self, network: Network, *_: object) -> "ToyNetwork":
        return ToyNetwork(network.name, self)

    async def open_feed(self, *_: object) -> "ToyFeed":
        return ToyFeed(self)


class ToyNetwork:
    """Runs until it is stopped."""

    def __init__(self, name: str, toys: Toys) -> None:
        self.name = name
        self.toys = toys
        self.stopped = asyncio.Event()

    def stop(self) -> None:
        self.stopped.set()

    async def run(self) -> None:
        await self.stopped.wait()

    async def status(self) -> None:
        pass

    async def close(self) -> None:
        self.toys.closed.append(self.name)


class ToyFeed(FeedServer):
    """Stops when its clients are gone."""

    def __init__(self, toys: Toys) -> None:
        super().__init__()
        self.toys = toys

    async def stop(self) -> None:
        assert sorted(self.toys.closed) == sorted(NAMES), "stores are released first"
        self.toys.stopping += 1
        if self.toys.stopping == len(NAMES):
            self.toys.all_stopping.set()
        await self.toys.clients_gone.wait()


def order_of(folder: Path, bus: socket.socket) -> bytes:
    networks = [Network(name=name, data=str(folder / name), source="feed") for name in NAMES]
    order = WriterOrder(
        settings=Settings(), networks=networks, bus=bus.detach(), feeds=[None, None],
        is_first=True, seen="", addresses=["", ""], runtime=str(folder), snapshots=[None, None],
    )  # fmt: skip
    return msgspec.json.encode(order)


def patch(monkeypatch: pytest.MonkeyPatch, **replaced: object) -> None:
    for name, value in replaced.items():
        monkeypatch.setattr(writer, name, value)


def nothing(*_: object) -> None:
    """Do not change the test's process."""


def test_stores_are_released_before_feeds_stop_which_stop_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        toys = Toys()
        patch(
            monkeypatch, _begin=toys.begin, open_feed=toys.open_feed, configure_queued=nothing,
            spare_from_collection=nothing, raise_file_limit=nothing,
            SWITCH_SECONDS=sys.getswitchinterval(),
        )  # fmt: skip
        bus = socket.socket(socket.AF_UNIX)
        bus.bind(str(tmp_path / "bus"))
        line, theirs = socket.socketpair()
        with line, theirs:
            line.settimeout(PATIENCE)
            order = order_of(tmp_path, bus)
            writing = asyncio.create_task(writer._write(order, theirs))
            assert await asyncio.to_thread(line.recv, 100) == READY + END
            line.shutdown(socket.SHUT_WR)  # as if the supervisor were gone
            stopping = asyncio.create_task(toys.all_stopping.wait())
            await asyncio.wait([writing, stopping], return_when=asyncio.FIRST_COMPLETED)
            toys.clients_gone.set()
            await writing
            assert toys.all_stopping.is_set()

    asyncio.run(asyncio.wait_for(run(), PATIENCE))
