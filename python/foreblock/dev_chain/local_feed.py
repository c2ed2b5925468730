"""The feed of a chain in this process: messages are handed over instead of sent.

It keeps the current job, as the server of a feed does, for a client that connects in the middle of
a block or has lost its connection.
"""

from collections import deque
from typing import Final

from foreblock.feed.feed_options import FeedServerOptions
from foreblock.feed.outgoing import Outgoing
from foreblock.feed.wire import start_after
from foreblock.types import Flashblock, FlashblockId

OPTIONS: Final = FeedServerOptions()
MOST_WAITING: Final = 1_024  # messages of a client; it loses the oldest, as an inbox does


class LocalFeed:
    """The server of a feed, to which `FaultyFeed` publishes."""

    def __init__(self) -> None:
        self._job: Final[list[Flashblock]] = []  # encoded for clients only
        self._clients: Final[list[FeedLine]] = []

    def publish(self, flashblock: Flashblock) -> None:
        """Send a flashblock to all clients."""
        if self._job and self._job[-1].payload_id != flashblock.payload_id:
            self._job.clear()
        self._job.append(flashblock)
        if self._clients:
            self.publish_bytes(Outgoing(flashblock, OPTIONS).text)

    def publish_bytes(self, content: bytes, /) -> None:
        """Send a message that need not be a flashblock."""
        for client in self._clients:
            client.arriving.append(content)

    def connect(self, after: FlashblockId | None) -> "FeedLine":
        """Connect a client, which first gets what is kept after a flashblock."""
        client = FeedLine(self)
        first = start_after(after)
        for each in self._job:
            if (each.block_number, each.index) >= (first.block_number, first.index):
                client.arriving.append(Outgoing(each, OPTIONS).text)
        self._clients.append(client)
        return client

    def disconnect(self, client: "FeedLine") -> None:
        """Send it nothing more; messages that it has not taken are lost."""
        client.arriving.clear()
        if client in self._clients:
            self._clients.remove(client)


class FeedLine:
    """The connection of one client."""

    def __init__(self, feed: LocalFeed) -> None:
        self.arriving: Final[deque[bytes]] = deque(maxlen=MOST_WAITING)
        self._feed: Final = feed

    def take(self) -> list[bytes]:
        """The messages since the last call."""
        taken = list(self.arriving)
        self.arriving.clear()
        return taken

    def close(self) -> None:
        self._feed.disconnect(self)
