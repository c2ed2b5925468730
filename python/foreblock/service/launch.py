"""Networks and settings, to running processes.

Nothing of what those run is imported here: a worker finds its handler by name, and so does
the writer what it writes with, so that the supervisor stays small.
"""

import asyncio
import os
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import chain, repeat
from typing import Final, NamedTuple

import msgspec

from foreblock.ledger.storage.seen_commits import seen_page
from foreblock.server import sockets
from foreblock.server.child import Slot
from foreblock.server.supervisor import Supervisor
from foreblock.service.logs import configure_queued
from foreblock.service.temporary import temporary_folder
from foreblock.settings import Settings
from foreblock.settings.networks import Network

# Makes the handler of one network; named and not imported.
HANDLER: Final = "foreblock.service.app:make_served"


class Place(NamedTuple):
    """A network and the addresses it is served at."""

    network: Network
    listen: str
    feed: str = ""  # of its flashblocks; none if empty


class Started(NamedTuple):
    """What serves where, once it does."""

    addresses: Sequence[str]  # in the order of the places
    feeds: Sequence[str]
    workers: int


class Order(msgspec.Struct):
    """What a worker is told at its start."""

    settings: Settings
    networks: list[Network]
    sockets: list[int]  # one for each network
    handler: str
    bus: str  # the path of the writer's socket; empty where there is no writer
    seen: str  # the name of the page in which processes say what they have seen


class WritingOrder(msgspec.Struct):
    """What the writer is told at its start."""

    settings: Settings
    networks: list[Network]
    bus: int
    feeds: list[int | None]  # one for each network
    is_first: bool  # no writer ran before this one
    seen: str


def run(
    settings: Settings,
    places: Sequence[Place],
    started: Callable[[Started], None],
    handler: str = HANDLER,
) -> bool:
    """Serve until told to stop, and say whether that was cut short by being told twice.

    `started` is called once everything serves. Raises `ServiceError`.
    """
    configure_queued(settings.log_level)
    count = settings.workers or os.cpu_count() or 1
    networks = [place.network for place in places]
    written = any(network.source != "store" for network in networks)
    bus_if_needed = _bus() if written else nullcontext(None)
    with (
        _listening(places, count) as (by_place, feeds),
        bus_if_needed as bus,
        seen_page(len(places)) as seen,
    ):
        path = "" if bus is None else bus.getsockname()
        workers = [
            Slot(
                "worker",
                [sys.executable, "-m", "foreblock.service.worker"],
                of_worker,
                partial(_order, settings, networks, handler, path, seen),
                settings.worker_timeout,
            )
            for of_worker in zip(*by_place, strict=True)
        ]
        writer = None if bus is None else _writer(settings, networks, bus, feeds, seen)
        said = Started(
            [sockets.name(opened[0]) for opened in by_place],
            ["" if feed is None else sockets.name(feed) for feed in feeds],
            count,
        )
        return asyncio.run(_supervise(workers, writer, settings, partial(started, said)))


async def _supervise(
    workers: Sequence[Slot], writer: Slot | None, settings: Settings, ready: Callable[[], None]
) -> bool:
    return await Supervisor(workers, settings.server.drain_grace, ready, writer).run()


def _writer(
    settings: Settings,
    networks: list[Network],
    bus: socket.socket,
    feeds: Sequence[socket.socket | None],
    seen: str,
) -> Slot:
    opened = [feed for feed in feeds if feed is not None]
    present = [feed is not None for feed in feeds]
    is_first = chain([True], repeat(object=False))
    return Slot(
        "writer",
        [sys.executable, "-m", "foreblock.service.writer"],
        [bus, *opened],
        partial(_writing_order, settings, networks, present, is_first, seen),
        settings.writer_timeout,
    )


def _order(
    settings: Settings,
    networks: list[Network],
    handler: str,
    bus: str,
    seen: str,
    descriptors: Sequence[int],
) -> bytes:
    return msgspec.json.encode(Order(settings, networks, list(descriptors), handler, bus, seen))


def _writing_order(
    settings: Settings,
    networks: list[Network],
    present: Sequence[bool],
    is_first: Iterator[bool],
    seen: str,
    descriptors: Sequence[int],
) -> bytes:
    bus, *feeds = descriptors
    left = iter(feeds)
    given = [next(left) if there else None for there in present]
    order = WritingOrder(settings, networks, bus, given, next(is_first), seen)
    return msgspec.json.encode(order)


@contextmanager
def _listening(
    places: Sequence[Place], count: int
) -> Iterator[tuple[list[list[socket.socket]], list[socket.socket | None]]]:
    """For each place a socket for every worker, and one for its feed if it has one."""
    opened: list[socket.socket] = []
    try:
        by_place = []
        for place in places:
            by_place.append(sockets.listen(place.listen, count))
            opened += by_place[-1]
        feeds: list[socket.socket | None] = []
        for place in places:
            feeds.append(sockets.listen(place.feed, 1)[0] if place.feed else None)
            opened += [feed for feed in feeds[-1:] if feed is not None]
        yield by_place, feeds
    finally:
        for sock in opened:
            sock.close()


@contextmanager
def _bus() -> Iterator[socket.socket]:
    """The writer's socket, in a folder of its own: nobody else's file can be in the way.

    The supervisor keeps it open, so that workers which connect while the writer restarts
    wait for it instead of being refused. The path is short wherever the data lies.
    """
    with (
        temporary_folder() as folder,
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as bus,
    ):
        bus.bind(str(folder / "bus"))
        bus.listen(sockets.BACKLOG)
        bus.settimeout(0)
        yield bus
