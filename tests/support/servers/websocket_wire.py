"""A WebSocket without a socket: frames encoded and decoded by the websockets library."""

import asyncio
from collections.abc import Awaitable, Callable

from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.protocol import State
from websockets.uri import parse_uri
from websockets.utils import apply_mask

from foreblock.scheduling.admission import WorkerBudget
from foreblock.scheduling.reply import Channel, Reply
from foreblock.server.sweep import TICKS_PER_SECOND
from foreblock.server.websocket import WebSocketConnection
from foreblock.settings import Access, ServerLimits, WebSocketLimits
from support.servers.wire import FakeTransport, Wire, echo, endpoint_for

MASK = b"\x01\x80\xff\x5a"
KEY = b"dGhlIHNhbXBsZSBub25jZQ=="  # RFC 6455, section 1.3, as is the response
ACCEPT = b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
PAIRS = (
    b"Host: localhost", b"Connection: Upgrade", b"Upgrade: websocket",
    b"Sec-WebSocket-Version: 13", b"Sec-WebSocket-Key: " + KEY,
)  # fmt: skip
ROOMY = ServerLimits(body_limit=1 << 20, connections=100)
ACCESS = Access(hosts=("localhost", "node.example"), cors_origins=("https://page.example",))


def handshake(*others: bytes, target: bytes = b"/", leave_out: bytes = b"-") -> bytes:
    """A WebSocket request, with changed or missing headers."""
    kept = [line for line in PAIRS if not line.startswith(leave_out)]
    return b"\r\n".join([b"GET " + target + b" HTTP/1.1", *kept, *others]) + b"\r\n\r\n"


def masked(payload: bytes, opcode: int = 1, *, final: bool = True) -> bytes:
    """A client's frame, masked or (invalid) unmasked."""
    head = bytes([(0x80 if final else 0) | opcode])
    if len(payload) < 126:
        head += bytes([0x80 | len(payload)])
    elif len(payload) < 1 << 16:
        head += b"\xfe" + len(payload).to_bytes(2)
    else:
        head += b"\xff" + len(payload).to_bytes(8)
    return head + MASK + apply_mask(payload, MASK)


class ToySession:
    """A session with scripted answers that records events."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.received: list[bytes] = []
        self.waiting: list[tuple[bytes, asyncio.Future[Reply]]] = []
        self.ends = 0
        self.answer: Callable[[bytes], Reply | Awaitable[Reply]] = echo

    def receive(self, message: bytes) -> Reply | Awaitable[Reply]:
        """`slow…` waits until the test finishes it."""
        self.received.append(message)
        if not message.startswith(b"slow"):
            return self.answer(message)
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self.waiting.append((message, future))
        return future

    def ended(self) -> None:
        self.ends += 1

    def finish(self, number: int = 0) -> None:
        """Answer a waiting message."""
        body, future = self.waiting.pop(number)
        future.set_result(echo(body))


class WebSocketWire:
    """A client at one end of a WebSocket."""

    def __init__(
        self,
        limits: ServerLimits = ROOMY,
        websocket: WebSocketLimits | None = None,
        budget: WorkerBudget | None = None,
        first: bytes = b"",
    ) -> None:
        """`first` is sent with the handshake."""
        sessions: list[ToySession] = []

        def open_session(channel: Channel) -> ToySession:
            sessions.append(ToySession(channel))
            return sessions[-1]

        self.budget = budget or WorkerBudget(limits.waiting_requests, limits.unsent_bytes)
        endpoint = endpoint_for(
            echo, limits, ACCESS, budget=self.budget, open_session=open_session, websocket=websocket
        )
        self._wire = Wire(echo, endpoint=endpoint)
        self.ticker = endpoint.ticker
        head, end, rest = self._wire.send(handshake() + first).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 101 Switching Protocols\r\n"), head
        self.head = head + end
        (self.session,) = sessions
        self._library = ClientProtocol(
            parse_uri("ws://localhost/"), state=State.OPEN, max_size=None
        )
        self._read = 0
        self._heard(rest)

    @property
    def transport(self) -> FakeTransport:
        return self._wire.transport

    @property
    def connection(self) -> WebSocketConnection:
        found = self.transport.connection
        assert isinstance(found, WebSocketConnection)
        return found

    def send_raw(self, *pieces: bytes) -> None:
        """Send raw bytes."""
        self._wire.send(*pieces)

    def ask(self, *messages: bytes) -> None:
        """Send text messages in one piece."""
        self.send_raw(b"".join(map(masked, messages)))

    def _heard(self, rest: bytes) -> None:
        self._frames: list[Frame] = []
        if rest:
            self._library.receive_data(rest)
        self._read = len(self.transport.written)

    def frames(self) -> list[Frame]:
        """All frames since the last call, as decoded by the library."""
        data = b"".join(self.transport.written[self._read :])
        self._read = len(self.transport.written)
        if data:
            self._library.receive_data(data)
        assert self._library.parser_exc is None, self._library.parser_exc
        events = self._library.events_received()
        assert all(isinstance(each, Frame) for each in events)
        return [each for each in events if isinstance(each, Frame)]

    def texts(self) -> list[str]:
        """The complete messages among them."""
        found, parts = [], []
        for frame in self.frames():
            if frame.opcode in (Opcode.TEXT, Opcode.CONT):
                parts.append(bytes(frame.data))
                if frame.fin:
                    found.append(b"".join(parts).decode())
                    parts.clear()
        assert not parts, "a message is not complete"
        return found

    def close_of(self) -> tuple[int, str] | None:
        """The code and the reason of the server's close frame."""
        self.frames()
        sent = self._library.close_rcvd
        return None if sent is None else (int(sent.code), sent.reason)

    def over(self) -> bool:
        """Return whether the server has closed its side."""
        return self._wire.over()

    def advance_seconds(self, seconds: float) -> None:
        for _ in range(round(seconds * TICKS_PER_SECOND)):
            self.ticker.tick()
