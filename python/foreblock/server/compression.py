"""Responses and requests compressed by zstd or gzip, in threads.

A head that accepts or has a coding chooses a handler of its own by its path, so that other requests
pay nothing. Both libraries release the interpreter. Few responses are compressed at once; others
are sent as they are, which a client must accept anyway. A compressed request leases the bytes of
the largest body until it is answered. zstd is there if its package is installed.
"""

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import cache
from typing import Final, NamedTuple

from foreblock.scheduling.admission import Lease, Quota, WorkerBudget
from foreblock.scheduling.reply import Client, Handler, Reply
from foreblock.server import answers
from foreblock.server.answers import Answer
from foreblock.server.head import RequestHead

# Added to a path before the name of a coding; no target of a request has a space.
COMPRESSED: Final = b" "  # the response
DECOMPRESSED: Final = b" un"  # the request

GZIP: Final = zlib.MAX_WBITS | 16  # with the header and the checksum of gzip
FASTEST: Final = 1
LARGEST_WINDOW: Final = 1 << 23  # RFC 9659: of the coding zstd; a frame may name up to 128 MiB
AT_ONCE: Final = 4  # compressed responses of an address

CodedHandler = Callable[[bytes, Client], Reply | Answer | Awaitable[Reply | Answer]]


class NotPacked(Exception):
    """The bytes are not of their coding, or incomplete."""


class Coding(NamedTuple):
    """A content coding of HTTP."""

    name: bytes
    pack: Callable[[Iterable[bytes]], bytes]
    # The text, or more than `limit` bytes of a longer one; raises `NotPacked`.
    unpack: Callable[[bytes, int], bytes]


def _gzip(pieces: Iterable[bytes]) -> bytes:
    packer = zlib.compressobj(FASTEST, wbits=GZIP)
    return b"".join((*map(packer.compress, pieces), packer.flush()))


def _gunzip(body: bytes, limit: int) -> bytes:
    unpacker = zlib.decompressobj(wbits=GZIP)
    try:
        text = unpacker.decompress(body, limit + 1)
    except zlib.error as why:
        raise NotPacked from why
    if len(text) <= limit and (not unpacker.eof or unpacker.unused_data):
        raise NotPacked("incomplete, or more than one member")
    return text


@cache
def codings() -> dict[bytes, Coding]:
    """The codings that are there, the preferred first."""
    found = {b"gzip": Coding(b"gzip", _gzip, _gunzip)}
    try:
        import zstandard  # noqa: PLC0415, an extra
    except ImportError:
        return found

    def pack(pieces: Iterable[bytes]) -> bytes:
        packer = zstandard.ZstdCompressor(FASTEST).compressobj()
        return b"".join((*map(packer.compress, pieces), packer.flush()))

    def unpack(body: bytes, limit: int) -> bytes:
        unpacker = zstandard.ZstdDecompressor(max_window_size=LARGEST_WINDOW)
        try:
            size = zstandard.frame_content_size(body)
            if size >= 0:
                if size > limit:
                    return bytes(limit + 1)
                return unpacker.decompress(body, max_output_size=limit, allow_extra_data=False)
            # A reader stops at the limit, but not where the frame is incomplete or ends early.
            start = unpacker.stream_reader(body).read(limit + 1)
            if len(start) > limit:
                return start
            whole = unpacker.decompressobj()
            text = whole.decompress(body)
        except zstandard.ZstdError as why:
            raise NotPacked from why
        if not whole.eof or whole.unused_data:
            raise NotPacked("incomplete, or more than one frame")
        return text

    return {b"zstd": Coding(b"zstd", pack, unpack), **found}


def coding_of(head: RequestHead) -> bytes:
    """What a request adds to its path for its codings."""
    given = (head.get(b"content-encoding") or b"").lower().removeprefix(b"x-")
    accepted = set(_accepted((head.get(b"accept-encoding") or b"").lower()))
    taken = next((each for each in codings() if each in accepted), b"")
    return (DECOMPRESSED + given if given in codings() else b"") + (
        COMPRESSED + taken if taken else b""
    )


def _accepted(header: bytes) -> Iterator[bytes]:
    """The names of a list but those with a weight of 0."""
    for coding in header.split(b","):
        name, _, weight = coding.partition(b";")
        if weight.replace(b" ", b"").rstrip(b"0.") != b"q=":
            yield name.strip()


def coded_handlers(
    path: bytes, handler: Handler, budget: WorkerBudget, least: int, body_limit: int
) -> Iterator[tuple[bytes, CodedHandler]]:
    """The handlers of a path by what its codings add; `least` bytes are compressed."""
    slots = Quota(AT_ONCE)
    by_suffix: dict[bytes, Handler] = {b"": handler}
    for coding in codings().values():
        by_suffix[COMPRESSED + coding.name] = Compressing(handler, least, coding, slots)
    for suffix, each in by_suffix.items():
        if suffix:
            yield path + suffix, each
        for coding in codings().values():
            unpacking = Decompressing(each, budget, body_limit, coding)
            yield path + DECOMPRESSED + coding.name + suffix, unpacking


class Compressing:
    """A handler whose long responses are compressed."""

    def __init__(self, handler: Handler, least: int, coding: Coding, slots: Quota) -> None:
        self._handler: Final = handler
        self._least: Final = least
        self._pack: Final = coding.pack
        headers = b"Content-Encoding: %b\r\nVary: Accept-Encoding\r\n"
        self._headers: Final = headers % coding.name
        self._slots: Final = slots

    def __call__(self, body: bytes, client: Client) -> Reply | Awaitable[Reply]:
        reply = self._handler(body, client)
        if not isinstance(reply, Reply):
            return self._later(reply)
        slot = self._slot_for(reply)
        return reply if slot is None else self._compressed(reply, slot)

    async def _later(self, waiting: Awaitable[Reply]) -> Reply:
        reply = await waiting
        slot = self._slot_for(reply)
        return reply if slot is None else await self._compressed(reply, slot)

    def _slot_for(self, reply: Reply) -> Lease | None:
        return self._slots.lease() if reply.size >= self._least else None

    async def _compressed(self, reply: Reply, slot: Lease) -> Reply:
        """Compress a reply, whose bytes stay counted until then."""
        text = await asyncio.to_thread(self._pack, reply.take_pieces())
        del slot
        return Reply(text, reply.headers + self._headers)


class Decompressing:
    """A handler of compressed requests."""

    def __init__(self, handler: Handler, budget: WorkerBudget, limit: int, coding: Coding) -> None:
        """A request may have up to `limit` bytes when it is decompressed."""
        self._coding: Final = coding
        self._handler: Final = handler
        self._budget: Final = budget
        self._limit: Final = limit

    async def __call__(self, body: bytes, client: Client) -> Reply | Answer:
        lease = self._budget.received.lease(self._limit)
        if lease is None:
            return answers.TOO_MUCH_RECEIVED
        try:
            text = await asyncio.to_thread(self._coding.unpack, body, self._limit)
        except NotPacked:
            del lease  # the exception refers to this frame, and the thread keeps it for a moment
            return answers.bad_request(f"the body is not {self._coding.name.decode()}")
        if len(text) > self._limit:
            return answers.body_too_large(len(text), self._limit)
        reply = self._handler(text, client)
        found = reply if isinstance(reply, Reply) else await reply
        del lease  # held until here
        return found
