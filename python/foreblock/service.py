"""`foreblock serve`, from settings to running workers."""

import asyncio
import os
import socket
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import msgspec

from foreblock.logs import configure
from foreblock.server import sockets
from foreblock.server.supervisor import Supervisor
from foreblock.settings import Settings

# Makes the handler from the settings; named and not imported, so that the supervisor
# loads nothing of what a worker runs.
HANDLER: Final = "foreblock.app:make_handler"


class Order(msgspec.Struct):
    """What a worker is told at its start."""

    settings: Settings
    sockets: list[int]
    handler: str


def run(settings: Settings, started: Callable[[str, int], None], handler: str = HANDLER) -> bool:
    """Serve until told to stop, and say whether that was cut short by being told twice.

    `started` hears the address and the number of workers once all of them serve.
    Raises `ServiceError`.
    """
    configure(settings.log_level)
    count = settings.workers or os.cpu_count() or 1
    opened = sockets.listen(settings.listen, count)
    try:
        return asyncio.run(
            _supervise(
                opened,
                partial(_order, settings, handler),
                settings.server.drain_grace,
                partial(started, sockets.name(opened[0]), count),
            )
        )
    finally:
        for sock in opened:
            sock.close()


async def _supervise(
    opened: Sequence[socket.socket],
    order: Callable[[Sequence[int]], bytes],
    grace: float,
    ready: Callable[[], None],
) -> bool:
    command = [sys.executable, "-m", "foreblock.worker"]
    slots = [[sock] for sock in opened]
    return await Supervisor(slots, command, order, grace, ready).run()


def _order(settings: Settings, handler: str, descriptors: Sequence[int]) -> bytes:
    return msgspec.json.encode(Order(settings, list(descriptors), handler))
