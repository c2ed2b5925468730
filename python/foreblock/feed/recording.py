"""Record a feed to a file, and serve a recording as a feed.

A replay starts when clients are connected. Messages are sent at their recorded times divided
by the speed, or as fast as every client reads; no client is closed for being too slow.

A recording is one line of JSON per message, with its time. The first line identifies the
format. Each further line has `at`, in seconds since the start, and the payload of one frame
byte for byte: as `text` if it is UTF-8, else as `base64`. A truncated last line is ignored,
since recording may stop at any time.
"""

import asyncio
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import BinaryIO, Final, NamedTuple

import msgspec

from foreblock.clock import SECOND_NS, Clock
from foreblock.errors import BadRecording, MalformedFlashblock
from foreblock.feed.client import FeedClient
from foreblock.feed.inbox import Inbox
from foreblock.feed.messages import decode
from foreblock.feed.server import FeedServer
from foreblock.types import Flashblock, FlashblockId

FORMAT: Final = "foreblock feed recording"
VERSION: Final = 1
_LONGEST_LINE: Final = 128 * 1024 * 1024  # a message of 16 MiB, every character escaped


class _Head(msgspec.Struct):
    format: str
    version: int
    url: str = ""
    began: str = ""  # the date, for people


class _Line(msgspec.Struct, omit_defaults=True):
    at: float
    text: str | None = None
    base64: str | None = None


class Recorded(NamedTuple):
    """A message and its time in seconds."""

    at: float
    message: bytes


_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(_Line).decode
_decode_head: Final = msgspec.json.Decoder(_Head).decode


def head_line(url: str, began: str) -> bytes:
    return _encode(_Head(FORMAT, VERSION, url, began)) + b"\n"


def message_line(at: float, message: bytes) -> bytes:
    try:
        line = _Line(round(at, 6), text=message.decode())
    except UnicodeDecodeError:
        line = _Line(round(at, 6), base64=b64encode(message).decode())
    return _encode(line) + b"\n"


def read_recording(name: str, file: BinaryIO) -> Iterator[Recorded]:
    """Read the messages of a file. Raises `BadRecording`."""
    head = file.readline(_LONGEST_LINE)
    try:
        kind = _decode_head(head)
    except (msgspec.DecodeError, UnicodeDecodeError):
        kind = None
    if kind is None or kind.format != FORMAT:
        raise BadRecording(name, 1, "not a recording of a feed")
    if kind.version != VERSION:
        raise BadRecording(name, 1, f"version {kind.version} is not known")
    number = 1
    while line := file.readline(_LONGEST_LINE):
        number += 1
        if not line.endswith(b"\n"):
            return
        yield _read_line(name, number, line)


def _read_line(name: str, number: int, line: bytes) -> Recorded:
    try:
        found = _decode(line)
        if found.text is not None:
            return Recorded(found.at, found.text.encode())
        return Recorded(found.at, b64decode(found.base64 or "", validate=True))
    except (ValueError, msgspec.DecodeError) as why:
        raise BadRecording(name, number, str(why)) from why


_POLL_SECONDS: Final = 0.001


class Recorder:
    """Writes one feed to one file."""

    def __init__(self, url: str, file: BinaryIO, clock: Clock) -> None:
        """Raises `InvalidArgument` unless `url` is that of a WebSocket."""
        self._file: Final = file
        self._clock: Final = clock
        self._changed: Final = asyncio.Event()
        self._begun_ns = clock.monotonic_ns()
        self.client: Final = FeedClient(
            url,
            Inbox(),
            clock,
            arrived=self._write,
            lost=self._changed.set,
            place=lambda: self.place,
        )
        self.place: FlashblockId | None = None  # of the newest flashblock
        self.messages = 0
        self.bytes = 0
        self.unreadable = 0
        began = datetime.fromtimestamp(clock.wall_ns() / SECOND_NS, UTC)
        file.write(head_line(url, began.isoformat(timespec="milliseconds")))

    async def run(self, is_enough: Callable[[], bool]) -> None:
        """Record until cancelled, or until `is_enough` after a message or a lost connection."""
        reading = asyncio.create_task(self.client.run())
        try:
            while not is_enough():
                self._changed.clear()
                await self._changed.wait()
        finally:
            reading.cancel()
            await asyncio.wait([reading])
            self._file.flush()

    def _write(self) -> None:
        at = (self._clock.monotonic_ns() - self._begun_ns) / SECOND_NS
        for message in self.client.inbox.drain():
            self._file.write(message_line(at, message))
            self.messages += 1
            self.bytes += len(message)
            self._count(message)
        self._changed.set()

    def _count(self, message: bytes) -> None:
        try:
            found = decode(message)
        except MalformedFlashblock:
            self.unreadable += 1
            return
        if isinstance(found, Flashblock):
            self.place = FlashblockId(found.block_number, found.index)


async def replay(
    recording: Iterable[Recorded],
    server: FeedServer,
    speed: float,
    listeners: int = 1,
    progress: Callable[[Recorded], None] = lambda _: None,
) -> None:
    """Send a recording once `listeners` clients are connected; speed 0 is the fastest."""
    while server.clients < listeners:  # noqa: ASYNC110, clients set no event
        await asyncio.sleep(_POLL_SECONDS)
    loop = asyncio.get_running_loop()
    begun = loop.time()
    start: float | None = None
    for each in recording:
        start = each.at if start is None else start
        if speed:
            await asyncio.sleep(max(0.0, begun + (each.at - start) / speed - loop.time()))
        while server.unsent:  # noqa: ASYNC110
            await asyncio.sleep(_POLL_SECONDS)
        server.publish_bytes(each.message)
        progress(each)
        if not speed:
            await asyncio.sleep(0)
    while server.unsent:  # noqa: ASYNC110
        await asyncio.sleep(_POLL_SECONDS)
