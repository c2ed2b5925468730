"""One client's connection through the proxy, and the upstream connection behind it.

Requests are answered in order, one at a time, as on one connection to a node. Without faults the
bytes of both directions are unchanged.
"""

import asyncio
import contextlib
import gzip
import socket
import struct
from typing import Any, cast

import msgspec

from follow.http_messages import HttpMessage, Splitter, with_body, without_encodings
from follow.weather import Weather

Json = Any
PIECES = 16  # of a slow response
PLAIN = b"HTTP/1.1 %d %s\r\nContent-Type: %s\r\n\r\n"
JSON = b"application/json"
ERRORS = ((502, b"Bad Gateway"), (503, b"Service Unavailable"), (504, b"Gateway Timeout"))
PAGE = b"<!DOCTYPE html><html><body><h1>Just a moment...</h1></body></html>\n"
encode, decode = msgspec.json.encode, msgspec.json.decode


class Gone(Exception):
    """The upstream has closed, or is unreachable."""


class Behind(asyncio.Protocol):
    """The connection to the upstream."""

    def __init__(self) -> None:
        self._splitter = Splitter(answers=True)
        self._waiting: asyncio.Future[HttpMessage] | None = None
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's has no such base

    def ask(self, raw: bytes) -> asyncio.Future[HttpMessage]:
        """Send a request; return its response."""
        assert self.transport is not None
        self._waiting = asyncio.get_running_loop().create_future()
        self.transport.write(raw)
        return self._waiting

    def data_received(self, data: bytes) -> None:
        for message in self._splitter.feed(data):
            if self._waiting and not self._waiting.done():
                self._waiting.set_result(message)

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        if self._waiting and not self._waiting.done():
            message = None if exc else self._splitter.end()
            if message:
                self._waiting.set_result(message)
            else:
                self._waiting.set_exception(Gone())


