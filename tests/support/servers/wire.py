"""One connection without a socket: bytes in, bytes out, a driven clock."""

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass

from foreblock.scheduling.admission import WorkerBudget
from foreblock.scheduling.reply import (
    NO_FAST_PATH,
    CheckMinimum,
    Client,
    FastPath,
    Handler,
    OpenSession,
    Readiness,
    Reply,
    Served,
)
from foreblock.scheduling.thresholds import THRESHOLDS
from foreblock.server.checks import RequestRules
from foreblock.server.endpoint import HttpEndpoint
from foreblock.server.protocol import HttpConnection
from foreblock.server.sweep import TICKS_PER_SECOND, Ticker
from foreblock.settings import Access, ServerLimits, WebSocketLimits

LONG = THRESHOLDS.long_bytes

LIMITS = ServerLimits(body_limit=1000, header_limit=600, connections=4)
ACCESS = Access(hosts=("localhost", "node.example"))


class FakeTransport(asyncio.Transport):
    """A transport that records writes, with a client that may stop reading."""

    def __init__(self) -> None:
        super().__init__({"peername": ("192.0.2.1", 50_000)})
        self.written: list[bytes] = []
        self.reading = True
        self.ended = self.closed = self.aborted = False
        self.stuck = 0  # bytes that the client has not read
        self.client_reads = True
        self.paused = False
        self.patient = False  # pause at the configured high-water mark only
        self.high = LONG
        self.connection: asyncio.Protocol

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        assert isinstance(protocol, asyncio.Protocol)
        self.connection = protocol

    def write(self, data: object) -> None:
        assert isinstance(data, bytes)
        if self.closed:
            raise RuntimeError("written after the transport was closed")
        assert not self.ended, "written after the end was written"
        self.written.append(data)
        if not self.client_reads:
            self.stuck += len(data)
            self._maybe_pause()

    def writelines(self, pieces: object) -> None:
        assert isinstance(pieces, list)
        self.write(b"".join(pieces))

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        assert high in (0, LONG), "a response in pieces is counted from its first byte on"
        assert high is not None
        assert low is None
        self.high = high
        self._maybe_pause()

    def _maybe_pause(self) -> None:
        if self.stuck > (self.high if self.patient else 0) and not self.paused:
            self.paused = True
            self.connection.pause_writing()

    def client_takes(self, size: int) -> None:
        self.stuck -= size
        assert self.stuck >= 0
        if self.stuck == 0:
            self.paused = False
            self.connection.resume_writing()

    def client_takes_all(self) -> None:
        self.client_reads = True
        self.client_takes(self.stuck)

    def get_write_buffer_size(self) -> int:
        return self.stuck

    def write_eof(self) -> None:
        self.ended = True

    def pause_reading(self) -> None:
        assert self.reading
        self.reading = False

    def resume_reading(self) -> None:
        assert not self.reading
        self.reading = True

    def is_reading(self) -> bool:
        return self.reading

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self.connection.connection_lost(None)

    def abort(self) -> None:
        self.aborted = True
        self.close()


class Wire:
    """A client at one end of a connection."""

    def __init__(
        self,
        handler: Handler,
        limits: ServerLimits = LIMITS,
        access: Access = ACCESS,
        endpoint: HttpEndpoint | None = None,
    ) -> None:
        self.endpoint = endpoint or endpoint_for(handler, limits, access)
        self.transport = FakeTransport()
        self.connection = HttpConnection(self.endpoint)
        self.transport.connection = self.connection
        self.connection.connection_made(self.transport)

    def send(self, *pieces: bytes) -> bytes:
        """Send pieces and return the bytes written since."""
        before = len(self.transport.written)
        for piece in pieces:
            if not self.transport.closed:
                self.transport.connection.data_received(piece)
        return b"".join(self.transport.written[before:])

    def end(self) -> None:
        """Close the client's side."""
        if not self.transport.connection.eof_received():
            self.transport.close()

    @property
    def out(self) -> bytes:
        return b"".join(self.transport.written)

    def over(self) -> bool:
        """Return whether the server has closed the connection."""
        return self.transport.ended or self.transport.closed

    def advance_seconds(self, seconds: float) -> None:
        for _ in range(round(seconds * TICKS_PER_SECOND)):
            self.endpoint.ticker.tick()


def endpoint_for(
    handler: Handler,
    limits: ServerLimits = LIMITS,
    access: Access = ACCESS,
    fast_path: FastPath = NO_FAST_PATH,
    budget: WorkerBudget | None = None,
    open_session: OpenSession | None = None,
    websocket: WebSocketLimits | None = None,
    *,
    check_minimum: CheckMinimum = lambda _: None,
    wall_clock: Callable[[], float] = lambda: 0.0,
) -> HttpEndpoint:
    rules = RequestRules.of(limits, access, b"Foreblock-Snapshot")
    ticker = Ticker(limits, wall_clock)
    budget = budget or WorkerBudget(limits.waiting_requests, limits.unsent_bytes)
    facts = Readiness(False, ("one fact", "another"), ("a status",))
    served = Served(
        handler,
        lambda: facts,
        fast_path,
        open_session=open_session,
        check_minimum=check_minimum,
    )
    return HttpEndpoint(served, rules, ticker, limits.connections, budget, websocket)


def echo(body: bytes, _: Client | None = None) -> Reply:
    return Reply(b"<" + body + b">")


def post(body: bytes = b"{}", *headers: bytes, host: bytes = b"localhost") -> bytes:
    """A request in the usual form of clients."""
    lines = [
        b"POST / HTTP/1.1", b"Host: " + host, b"Content-Type: application/json",
        b"Content-Length: %d" % len(body), *headers,
    ]  # fmt: skip
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def raw(*lines: bytes, body: bytes = b"") -> bytes:
    """A request from its lines."""
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


@dataclass(frozen=True)
class Parsed:
    """A response as parsed by a client."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


_HEAD = re.compile(rb"HTTP/1\.1 (\d{3}) [A-Za-z ]+\r\n((?:[A-Za-z-]+: [^\r\n]*\r\n)*)\r\n")


def answers(data: bytes) -> list[Parsed]:
    """Parse all responses in some bytes, each of which must be well-formed and complete."""
    found, at = [], 0
    while at < len(data):
        match = _HEAD.match(data, at)
        assert match, f"not a response: {data[at : at + 200]!r}"
        lines = [line.split(": ", 1) for line in match[2].decode().splitlines()]
        headers = {name.lower(): value for name, value in lines}
        assert len(headers) == len(lines), "a header came twice"
        length = int(headers.get("content-length", "0"))
        at = match.end() + length
        assert at <= len(data), "the response is truncated"
        found.append(Parsed(int(match[1]), headers, data[match.end() : at]))
    return found


def answer(data: bytes) -> Parsed:
    """Parse the single response in some bytes."""
    (found,) = answers(data)
    return found
