"""The connection to the NATS servers of a log, and requests about its stream.

nats-py connects, pings every second, and connects to the next server when one is lost. Each
server must be new enough, and use TLS if a certificate authority is given, before it gets our
credentials. Nothing of nats-py is raised from here: `LogUnreachable` says that there was no
response, which says nothing about the log.

Before Python 3.12 `asyncio.wait_for` swallows a cancellation that comes together with its
result, and nats-py uses it for each request; so `end` repeats a cancellation until it takes
effect.

Appending is in `append`, following in `tail`, announcements are in `node_messages`.
"""

import asyncio
import re
import ssl
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
import nats.errors
import structlog
from msgspec import Struct
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from foreblock.errors import BadLogStream, LogServerTooOld, LogUnreachable, NobodyListens
from foreblock.log.stream_settings import (
    STREAM_BYTES,
    ApiAnswer,
    LogSubjects,
    StreamState,
    check_version,
    differences,
    new_stream,
    read_answer,
)
from foreblock.secret_urls import redact_urls

log = structlog.get_logger()

CANCEL_SECONDS: Final = 0.1


async def first_of(*works: Coroutine[Any, Any, object]) -> None:
    """Return when the first of these ends, and end the others; raises what the first one raises."""
    tasks = [asyncio.create_task(each) for each in works]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await end(tasks)
    # All results are read: asyncio logs failures that are not.
    failures = [each.exception() for each in tasks if not each.cancelled()]
    for failure in failures:
        if failure is not None:
            raise failure


async def end(tasks: Collection[asyncio.Future[Any]]) -> None:
    """Cancel tasks, and return when all have ended."""
    while left := [each for each in tasks if not each.done()]:
        for task in left:
            task.cancel()
        await asyncio.wait(left, timeout=CANCEL_SECONDS)


PING_SECONDS: Final = 1
MOST_PINGS: Final = 2  # without a response: then the connection is lost
RECONNECT_SECONDS: Final = 0.1
ANSWER_SECONDS: Final = 1.0
_PENDING_BYTES: Final = 64 << 20
_NO_STREAM: Final = 10059
_USER: Final = re.compile("[A-Za-z0-9_-]+")
FAILURES: Final = (nats.errors.Error, TimeoutError, OSError)

OnMessage = Callable[[Msg], Awaitable[None]]


class LogServers(Struct, frozen=True):
    """The address of a log, and our credentials."""

    addresses: Sequence[str]
    subjects: LogSubjects
    credentials: str = ""  # the path of a file with a NATS user; else user and password of a URL
    ca: str = ""  # the path of a file with the certificates to trust; this or tls:// requires TLS


def inbox_prefix(servers: LogServers) -> str:
    """Return the subject of the responses to this user, which others need not receive.

    Users are named by their credentials file, or in the URLs.
    """
    user = Path(servers.credentials).stem
    if not user and servers.addresses:
        user = urlsplit(servers.addresses[0]).username or ""
    return f"_INBOX.{user}" if _USER.fullmatch(user) else "_INBOX"


class _CheckedClient(Client):
    """A client that checks a server before it sends its credentials."""

    needs_tls = False

    async def close(self) -> None:
        """Close the client and stop its attempts to reconnect, also those that nats-py misses."""
        await super().close()
        searching = self._reconnection_task
        if searching is not None and searching is not asyncio.current_task():
            await end([searching])

    async def _process_connect_init(self) -> None:
        """Connect, and close the socket of a server that fails here: nats-py leaves it open."""
        try:
            await super()._process_connect_init()
        except BaseException:
            if self._transport is not None:
                self._transport.close()  # type: ignore[no-untyped-call]
            raise

    async def _process_headers(self, headers: bytes) -> dict[str, str] | None:
        """Read headers, and none of malformed ones: in nats-py those end the reading of all."""
        try:
            return await super()._process_headers(headers)
        except (IndexError, ValueError):
            return None

    def _connect_command(self) -> bytes:
        try:
            self._check_server()
        except (LogServerTooOld, LogUnreachable) as why:
            if self.is_reconnecting:  # the next server may be a better one
                raise nats.errors.Error(str(why)) from None
            raise
        return super()._connect_command()

    def _check_server(self) -> None:
        check_version(str(self._server_info.get("version", "")))
        if self.needs_tls and not self._server_info.get("tls_required", False):
            raise LogUnreachable("the NATS server does not use TLS")