class Front(asyncio.Protocol):
    """The connection of a client."""

    def __init__(self, host: str, port: int, weather: Weather) -> None:
        self._address = host, port
        self._weather = weather
        self._splitter = Splitter()
        self._requests: asyncio.Queue[HttpMessage] = asyncio.Queue()
        self._behind: Behind | None = None
        self._transport: asyncio.Transport | None = None
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's has no such base
        self._task = asyncio.get_running_loop().create_task(self._serve())

    def data_received(self, data: bytes) -> None:
        for message in self._splitter.feed(data):
            self._requests.put_nowait(message)

    def connection_lost(self, _exc: Exception | None) -> None:
        if self._task:
            self._task.cancel()
        if self._behind and self._behind.transport:
            self._behind.transport.close()

    async def _serve(self) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            while True:
                message = await self._requests.get()
                items = _items(message.body)
                methods = [str(each.get("method")) for each in items]
                begun = self._weather.counts.asked(methods)
                answered = False
                try:
                    answered = await self._answer(message, items)
                except (Gone, OSError):
                    self._abort()
                except Exception:
                    self._abort()
                    raise  # the loop prints it
                finally:
                    self._weather.counts.ended(begun, methods, answered=answered)

    async def _answer(self, message: HttpMessage, items: list[Json]) -> bool:
        weather = self._weather
        if not weather.speaks.is_set():
            await weather.speaks.wait()
        if weather.is_fair:
            answer = await self._ask(message.raw)
            self._write(answer.raw)
            return self._end(answer)
        if seconds := weather.waiting():
            await asyncio.sleep(seconds)
        struck = weather.strikes("instead")
        if struck:
            return await self._instead(*struck, items)
        raw, head = await self._struck(message, items)
        return await self._send(raw, head, items)

    # --- The upstream ----------------------------------------------------------------------

    async def _ask(self, raw: bytes) -> HttpMessage:
        if self._behind is None or self._behind.transport is None:
            loop = asyncio.get_running_loop()
            _, self._behind = await loop.create_connection(Behind, *self._address)
        return await self._behind.ask(raw)

    async def _struck(self, message: HttpMessage, items: list[Json]) -> tuple[bytes, bytes]:
        """The response as sent, and its head."""
        weather, in_batch = self._weather, message.body.lstrip()[:1] == b"["
        refused = {
            at: {"jsonrpc": "2.0", "id": each.get("id"), "error": found}
            for at, each in enumerate(items)
            if (found := weather.refused(each, in_batch=in_batch))
        }
        asked = [weather.rewritten(each) for at, each in enumerate(items) if at not in refused]
        if refused and not asked:
            answers = list(refused.values())
            return _answered(PLAIN % (200, b"OK", JSON), answers, in_batch=in_batch)
        same = len(asked) == len(items) and all(map(_is, asked, items))
        body = None if same else encode(asked if in_batch else asked[0])
        answer = await self._ask(without_encodings(message, body))
        found = _items(answer.body)
        for at in sorted(refused):
            found.insert(at, refused[at])
        if not weather.damaged(items, found) and same:
            return answer.raw, answer.head
        return _answered(answer.head, found, in_batch=in_batch)

    # --- The client ------------------------------------------------------------------------

    async def _instead(self, kind: str, rate: Any, items: list[Json]) -> bool:  # noqa: ANN401
        weather = self._weather
        weather.note(kind, items, f"{rate.amount:g}")
        match kind:
            case "reset":
                self._abort()
                return False
            case "hang":
                await asyncio.Event().wait()
            case "html":
                self._write(with_body(PLAIN % (200, b"OK", b"text/html"), PAGE))
            case "5xx":
                status, reason = ERRORS[weather.choose(len(ERRORS))]
                self._write(with_body(PLAIN % (status, reason, b"text/plain"), reason + b"\n"))
            case _:
                error = {
                    "code": 429,
                    "message": "Your app has exceeded its compute units per second",
                }
                body = encode({"jsonrpc": "2.0", "id": None, "error": error})
                after = (b"Retry-After: %d" % rate.amount,) if kind == "429-after" else ()
                self._write(with_body(PLAIN % (429, b"Too Many Requests", JSON), body, *after))
        return True

    async def _send(self, raw: bytes, head: bytes, items: list[Json]) -> bool:
        """Send a response according to its faults; return whether it was sent completely."""
        struck = self._weather.strikes("bytes")
        if struck is None:
            self._write(raw)
            return True
        kind, rate = struck
        self._weather.note(kind, items, f"{len(raw)} bytes")
        if kind == "truncated-gzip":
            packed = gzip.compress(raw[len(head) :], 1, mtime=0)
            cut = packed[: len(packed) * 2 // 3]
            self._write(with_body(head, cut, b"Content-Encoding: gzip"))
        elif kind == "cut":
            self._write(raw[: len(head) + (len(raw) - len(head)) // 2])
            await asyncio.sleep(0)
            self._abort()
            return False
        else:
            size = len(raw) // PIECES + 1
            for at in range(0, len(raw), size):
                self._write(raw[at : at + size])
                await asyncio.sleep(rate.amount)
        return True

    def _write(self, data: bytes) -> None:
        if self._transport:
            self._weather.counts.sent += len(data)
            self._transport.write(data)

    def _end(self, answer: HttpMessage) -> bool:
        if answer.closes and self._transport:
            self._transport.close()
        return True

    def _abort(self) -> None:
        """End with RST if possible: the client loses everything it has not read."""
        if self._transport is None:
            return
        sock = self._transport.get_extra_info("socket")
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()


def _is(one: Json, other: Json) -> bool:
    return one is other


def _items(body: bytes) -> list[Json]:
    """The objects of a body, or None if it is not JSON-RPC."""
    try:
        found = decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return []
    found = found if isinstance(found, list) else [found]
    return [each for each in found if isinstance(each, dict)]


def _answered(head: bytes, answers: list[Json], *, in_batch: bool) -> tuple[bytes, bytes]:
    body = encode(answers if in_batch else answers[0])
    raw = with_body(head, body)
    return raw, raw[: len(raw) - len(body)]
