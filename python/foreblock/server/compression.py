"""Responses and requests compressed by gzip, in threads.

A head that accepts or has gzip chooses a handler of its own by its path, so that other requests
pay nothing. zlib releases the interpreter. Few responses are compressed at once; others are sent
as they are, which a client must accept anyway. A compressed request leases the bytes of the
largest body until it is answered.
"""

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Final

from foreblock.scheduling.admission import Lease, Quota, WorkerBudget
from foreblock.scheduling.reply import Client, Handler, Reply
from foreblock.server import answers
from foreblock.server.answers import Answer
from foreblock.server.head import RequestHead

# Added to a path; no target of a request has a space.
COMPRESSED: Final = b" gzip"  # the response
DECOMPRESSED: Final = b" gunzip"  # the request

HEADERS: Final = b"Content-Encoding: gzip\r\nVary: Accept-Encoding\r\n"
GZIP: Final = zlib.MAX_WBITS | 16  # with the header and the checksum of gzip
FASTEST: Final = 1
AT_ONCE: Final = 4  # compressed responses of an address

CodedHandler = Callable[[bytes, Client], Reply | Answer | Awaitable[Reply | Answer]]


def coding_of(head: RequestHead) -> bytes:
    """What a request adds to its path for its codings."""
    given = (head.get(b"content-encoding") or b"").lower() in (b"gzip", b"x-gzip")
    taken = any(map(_is_gzip, (head.get(b"accept-encoding") or b"").lower().split(b",")))
    return (DECOMPRESSED if given else b"") + (COMPRESSED if taken else b"")


def _is_gzip(coding: bytes) -> bool:
    name, _, weight = coding.partition(b";")
    return name.strip() == b"gzip" and weight.replace(b" ", b"").rstrip(b"0.") != b"q="


def coded_handlers(
    path: bytes, handler: Handler, budget: WorkerBudget, least: int, body_limit: int
) -> Iterator[tuple[bytes, CodedHandler]]:
    """The handlers of a path by what its codings add; `least` bytes are compressed."""
    compressing = Compressing(handler, least)
    yield path + COMPRESSED, compressing
    for suffix, each in ((b"", handler), (COMPRESSED, compressing)):
        yield path + DECOMPRESSED + suffix, Decompressing(each, budget, body_limit)


class Compressing:
    """A handler whose long responses are compressed."""

    def __init__(self, handler: Handler, least: int) -> None:
        self._handler: Final = handler
        self._least: Final = least
        self._slots: Final = Quota(AT_ONCE)

    def __call__(self, body: bytes, client: Client) -> Reply | Awaitable[Reply]:
        reply = self._handler(body, client)
        if not isinstance(reply, Reply):
            return self._later(reply)
        slot = self._slot_for(reply)
        return reply if slot is None else _compressed(reply, slot)

    async def _later(self, waiting: Awaitable[Reply]) -> Reply:
        reply = await waiting
        slot = self._slot_for(reply)
        return reply if slot is None else await _compressed(reply, slot)

    def _slot_for(self, reply: Reply) -> Lease | None:
        return self._slots.lease() if reply.size >= self._least else None


async def _compressed(reply: Reply, slot: Lease) -> Reply:
    """Compress a reply, whose bytes stay counted until then."""
    text = await asyncio.to_thread(_compress, reply.take_pieces())
    del slot
    return Reply(text, reply.headers + HEADERS)


def _compress(pieces: Iterable[bytes]) -> bytes:
    packer = zlib.compressobj(FASTEST, wbits=GZIP)
    return b"".join((*map(packer.compress, pieces), packer.flush()))


class Decompressing:
    """A handler of compressed requests."""

    def __init__(self, handler: Handler, budget: WorkerBudget, limit: int) -> None:
        """A request may have up to `limit` bytes when it is decompressed."""
        self._handler: Final = handler
        self._budget: Final = budget
        self._limit: Final = limit

    async def __call__(self, body: bytes, client: Client) -> Reply | Answer:
        lease = self._budget.received.lease(self._limit)
        if lease is None:
            return answers.TOO_MUCH_RECEIVED
        try:
            text = await asyncio.to_thread(_decompress, body, self._limit)
        except zlib.error:
            return answers.bad_request("the body is not gzip")
        if len(text) > self._limit:
            return answers.body_too_large(len(text), self._limit)
        reply = self._handler(text, client)
        found = reply if isinstance(reply, Reply) else await reply
        del lease  # held until here
        return found


def _decompress(body: bytes, limit: int) -> bytes:
    """The text, or its first bytes if they exceed the limit. Raises `zlib.error`."""
    unpacker = zlib.decompressobj(wbits=GZIP)
    text = unpacker.decompress(body, limit + 1)
    if len(text) <= limit and (not unpacker.eof or unpacker.unused_data):
        raise zlib.error("incomplete, or more than one member")
    return text
