"""Flashblocks on their way out: encoded once, kept while their job is the current one."""

from collections import deque
from functools import cached_property

from foreblock.feed.compression import compress
from foreblock.feed.messages import encode
from foreblock.feed.options import FeedOptions
from foreblock.types import Flashblock, FlashblockId


class Outgoing:
    """A flashblock as the bytes that every client gets."""

    def __init__(
        self, flashblock: Flashblock, options: FeedOptions, text: bytes | None = None
    ) -> None:
        """`text` is how it was written by somebody else, where that is to be kept."""
        self.payload_id = flashblock.payload_id
        self.place = FlashblockId(flashblock.block_number, flashblock.index)
        self.text = text or encode(flashblock, predecessor=options.predecessor)
        self._quality = options.brotli_quality

    @cached_property
    def compressed(self) -> bytes:
        """The text as brotli, made when the first client wants it."""
        return compress(self.text, self._quality)


class CurrentJob:
    """The newest flashblocks of the job that is being announced, at most `limit` bytes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._messages: deque[Outgoing] = deque()
        self._bytes = 0

    def add(self, message: Outgoing) -> None:
        """One more; the first of another job takes the place of all."""
        if self._messages and self._messages[-1].payload_id != message.payload_id:
            self._messages.clear()
            self._bytes = 0
        self._messages.append(message)
        self._bytes += len(message.text)
        while self._bytes > self._limit:
            self._bytes -= len(self._messages.popleft().text)

    def since(self, place: FlashblockId) -> list[Outgoing]:
        """Those at this place and after it, as far as they are kept."""
        at = (place.block_number, place.index)
        return [
            message
            for message in self._messages
            if (message.place.block_number, message.place.index) >= at
        ]
