"""Messages of a feed's server: flashblocks, and errors for clients that speak JSON-RPC. No I/O.

A flashblock is encoded once, kept for resuming clients, and counted until it is sent. `Backlog`
derives the number of unsent messages of a client from the bytes in its transport's buffer.
Pings are in the same buffer and not counted, so the number may be one too high, never too low.

8546 is the usual port of JSON-RPC over WebSocket, and here that of a feed. Without a response a
client would wait for its timeout, or for ever, so it gets an error that names the right address.
"""

from collections import deque
from functools import cached_property
from typing import Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from foreblock.feed.feed_options import FeedServerOptions
from foreblock.feed.messages import encode
from foreblock.feed.wire import compress
from foreblock.types import Flashblock, FlashblockId

# RFC 6455, 5.2: from these payload sizes on, the length takes two and eight bytes more.
_SHORT: Final = 126
_LONG: Final = 1 << 16


class Outgoing:
    """A flashblock in the encodings of clients."""

    def __init__(
        self, flashblock: Flashblock, options: FeedServerOptions, text: bytes | None = None
    ) -> None:
        """`text` is the JSON of another feed, to be sent unchanged."""
        self.payload_id = flashblock.payload_id
        self.place = FlashblockId(flashblock.block_number, flashblock.index)
        self.text = text or encode(flashblock, predecessor=options.predecessor)
        self._quality = options.brotli_quality

    @cached_property
    def compressed(self) -> bytes:
        """The text as brotli, made on first use."""
        return compress(self.text, self._quality)


class CurrentJob:
    """The newest flashblocks of the current job, at most `limit` bytes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._messages: deque[Outgoing] = deque()
        self._bytes = 0

    def add(self, message: Outgoing) -> None:
        """Add a flashblock; the first of another job replaces all."""
        if self._messages and self._messages[-1].payload_id != message.payload_id:
            self._messages.clear()
            self._bytes = 0
        self._messages.append(message)
        self._bytes += len(message.text)
        while self._bytes > self._limit:
            self._bytes -= len(self._messages.popleft().text)

    def since(self, place: FlashblockId) -> list[Outgoing]:
        """The kept flashblocks from this one on."""
        at = (place.block_number, place.index)
        return [
            message
            for message in self._messages
            if (message.place.block_number, message.place.index) >= at
        ]


def frame_size(payload: int) -> int:
    """The size of an unmasked frame with a payload of this size."""
    if payload < _SHORT:
        return 2 + payload
    return (4 if payload < _LONG else 10) + payload


class Backlog:
    """The messages written to one client that may be unsent."""

    def __init__(self, most_messages: int, most_bytes: int) -> None:
        self._most_messages = most_messages
        self._most_bytes = most_bytes
        self._sizes: deque[int] = deque()
        self._written = 0

    def has_room(self, unsent: int, size: int) -> bool:
        """Return whether `size` more bytes may be written while `unsent` bytes are in the buffer.

        A client that has read everything always has room, however large the message is.
        """
        self._forget_sent(unsent)
        if not unsent:
            return True
        return len(self._sizes) < self._most_messages and unsent + size <= self._most_bytes

    def wrote(self, size: int) -> None:
        """Count the bytes of one message."""
        self._sizes.append(size)
        self._written += size

    def _forget_sent(self, unsent: int) -> None:
        while self._sizes and self._written - self._sizes[0] >= unsent:
            self._written -= self._sizes.popleft()


RPC_PATHS: Final = frozenset({"", "/", "/eth"})  # where JSON-RPC is served elsewhere
_POST: Final = b"POST "
_NO_METHOD: Final = -32601
_NULL: Final = Raw(b"null")


class _Request(Struct):
    """A request, as far as it has to be known."""

    method: str | UnsetType = UNSET
    id: Raw = _NULL


class _Fault(Struct):
    code: int
    message: str


class _Reply(Struct):
    id: Raw
    error: _Fault
    jsonrpc: str = "2.0"


_decode = msgspec.json.Decoder(_Request | list[_Request]).decode
_encode = msgspec.json.Encoder().encode


def rpc_hint(address: str) -> str:
    """Name the address of JSON-RPC, HOST:PORT; it may be empty."""
    if not address:
        return "this is a feed of flashblocks; it has no JSON-RPC"
    return f"this is a feed of flashblocks; JSON-RPC is at http://{address} and ws://{address}"


def rpc_answer(message: bytes | str, address: str) -> bytes | None:
    """Return the response to a request or a batch; None if the message is neither."""
    try:
        asked = _decode(message)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    fault = _Fault(_NO_METHOD, rpc_hint(address))
    if isinstance(asked, _Request):
        return None if asked.method is UNSET else _encode(_Reply(asked.id, fault))
    return _encode([_Reply(each.id, fault) for each in asked]) if asked else None


def rpc_http_answer(data: bytes, address: str) -> bytes | None:
    """Return the response to the first bytes of a POST; None for other bytes.

    Its status is 200, as for every error of JSON-RPC: clients show its text.
    """
    if not data.startswith(_POST):
        return None
    body = rpc_answer(data.partition(b"\r\n\r\n")[2] or b"{}", address)
    if body is None:
        body = _encode(_Reply(_NULL, _Fault(_NO_METHOD, rpc_hint(address))))
    return (
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
        b"Content-Length: %d\r\n\r\n%b"
    ) % (len(body), body)
