"""Flashblocks on their way out: encoded once, kept while their job is the current one."""

from collections import deque
from functools import cached_property
from typing import Final

from foreblock.feed.feed_options import FeedOptions
from foreblock.feed.messages import encode
from foreblock.feed.wire import compress
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


_SHORT: Final = 126  # RFC 6455, 5.2: from here on the length takes two bytes more
_LONG: Final = 1 << 16  # and from here on eight


def frame_size(payload: int) -> int:
    """The bytes of an unmasked frame with a payload of this many bytes."""
    if payload < _SHORT:
        return 2 + payload
    return (4 if payload < _LONG else 10) + payload


class Backlog:
    """The messages that were written to one client, as far as they may be unsent."""

    def __init__(self, most_messages: int, most_bytes: int) -> None:
        self._most_messages = most_messages
        self._most_bytes = most_bytes
        self._sizes: deque[int] = deque()
        self._written = 0

    def has_room(self, unsent: int, size: int) -> bool:
        """Whether `size` bytes more may be written while `unsent` ones are in the buffer.

        Who has taken everything always has room, however large the next message is.
        """
        self._forget_sent(unsent)
        if not unsent:
            return True
        return len(self._sizes) < self._most_messages and unsent + size <= self._most_bytes

    def wrote(self, size: int) -> None:
        """So many bytes were written, to be counted as one message."""
        self._sizes.append(size)
        self._written += size

    def _forget_sent(self, unsent: int) -> None:
        while self._sizes and self._written - self._sizes[0] >= unsent:
            self._written -= self._sizes.popleft()
