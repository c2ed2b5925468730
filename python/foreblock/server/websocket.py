"""One WebSocket connection: messages to a session, its responses and notifications to the client.

An HTTP connection becomes one by an upgrade (`upgrade`) and hands over its transport. Messages are
begun in the order in which they arrive; a response is sent when it is made, so a slow one does not
delay the others. At most `ws_requests` of them wait at once; then, or while the client does not
read, nothing more is read from it.

Every end has a code and a reason, which the client gets if it reads. Frames are read by
`frames`, messages written by the `Outbox`; the sweep calls `check_reading` every second.
"""

import asyncio
from collections.abc import Awaitable
from functools import partial
from typing import Final

import structlog
from websockets.exceptions import ProtocolError
from websockets.frames import Close, CloseCode

from foreblock.scheduling.admission import Lease
from foreblock.scheduling.reply import Client, OpenSession, Reply, Session
from foreblock.scheduling.steps import discard
from foreblock.scheduling.thresholds import THRESHOLDS
from foreblock.server.backpressure import AHEAD_LIMIT, Outbox, ReadGate, Unread
from foreblock.server.endpoint import HttpEndpoint
from foreblock.server.frames import (
    CLOSE,
    PING,
    PONG,
    ControlFrame,
    FrameReader,
    Violation,
    WholeMessage,
    close_frame,
    frame_head,
)
from foreblock.server.sweep import Liveness, Phase, PingDue

STOPPING: Final = "the service is stopping"
TOO_SLOW: Final = "too slow: messages are piling up"
NO_ROOM: Final = "too many responses are unread, try again later"
FAILED: Final = "internal error"

_PING_FRAME: Final = frame_head(PING, 0)

log = structlog.get_logger()


