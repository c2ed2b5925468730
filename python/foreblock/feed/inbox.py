"""Messages of one feed that wait to be read, bounded in number and bytes.

It belongs to one event loop. Who brings a message waits a little for room, which makes the
sender wait too and takes the edge off a burst; after that the oldest go. A message that is
lost is a gap, which the chain closes from another feed or its canonical source, while a
reader that never reads would be cut off by its server.
"""

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class InboxBounds:
    """What may wait, and how long a sender is kept waiting, in seconds."""

    messages: int = 64
    bytes: int = 16 * 1024 * 1024
    patience: float = 0.5


_DEFAULT: Final = InboxBounds()


class Inbox:
    """Whoever is told of a message by `arrived` takes it, and all others, with `take`."""

    def __init__(self, bounds: InboxBounds = _DEFAULT) -> None:
        self._bounds: Final = bounds
        self._messages: deque[bytes] = deque()
        self._bytes = 0
        self._room: Final = asyncio.Event()
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._messages)

    async def put(self, message: bytes) -> None:
        """Add a message; the oldest go if nobody makes room in time."""
        if not self._fits(message):
            self._room.clear()
            try:
                async with asyncio.timeout(self._bounds.patience):
                    await self._room.wait()
            except TimeoutError:
                self._make_room(message)
        self._messages.append(message)
        self._bytes += len(message)

    def take(self) -> list[bytes]:
        """All that wait, in the order in which they came."""
        taken = list(self._messages)
        self._messages.clear()
        self._bytes = 0
        self._room.set()
        return taken

    def _fits(self, message: bytes) -> bool:
        """One alone always does: what is too large for anybody was refused before."""
        if not self._messages:
            return True
        if len(self._messages) >= self._bounds.messages:
            return False
        return self._bytes + len(message) <= self._bounds.bytes

    def _make_room(self, message: bytes) -> None:
        while not self._fits(message):
            self._bytes -= len(self._messages.popleft())
            self.dropped += 1
