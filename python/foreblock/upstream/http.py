"""The HTTP client: requests to one server, several at a time, each within its time.

`Connections` posts JSON to an upstream. Connections are kept for the next post. A post that takes
too long, or that is cancelled, aborts its connection: an endpoint that sends byte after byte holds
nothing. A failure is a refusal with a name, without the secrets of the URL. The blocking client
(`rpc_client`) and snapshots use a connection directly.
"""

import asyncio
import os
import re
import ssl
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from http import HTTPStatus
from typing import Final, NamedTuple, cast
from urllib.parse import SplitResult, urlsplit

import httptools

from foreblock.errors import ErrorAnswer, InvalidArgument, RefusedAnswer
from foreblock.secret_urls import redact, redact_urls, secrets_of
from foreblock.upstream.json_rpc import RefusalKind, refuse

MOST: Final = 8  # posts at a time, and as many that are urgent beside them
LONGEST_ANSWER: Final = 32 * 1024 * 1024  # bytes
LONGEST_HEAD: Final = 64 * 1024  # bytes
# Commas and brackets of a response: a value takes many times the memory of its text.
MOST_VALUES: Final = 500_000
_FIRST_FINAL_STATUS: Final = 200  # those below announce another response
_ERRNO: Final = re.compile(r"\[Errno ([0-9]+)\]")