class WebSocketConnection(asyncio.Protocol):
    """The protocol of one client after its upgrade, and the channel of its session."""

    __slots__ = (
        "_discarded", "_draining", "_endpoint", "_flush_due", "_gate", "_liveness", "_outbox",
        "_read_at", "_reader", "_session", "_tasks", "_ticker", "_transport", "_turn_due",
        "_unread", "client", "phase", "since",
    )  # fmt: skip

    def __init__(
        self, endpoint: HttpEndpoint, transport: asyncio.Transport, client: Client
    ) -> None:
        self._endpoint: Final = endpoint
        self._ticker: Final = endpoint.ticker
        self._transport: Final = transport
        self._gate: Final = ReadGate(transport)
        self._unread: Final = Unread(transport, endpoint.budget)
        self._reader: Final = FrameReader(endpoint.rules.body_limit, endpoint.budget)
        self._outbox: Final = Outbox(transport, endpoint.budget, endpoint.counts.traffic)
        self._session: Session | None = None
        self._tasks: Final[set[asyncio.Future[Reply]]] = set()  # requests that wait
        self._turn_due = self._flush_due = False
        self._draining = False
        self._discarded = 0
        self._liveness: Final = Liveness(endpoint.ticker, endpoint.websocket)
        self._read_at = self._ticker.now  # when a slow client has last read a portion
        self.client = client
        self.phase = Phase.OPEN
        self.since = self._ticker.now

    def open(self, open_session: OpenSession) -> None:
        """Open the session, before anything is received."""
        try:
            self._session = open_session(self)
        except Exception:
            log.exception("session_failed")
            self.close(CloseCode.INTERNAL_ERROR, FAILED)

    # Called by the transport.

    def data_received(self, data: bytes) -> None:
        """Read frames and answer messages."""
        if self.phase is not Phase.OPEN:
            self._discard(len(data))
            return
        self._liveness.note_input()
        self._endpoint.counts.traffic(len(data), 0)
        self._reader.feed(data)
        if not self._turn_due:
            self._proceed()

    def _discard(self, size: int) -> None:
        """Read on after the end, so that the reason is not lost to a reset; but not for ever."""
        self._discarded += size
        if self._discarded > AHEAD_LIMIT:
            self._gate.far_ahead = True
            self._gate.update()

    def eof_received(self) -> bool:
        """The client has gone; what waits for it is cancelled."""
        return False

    def pause_writing(self) -> None:
        """The client does not read: stop reading and writing."""
        self._outbox.paused = self._gate.unread_answers = True
        self._gate.update()
        self._read_at = self._ticker.now
        if not self._unread.begin(self._outbox.long) and self.phase is Phase.OPEN:
            asyncio.get_running_loop().call_soon(self.close, CloseCode.TRY_AGAIN_LATER, NO_ROOM)

    def resume_writing(self) -> None:
        """The client has read everything: continue."""
        self._unread.end()
        self._outbox.paused = self._gate.unread_answers = False
        self._gate.update()
        if self.phase is Phase.OPEN:
            self._take_turn_soon()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002, asyncio's signature
        """Release everything and cancel what waits."""
        self._endpoint.forget(self)
        self._unread.end()
        self._leave()

    # The channel of the session.

    @property
    def unsent(self) -> int:
        """Bytes that the socket has not taken yet."""
        return self._outbox.unsent

    def send(self, message: bytes) -> bool:
        """Send a message; false if the connection closes, for instance because of its limits."""
        if self.phase is not Phase.OPEN or self._transport.is_closing():
            return False
        if self._outbox.holds_back:
            budget = self._endpoint.budget
            if self._outbox.waiting_bytes + len(message) > self._endpoint.websocket.unsent_bytes:
                self.close(CloseCode.POLICY_VIOLATION, TOO_SLOW)
                return False
            if budget.bytes_left < len(message):
                budget.wanted = True
                self.close(CloseCode.TRY_AGAIN_LATER, NO_ROOM)
                return False
        self._liveness.sent()
        self._outbox.put(message)
        self._flush_soon()
        return True

    def _flush_soon(self) -> None:
        if not self._flush_due:
            self._flush_due = True
            self._endpoint.flusher.add(self)

    def flush(self) -> None:
        """Write the notifications of this round."""
        self._flush_due = False
        if not self._transport.is_closing():
            self._outbox.flush()

    def close(self, code: int, reason: str) -> None:
        """Say why, and close."""
        self._end_with(close_frame(code, reason))

    # Called by the sweep and by draining.

    @property
    def slow_seconds(self) -> int:
        """Seconds for which the client has been slow."""
        return self._unread.slow_seconds

    @property
    def held(self) -> int:
        """Bytes that closing would free."""
        return self._outbox.unsent

    def check_reading(self) -> None:
        """Called every second: see whether the client reads, sends, answers pings."""
        if self.phase is not Phase.OPEN:
            return
        if self._outbox.paused:
            self._check_reading()
        elif self._draining and self._outbox.is_empty and not self._tasks:
            self.close(CloseCode.GOING_AWAY, STOPPING)
        elif len(self._tasks) < self._endpoint.websocket.requests:
            # Otherwise it is not read from.
            self._check_receiving()

    def expire(self, *, unread_too_long: bool) -> None:
        """The client has had time to read the reason."""
        if unread_too_long or self._transport.get_write_buffer_size() == 0:
            self._transport.abort()

    def drain(self) -> None:
        """Answer received requests, then close."""
        self._draining = True

    def abort(self) -> None:
        """End at once."""
        self._transport.abort()

    def _check_reading(self) -> None:
        """The client must read a portion in time, as over HTTP."""
        now = self._ticker.now
        if self._unread.measure():
            self._read_at = now
        elif now - self._read_at >= self._ticker.timeout(Phase.WRITING):
            self.close(CloseCode.POLICY_VIOLATION, TOO_SLOW)

    def _check_receiving(self) -> None:
        match self._liveness.check(has_begun=self._reader.has_begun, waits=bool(self._tasks)):
            case Violation(code, reason):
                self.close(code, reason)
            case PingDue():
                self._outbox.put_control(_PING_FRAME)
                self._flush_soon()
            case None:
                pass

    # Reading and answering.

    def _proceed(self) -> None:
        """Read frames, up to a number per turn, and write what there is to write."""
        outbox, most = self._outbox, self._endpoint.websocket.requests
        was_crowded = False
        for _ in range(THRESHOLDS.answered_requests):
            was_crowded = outbox.is_crowded
            if was_crowded or len(self._tasks) >= most:
                break
            step = self._reader.step()
            if step is None:
                break
            if isinstance(step, WholeMessage):
                self._answer(step)
            elif isinstance(step, ControlFrame):
                self._handle_control(step)
            elif isinstance(step, Violation):
                self.close(*step)
            if self.phase is not Phase.OPEN:
                return
        else:
            self._take_turn_soon()
        if outbox.advance() or (was_crowded and not outbox.is_crowded):
            self._take_turn_soon()
        far_ahead = self._reader.unread > AHEAD_LIMIT
        if far_ahead is not self._gate.far_ahead:
            self._gate.far_ahead = far_ahead
            self._gate.update()

    def _take_turn_soon(self) -> None:
        """Continue in the next turn of the loop."""
        if not self._turn_due:
            self._turn_due = True
            asyncio.get_running_loop().call_soon(self._take_turn)

    def _take_turn(self) -> None:
        self._turn_due = False
        if self.phase is Phase.OPEN and not self._transport.is_closing():
            self._proceed()

    def _answer(self, message: WholeMessage) -> None:
        assert self._session is not None
        self._liveness.received()
        try:
            reply = self._session.receive(message.body)
        except Exception:
            log.exception("session_failed")
            self.close(CloseCode.INTERNAL_ERROR, FAILED)
            return
        if isinstance(reply, Reply):
            if self.phase is Phase.OPEN:
                self._outbox.put_reply(reply)
        elif self.phase is Phase.OPEN:
            self._wait_for(reply, message.received)
        else:
            discard(reply)  # the session has closed the connection

    def _wait_for(self, reply: Awaitable[Reply], received: Lease | None) -> None:
        task = asyncio.ensure_future(reply)
        self._tasks.add(task)
        task.add_done_callback(partial(self._waited, received))

    def _waited(self, _: Lease | None, task: asyncio.Future[Reply]) -> None:
        self._tasks.discard(task)
        failure = None if task.cancelled() else task.exception()
        if self.phase is not Phase.OPEN or self._transport.is_closing():
            return
        if task.cancelled() or failure is not None:
            log.error("session_failed", exc_info=failure)
            self.close(CloseCode.INTERNAL_ERROR, FAILED)
            return
        self._liveness.sent()
        self._outbox.put_reply(task.result())
        self._take_turn_soon()

    def _handle_control(self, frame: ControlFrame) -> None:
        """Answer a ping or a close."""
        if frame.opcode == CLOSE:
            self._echo_close(frame.payload)
            return
        too_many = self._liveness.take_control()
        if too_many is not None:
            self.close(*too_many)
        elif frame.opcode == PING:
            self._outbox.put_control(frame_head(PONG, len(frame.payload)) + frame.payload)

    # Ending.

    def _echo_close(self, payload: bytes) -> None:
        """Close as the client does, with its own code."""
        try:
            Close.parse(payload)
        except (ProtocolError, UnicodeDecodeError) as why:
            self.close(CloseCode.PROTOCOL_ERROR, str(why))
        else:
            self._end_with(frame_head(CLOSE, len(payload)) + payload)

    def _end_with(self, frame: bytes) -> None:
        """Send a close frame, and wait for the client to read it, as HTTP does."""
        if self.phase is not Phase.OPEN or self._transport.is_closing():
            return
        self.phase, self.since = Phase.LINGERING, self._ticker.now
        self._outbox.put_control(frame)
        self._outbox.flush()
        self._transport.write_eof()
        self._leave()
        if self._outbox.paused:
            # Count what the transport has, and nothing that will not be sent.
            self._unread.end()
            self._unread.begin(None)
        self._gate.unread_answers = self._gate.far_ahead = False
        self._gate.update()

    def _leave(self) -> None:
        """Stop everything that belongs to this connection; its session ends later."""
        self.phase = Phase.LINGERING
        self._outbox.clear()
        self._reader.clear()
        for task in self._tasks:
            task.cancel()
        if self._session is not None:
            asyncio.get_running_loop().call_soon(self._session.ended)
            self._session = None