class LogConnection:
    """A connection that is kept until it is closed."""

    def __init__(self, servers: LogServers, name: str) -> None:
        self.subjects: Final = servers.subjects
        self.reconnected: Final[list[Callable[[], None]]] = []  # called after each new connection
        self._servers: Final = servers
        self._name: Final = name
        self.client: Final = _CheckedClient()
        self.last_error = ""
        self._is_closing = False

    async def open(self) -> None:
        """Connect; if no server responds, retry until cancelled.

        Raises `LogServerTooOld`, or `LogUnreachable` if a server lacks TLS.
        """
        servers = self._servers
        needs_tls = bool(servers.ca) or any(a.startswith("tls://") for a in servers.addresses)
        self.client.needs_tls = needs_tls
        tls = ssl.create_default_context(cafile=servers.ca or None) if needs_tls else None
        await self.client.connect(
            list(servers.addresses),
            name=self._name,
            error_cb=self._failed,
            disconnected_cb=self._lost,
            reconnected_cb=self._connected_again,
            user_credentials=servers.credentials or None,
            tls=tls,
            connect_timeout=PING_SECONDS,
            reconnect_time_wait=RECONNECT_SECONDS,  # type: ignore[arg-type]  # a fraction is fine
            max_reconnect_attempts=-1,
            ping_interval=PING_SECONDS,
            max_outstanding_pings=MOST_PINGS,
            pending_size=_PENDING_BYTES,
            inbox_prefix=inbox_prefix(servers),
        )
        self._log_connected()

    async def close(self) -> None:
        self._is_closing = True
        with suppress(AssertionError):  # nats-py raises this if there never was a connection
            await self.client.close()

    @property
    def is_connected(self) -> bool:
        return self.client.is_connected

    @property
    def max_payload(self) -> int:
        """The largest message that the server accepts, in bytes."""
        return self.client.max_payload

    def new_inbox(self) -> str:
        return self.client.new_inbox()

    async def publish(
        self, subject: str, data: bytes, headers: dict[str, str] | None = None, reply: str = ""
    ) -> None:
        """Publish without a response; nothing is kept for later while there is no connection."""
        if not self.client.is_connected:
            raise LogUnreachable("not connected")
        try:
            await self.client.publish(subject, data, reply=reply, headers=headers)
        except FAILURES as why:
            raise LogUnreachable(_words(why)) from None

    async def request(
        self,
        subject: str,
        data: bytes = b"",
        headers: dict[str, str] | None = None,
        seconds: float = ANSWER_SECONDS,
    ) -> bytes:
        """Send a request, and wait for the response."""
        if not self.client.is_connected:
            raise NobodyListens("not connected")
        try:
            answer = await self.client.request(subject, data, timeout=seconds, headers=headers)
        except nats.errors.NoRespondersError as why:
            raise NobodyListens(_words(why)) from None
        except FAILURES as why:
            raise LogUnreachable(_words(why)) from None
        return answer.data

    async def subscribe(self, subject: str, on_message: OnMessage) -> Subscription:
        """Subscribe to a subject, across reconnects; the caller bounds the messages."""
        try:
            return await self.client.subscribe(
                subject, cb=on_message, pending_msgs_limit=0, pending_bytes_limit=0
            )
        except FAILURES as why:
            raise LogUnreachable(_words(why)) from None

    async def ask_jetstream(self, what: str, fields: dict[str, Any] | None = None) -> ApiAnswer:
        """Send a request to JetStream's API; its prefix is added."""
        data = b"" if fields is None else msgspec.json.encode(fields)
        return read_answer(await self.request(f"$JS.API.{what}", data))

    async def state(self) -> StreamState:
        """The ends of the stream, as its leader has them."""
        answer = await self._info()
        state = answer.fields["state"]
        return StreamState(state["first_seq"], state["last_seq"])

    async def check_stream(self) -> None:
        """Raises `BadLogStream` if the stream does not exist or is not a log."""
        answer = await self._info()
        if wrong := differences(answer.fields["config"], self.subjects):
            raise BadLogStream(self.subjects.stream, "; ".join(wrong))

    async def make_stream(self, replicas: int, first: int = 1) -> None:
        """Create the stream if it does not exist, then check it. For writers.

        `first` is the sequence that its first message will have.
        """
        answer = await self.ask_jetstream(f"STREAM.INFO.{self.subjects.stream}")
        if answer.error == _NO_STREAM:
            await self._create_stream(replicas, first)
        await self.check_stream()

    async def _create_stream(self, replicas: int, first: int) -> None:
        for most_bytes in STREAM_BYTES:
            settings = new_stream(self.subjects, replicas, most_bytes)
            if first > 1:
                settings["first_seq"] = first
            made = await self.ask_jetstream(f"STREAM.CREATE.{self.subjects.stream}", settings)
            if not made.is_out_of_room:
                break
        if made.error:
            raise BadLogStream(self.subjects.stream, made.why)

    async def _info(self) -> ApiAnswer:
        answer = await self.ask_jetstream(f"STREAM.INFO.{self.subjects.stream}")
        if answer.error == _NO_STREAM:
            raise BadLogStream(self.subjects.stream, "it is not there; the writer creates it")
        if answer.error:
            raise LogUnreachable(answer.why)
        return answer

    async def _failed(self, why: Exception) -> None:
        """Log a failure once, and again after a connection."""
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            # `wait_for` of Python 3.11 drops a cancellation that comes with the failure, and
            # nats-py would try forever.
            raise asyncio.CancelledError
        words = _words(why)
        if words != self.last_error:
            self.last_error = words
            log.info("log_server_failed", stream=self.subjects.stream, why=words)

    async def _lost(self) -> None:
        if not self._is_closing:
            log.warning("log_server_lost", stream=self.subjects.stream, why=self.last_error)

    async def _connected_again(self) -> None:
        self._log_connected()
        for call in self.reconnected:
            call()

    def _log_connected(self) -> None:
        self.last_error = ""
        url = self.client.connected_url
        server = redact_urls(url.geturl()) if url else ""
        log.info("log_server_connected", stream=self.subjects.stream, server=server)


async def end_subscriptions(subscriptions: Iterable[Subscription]) -> None:
    """End subscriptions; they end with the connection anyhow."""
    for each in subscriptions:
        with suppress(*FAILURES):
            await each.unsubscribe()


def _words(why: BaseException) -> str:
    return redact_urls(str(why)) or type(why).__name__
