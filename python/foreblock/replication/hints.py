"""Nonce hints of the writer, to the replicas of its log: the newest of each sender.

A hint is sent as soon as the one before is on its way, so that many at once cost one task.
"""

import asyncio
from typing import Final

from foreblock.log.connection import LogConnection
from foreblock.log.forwarding import publish_hint
from foreblock.log.submission import NonceHint


class HintPublisher:
    """Sends hints until it is closed; everything runs on the loop."""

    def __init__(self, connection: LogConnection) -> None:
        self._connection: Final = connection
        self._waiting: dict[bytes, int] = {}
        self._task: asyncio.Task[None] | None = None

    def put(self, sender: bytes, nonce: int) -> None:
        """Send a hint soon."""
        self._waiting[sender] = nonce
        if self._task is None:
            self._task = asyncio.create_task(self._send())

    async def _send(self) -> None:
        try:
            while self._waiting:
                sender, nonce = self._waiting.popitem()
                await publish_hint(self._connection, NonceHint(sender, nonce))
        finally:
            self._task = None

    def close(self) -> None:
        """Send no more."""
        self._waiting.clear()
        if self._task is not None:
            self._task.cancel()
