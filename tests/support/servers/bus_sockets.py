"""Sockets for tests of the bus."""

import asyncio
import socket


def listening(path: str) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX)
    sock.bind(path)
    sock.listen()
    sock.settimeout(0)
    return sock


async def closed() -> None:
    """Let transports that were told to close do so."""
    for _ in range(3):
        await asyncio.sleep(0)