def split_http_url(url: str) -> SplitResult:
    """Split a URL. Raises `InvalidArgument` unless it is `http` or `https` with a host."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as failure:
        raise InvalidArgument(f"{redact_urls(url)!r} is not a URL: {failure}") from failure
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise InvalidArgument(f"{redact_urls(url)!r} is not a URL of the form http://HOST:PORT")
    return parts


class HttpReply(NamedTuple):
    """A complete response."""

    status: int
    body: bytes
    headers: Mapping[str, str]


class HttpServer:
    """A server as a URL names it."""

    def __init__(
        self,
        url: str,
        tls: ssl.SSLContext | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """`tls` is used in place of the system's; `headers` are in each request that posts.

        Raises `InvalidArgument` for a bad URL.
        """
        parts = split_http_url(url)
        assert parts.hostname is not None
        self._host: Final = parts.hostname
        self._port: Final = parts.port or (443 if parts.scheme == "https" else 80)
        self._tls: Final = (
            (tls or ssl.create_default_context()) if parts.scheme == "https" else None
        )
        self.target: Final = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        if any(each <= " " or each > "~" for each in self.target):
            raise InvalidArgument(f"{redact_urls(url)!r} is not a URL: it is not encoded")
        self._host_line: Final = parts.netloc.rpartition("@")[2].encode("idna").decode()
        accepted = {"Accept": "application/json", "Content-Type": "application/json"}
        self._post: Final = self.head("POST", self.target, {**accepted, **(headers or {})})

    async def connect(self) -> "ClientConnection":
        """Open a connection. Raises `OSError`."""
        _, connection = await asyncio.get_running_loop().create_connection(
            ClientConnection,
            self._host,
            self._port,
            ssl=self._tls,
            server_hostname=self._host if self._tls else None,
        )
        return connection

    async def exchange(
        self,
        kept: "ClientConnection | None",
        send: Callable[["ClientConnection"], Awaitable[HttpReply]],
        connect_seconds: float | None = None,
    ) -> HttpReply:
        """Send on a kept connection, and again on a new one if the endpoint had closed it."""
        if kept is not None:
            try:
                return await send(kept)
            except (ConnectionError, EOFError):
                if kept.has_begun:
                    raise
        async with asyncio.timeout(connect_seconds):
            connection = await self.connect()
        return await send(connection)

    def head(self, method: str, target: str, headers: Mapping[str, str]) -> bytes:
        """Return the head of a request, but for its last lines."""
        named = {"Host": self._host_line, "Accept-Encoding": "identity", **headers}
        lines = (f"{name}: {value}\r\n" for name, value in named.items())
        return f"{method} {target} HTTP/1.1\r\n{''.join(lines)}".encode()

    def get(self, target: str, accept: str = "*/*") -> bytes:
        """Return a request for a document."""
        return self.head("GET", target, {"Accept": accept}) + b"\r\n"

    def post(self, body: bytes, headers: Mapping[str, str] | None = None) -> bytes:
        """Return a request that posts JSON."""
        more = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
        return b"%b%bContent-Length: %d\r\n\r\n%b" % (self._post, more.encode(), len(body), body)


class Connections:
    """Connections to one endpoint, used on one loop; `close` them."""

    def __init__(
        self, url: str, most: int = MOST, headers: Mapping[str, str] | None = None
    ) -> None:
        """`headers` are in each request. Raises `InvalidArgument` for a bad URL."""
        self._server: Final = HttpServer(url, headers=headers)
        self.secrets: Final = secrets_of(url).union((headers or {}).values())
        self._idle: Final[list[ClientConnection]] = []
        self._busy: Final[set[ClientConnection]] = set()
        self._is_closed = False
        self._slots: Final = asyncio.Semaphore(most)
        self._urgent_slots: Final = asyncio.Semaphore(most)

    async def post(
        self,
        body: bytes,
        seconds: float,
        *,
        headers: Mapping[str, str] | None = None,
        is_urgent: bool = False,
        is_once: bool = False,
    ) -> HttpReply:
        """Post a body. Raises `RefusedAnswer` if no response arrives in these seconds.

        An urgent post does not wait for a connection behind those that are not. One that is sent
        once has a new connection: on a kept one it would be repeated if the endpoint had closed it.
        """
        until = asyncio.get_running_loop().time() + seconds
        slots = self._urgent_slots if is_urgent else self._slots
        try:
            async with asyncio.timeout_at(until):
                await slots.acquire()
        except TimeoutError:
            raise refuse(RefusalKind.UNREACHABLE, "no connection was free in time") from None
        try:
            if self._is_closed:
                raise refuse(RefusalKind.UNREACHABLE, "it is closed")
            async with asyncio.timeout_at(until):
                send = partial(self._send, self._server.post(body, headers))
                return await self._server.exchange(None if is_once else self._take_idle(), send)
        except TimeoutError:
            raise refuse(RefusalKind.UNREACHABLE, f"no response in {seconds:g} s") from None
        except (OSError, EOFError) as failure:
            raise refuse(RefusalKind.UNREACHABLE, self.hide(reason_of(failure))) from None
        finally:
            slots.release()

    def _take_idle(self) -> "ClientConnection | None":
        loop = asyncio.get_running_loop()
        while self._idle:
            connection = self._idle.pop()
            if connection.loop is loop and connection.is_open:
                return connection
        return None

    async def _send(self, request: bytes, connection: "ClientConnection") -> HttpReply:
        self._busy.add(connection)
        try:
            reply = await connection.send(request, longest=LONGEST_ANSWER)
        finally:
            self._busy.discard(connection)
        if connection.is_open:
            self._idle.append(connection)
        return reply

    def hide(self, text: str) -> str:
        """Return the text without the secrets of the URL, which the endpoint may repeat."""
        return redact(text, self.secrets)

    def hidden(self, refused: RefusedAnswer) -> RefusedAnswer:
        """Return the refusal without them."""
        said = refused.said
        if said is not None:
            said = ErrorAnswer(said.code, self.hide(said.message), self.hide(said.data))
        return RefusedAnswer(refused.kind, self.hide(refused.why), said)

    def close(self) -> None:
        """Close idle connections, and abort those in use."""
        self._is_closed = True
        for connection in (*self._idle, *self._busy):
            connection.abort()
        self._idle.clear()


class ClientConnection(asyncio.Protocol):
    """One connection: a request, its response, and then the next. httptools calls `on_…`."""

    def __init__(self) -> None:
        self.loop: Final = asyncio.get_running_loop()
        self.is_open = False
        self._may_be_kept = False
        self.has_begun = False  # some of the response has arrived
        self._reply: asyncio.Future[HttpReply] | None = None
        self._received = 0  # bytes

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self.is_open = True

    async def send(
        self,
        request: bytes,
        *,
        longest: int | None,
        stall: float | None = None,
        sink: Callable[[bytes], None] | None = None,
    ) -> HttpReply:
        """Send a request, and return the response. The connection is open if it may be kept.

        A response with more than `longest` bytes, or too many values, is a `RefusedAnswer`. After
        about `stall` seconds without a byte it raises `TimeoutError`. A `sink` gets the body of a
        successful response piece by piece, and what it raises ends the exchange.
        """
        self._parser = httptools.HttpResponseParser(self)
        self._headers: dict[str, str] = {}
        self._body = bytearray()
        self._longest, self._sink = longest, sink
        self._head_bytes = 0
        self._is_in_body = False
        self.has_begun = self._may_be_kept = False
        reply: asyncio.Future[HttpReply] = self.loop.create_future()
        self._reply = reply
        if not self.is_open:
            raise ConnectionResetError("the endpoint closed the connection")
        self._transport.write(request)
        try:
            found = await self._awaited(reply, stall)
        except BaseException:
            self.abort()
            raise
        finally:
            self._reply = None
        if not self._may_be_kept:
            self.abort()
        return found

    async def _awaited(self, reply: asyncio.Future[HttpReply], stall: float | None) -> HttpReply:
        while stall is not None and not reply.done():
            before = self._received
            await asyncio.wait([reply], timeout=stall)
            if not reply.done() and self._received == before:
                raise TimeoutError
        return await reply

    def data_received(self, data: bytes) -> None:
        if self._reply is None or self._reply.done():
            self.abort()  # nothing was requested
            return
        self.has_begun = True
        self._received += len(data)
        if not self._is_in_body:
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as why:
            self._fail(ConnectionError(f"not HTTP: {why}"))
        if not self._is_in_body and self._head_bytes > LONGEST_HEAD:
            self._fail(refuse(RefusalKind.TOO_LONG, f"a head of more than {LONGEST_HEAD} bytes"))

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1")] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self._is_in_body = True

    def on_body(self, body: bytes) -> None:
        if self._reply is None or self._reply.done():
            return
        if self._sink is not None and self._parser.get_status_code() == HTTPStatus.OK:
            try:
                self._sink(body)
            except Exception as why:  # noqa: BLE001, raised by `send`
                self._fail(why)
            return
        self._body += body
        if self._longest is not None and len(self._body) > self._longest:
            self._fail(refuse(RefusalKind.TOO_LONG, f"more than {self._longest} bytes"))

    def on_message_complete(self) -> None:
        if self._parser.get_status_code() < _FIRST_FINAL_STATUS:
            self._headers, self._is_in_body = {}, False
            return
        self._finish(may_be_kept=self._parser.should_keep_alive())

    def _finish(self, *, may_be_kept: bool) -> None:
        is_bounded = self._longest is not None
        if is_bounded and sum(map(self._body.count, (b",", b"[", b"{"))) > MOST_VALUES:
            self._fail(refuse(RefusalKind.TOO_LONG, f"more than {MOST_VALUES} values"))
        elif self._reply is not None and not self._reply.done():
            status = self._parser.get_status_code()
            self._may_be_kept = may_be_kept
            self._reply.set_result(HttpReply(status, bytes(self._body), self._headers))

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False
        if self._reply is None or self._reply.done():
            return
        names = {name.lower() for name in self._headers}
        if exc is None and self._is_in_body and not names & {"content-length", "transfer-encoding"}:
            self._finish(may_be_kept=False)  # such a body ends with the connection
        else:
            self._fail(exc or EOFError("the endpoint closed the connection"))

    def _fail(self, why: Exception) -> None:
        if self._reply is not None and not self._reply.done():
            self._reply.set_exception(why)

    def abort(self) -> None:
        self.is_open = False
        self._transport.abort()


def reason_of(failure: Exception) -> str:
    """Return why a request failed, in a few words."""
    if isinstance(failure, ssl.SSLError):
        return (failure.strerror or str(failure)).lower()
    numbers = {failure.errno} if isinstance(failure, OSError) and failure.errno else set[int]()
    if not numbers:  # a name with several addresses fails with the text of all failures
        numbers = set(map(int, _ERRNO.findall(str(failure))))
    if len(numbers) == 1 and (number := numbers.pop()) > 0:
        return os.strerror(number).lower()
    if isinstance(failure, OSError) and failure.strerror:
        return failure.strerror.lower()
    return str(failure) or type(failure).__name__
