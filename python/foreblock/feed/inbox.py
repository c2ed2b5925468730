"""A bounded queue of the messages of one feed, in one event loop.

`put` waits a little for room, which slows the sender and smooths a burst; then the oldest
messages are dropped. A dropped message is a gap, which another feed or the canonical source
closes, whereas a client that stops reading would be disconnected by its server.
"""

import asyncio
from collections import deque
from typing import Final

from msgspec import Struct


class InboxBounds(Struct, frozen=True):
    """The size of the queue, and how long `put` waits for room, in seconds."""

    messages: int = 64
    bytes: int = 16 * 1024 * 1024
    patience: float = 0.5


_DEFAULT: Final = InboxBounds()


class Inbox:
    """A queue that is emptied as a whole."""

    def __init__(self, bounds: InboxBounds = _DEFAULT) -> None:
        self._bounds: Final = bounds
        self._messages: deque[bytes] = deque()
        self._bytes = 0
        self._room: Final = asyncio.Event()
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._messages)

    async def put(self, message: bytes) -> None:
        """Add a message; drop the oldest if there is no room in time."""
        if not self._fits(message):
            self._room.clear()
            try:
                async with asyncio.timeout(self._bounds.patience):
                    await self._room.wait()
            except TimeoutError:
                self._make_room(message)
        self._messages.append(message)
        self._bytes += len(message)

    def drain(self) -> list[bytes]:
        """Remove and return all messages, oldest first."""
        taken = list(self._messages)
        self._messages.clear()
        self._bytes = 0
        self._room.set()
        return taken

    def _fits(self, message: bytes) -> bool:
        """Return whether a message fits; a single one always does."""
        if not self._messages:
            return True
        if len(self._messages) >= self._bounds.messages:
            return False
        return self._bytes + len(message) <= self._bounds.bytes

    def _make_room(self, message: bytes) -> None:
        while not self._fits(message):
            self._bytes -= len(self._messages.popleft())
            self.dropped += 1
