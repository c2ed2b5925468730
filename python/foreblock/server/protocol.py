"""One HTTP connection: requests to the handler, replies to the transport, in order.

The reader turns bytes into requests, the handler turns requests into replies, and this class
moves bytes between them and a transport. A complete request in one piece with a cached head
takes the short path at the top of `data_received`; the long path gives the same answer and
handles every other request.

The next request is read when the previous one has its response, so order needs no bookkeeping and a
client has at most one request with the handler. Replies made in one turn are written at once.

Longer than most: one class, since every method reads and sets the phase of the connection, and
a second object on the way of each request costs more than it explains.
"""

import asyncio
from collections.abc import Awaitable
from functools import partial
from itertools import count
from typing import Any, Final, cast

import structlog
from msgspec import structs

from foreblock.scheduling.admission import Lease, LongText
from foreblock.scheduling.reply import NO_FAST_PATH, Client, Minimum, Missing, Reply
from foreblock.scheduling.thresholds import THRESHOLDS
from foreblock.server import answers
from foreblock.server.answers import Answer, Probe, Scrape, render, reply_parts
from foreblock.server.backpressure import AHEAD_LIMIT, ReadGate, Unread
from foreblock.server.checks import AcceptedHead, RefusedRequest
from foreblock.server.endpoint import Admission, HeadCache, HttpEndpoint
from foreblock.server.reader import HEAD_END, HttpRequest, RequestReader
from foreblock.server.sweep import Phase
from foreblock.server.upgrade import NOT_SERVED, Upgrade, render_upgrade
from foreblock.server.websocket import WebSocketConnection

_IDLE: Final = Phase.IDLE  # a global is faster than a class attribute
_READING: Final = frozenset({Phase.IDLE, Phase.HEAD, Phase.BODY})
_NOTHING_KNOWN: Final = HeadCache()

_numbers: Final = count()  # of connections

log = structlog.get_logger()


class HttpConnection(asyncio.Protocol):
    """The protocol of one client."""

    __slots__ = (
        "_client",
        "_draining",
        "_ended",
        "_endpoint",
        "_fast_path",
        "_gate",
        "_handlers",
        "_heads",
        "_last",
        "_long",
        "_out",
        "_out_size",
        "_reader",
        "_received",
        "_task",
        "_ticker",
        "_traffic",
        "_transport",
        "_unread",
        "_whole",
        "phase",
        "since",
    )  # fmt: skip

    _transport: asyncio.Transport
    _gate: ReadGate
    _client: Client
    _unread: Unread

    def __init__(self, endpoint: HttpEndpoint) -> None:
        self._endpoint: Final = endpoint
        self._handlers: Final = endpoint.handlers
        self._ticker: Final = endpoint.ticker
        self._traffic: Final = endpoint.counts.traffic
        self._fast_path = endpoint.fast_path
        self._heads = endpoint.heads
        self._reader = RequestReader(endpoint.rules, endpoint.heads, endpoint.budget)
        # The responses of this turn.
        self._out: list[bytes] = []
        self._out_size = 0
        # A long answer being sent, and whether it is the last of the connection.
        self._long: LongText | None = None
        self._last = False
        self._whole: list[bytes] | None = None  # a long response while it is written at once
        # Progress.
        self._task: asyncio.Future[Reply | Answer] | asyncio.Future[Missing | None] | None = None
        self._received: Lease | None = None  # of the current request
        self._ended = False  # the client has closed its side
        self._draining = False
        self.phase = Phase.IDLE
        self.since = self._ticker.now

    # Called by the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start, unless there are too many connections."""
        self._transport = cast("asyncio.Transport", transport)
        self._gate = ReadGate(self._transport)
        # Beyond this size unsent bytes are counted, for a response in pieces from its first byte
        # on. Doing so for all responses costs a block of 200 transactions a third of its time.
        self._transport.set_write_buffer_limits(high=THRESHOLDS.long_bytes)
        self._unread = Unread(self._transport, self._endpoint.budget)
        self._client = Client(_address(transport), next(_numbers))
        match self._endpoint.admit(self):
            case Admission.REFUSED:
                self._end_with(answers.TOO_MANY_CONNECTIONS)
            case Admission.DROPPED:
                self._transport.abort()
            case Admission.ADMITTED:
                pass

    def data_received(self, data: bytes) -> None:
        """Answer all complete requests."""
        if self.phase is _IDLE:
            ticker = self._ticker
            answer = self._fast_path(data, ticker.date)
            if answer is not None:
                self.since = ticker.now
                self._transport.write(answer)
                return
            head, end, body = data.partition(HEAD_END)
            known = self._heads.get(head)
            if known is not None and known.length == len(body) and end:
                self._answer_known(known, body, len(data))
                return
        elif self.phase is Phase.LINGERING:
            return
        self._traffic(len(data), 0)
        self._reader.feed(data)
        if self.phase in _READING:
            self._proceed()
        elif self._reader.unread > AHEAD_LIMIT:
            self._gate.far_ahead = True
            self._gate.update()

    def eof_received(self) -> bool:
        """Keep the other direction open only while answers are being written.

        A client that closes its side while the handler works has nearly always gone; as in other
        servers, its request is cancelled.
        """
        self._ended = True
        return self._task is None and self.phase in (Phase.ANSWERING, Phase.WRITING)

    def pause_writing(self) -> None:
        """The client does not read: stop reading and answering."""
        self._gate.unread_answers = True
        self._gate.update()
        if self.phase in _READING:
            self._enter(Phase.WRITING)
        if self._whole is not None:
            self._long = LongText.going(self._endpoint.budget, self._whole)
        if not self._unread.begin(self._long):
            self._transport.abort()

    def resume_writing(self) -> None:
        """The client has read everything: continue."""
        self._unread.end()
        self._gate.unread_answers = False
        self._gate.update()
        if self.phase is Phase.WRITING:
            self._take_next_turn()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002, asyncio's signature
        """Release everything and cancel the handler."""
        self._endpoint.forget(self)
        self._unread.end()
        self._long = self._received = None
        self._reader.clear()
        if self._task is not None:
            self._task.cancel()

    # Called by the sweep and by draining.

    @property
    def slow_seconds(self) -> int:
        """Seconds for which the client has been slow."""
        return self._unread.slow_seconds

    @property
    def held(self) -> int:
        """Bytes of responses that closing would free."""
        return self._unread.held

    def check_reading(self) -> None:
        """Called every second while the client should read."""
        if self._unread.measure():
            self.since = self._ticker.now

    def expire(self, *, unread_too_long: bool) -> None:
        """Close because the phase took too long."""
        if self._transport.is_closing():
            # Waiting for the client to read the rest.
            if unread_too_long:
                self._transport.abort()
        elif self.phase in (Phase.HEAD, Phase.BODY):
            self._end_with(answers.REQUEST_TIMEOUT)
        elif self.phase is Phase.IDLE:
            self._end()
        elif self.phase is Phase.WRITING or unread_too_long:
            self._transport.abort()
        elif self._transport.get_write_buffer_size() == 0:
            self._transport.close()

    def drain(self) -> None:
        """Answer received requests, announce the close, and close."""
        self._draining = True
        # The short paths do not announce the close.
        self._heads, self._fast_path = _NOTHING_KNOWN, NO_FAST_PATH.answer
        if self.phase is Phase.IDLE:
            self.since = self._ticker.now

    def abort(self) -> None:
        """End at once."""
        self._transport.abort()

    # Answering.

    def _answer_known(self, known: AcceptedHead, body: bytes, size: int) -> None:
        """Answer a complete request that came alone with a cached head, `size` bytes in all."""
        self.since = self._ticker.now
        try:
            reply = self._handlers[known.path](body, self._client)
        except Exception:
            log.exception("handler_failed")
            self._end_with(answers.INTERNAL_ERROR)
            return
        if not isinstance(reply, Reply):
            if isinstance(reply, Answer):
                refusal = render(reply, self._ticker.date, known.headers)
                self._traffic(size, len(refusal))
                self._transport.write(refusal)
                return
            self._traffic(size, 0)
            self._wait_for(reply, known)
            return
        parts = reply_parts(reply, self._ticker.date, known.headers)
        if reply.rest is None:
            whole_answer = b"".join(parts)
            self._traffic(size, len(whole_answer))
            self._transport.write(whole_answer)
        else:
            self._traffic(size, 0)
            self._out += parts
            self._put_long(reply, reply.rest, last=False)  # it came alone

    def _proceed(self) -> None:
        """Answer complete requests in order, up to a number per turn, and write the responses."""
        if self._long is not None and not self._write_on(self._long):
            return
        for _ in range(THRESHOLDS.answered_requests):
            if self._gate.unread_answers:
                self._enter(Phase.WRITING)
                return
            step = self._reader.step()
            if step is None:
                self._rest()
                return
            if isinstance(step, HttpRequest):
                self._received = step.received
                if not self._answer(step.body, step.accepted):
                    return
                self._received = None
            elif isinstance(step, RefusedRequest):
                self._end_with(step.answer)
                return
            else:
                self._out.append(answers.CONTINUE)
        self._flush()
        self._yield_turn()

    def _yield_turn(self) -> None:
        """Continue in the next turn of the loop."""
        self._enter(Phase.ANSWERING)
        asyncio.get_running_loop().call_soon(self._take_next_turn)

    def _take_next_turn(self) -> None:
        if not self._transport.is_closing():
            self._proceed()

    def _answer(self, body: bytes, accepted: AcceptedHead, *, is_fresh: bool = False) -> bool:
        """Answer a request; false if this ends the turn.

        `is_fresh`: the state that it demands is here.
        """
        self.since = self._ticker.now
        if accepted.minimum is not None and not is_fresh:
            return self._answer_fresh(body, accepted, accepted.minimum)
        if isinstance(accepted.answer, Upgrade):
            return self._upgrade(accepted.answer, accepted)
        if isinstance(accepted.answer, Scrape):
            return self._scrape(accepted, accepted.answer)
        if accepted.answer is not None:
            return self._put(accepted, self._known(accepted.answer))
        if not accepted.ids:
            return self._handle(body, accepted, self._client)
        trace = accepted.ids.get("traceparent", "")
        client = structs.replace(self._client, traceparent=trace) if trace else self._client
        with structlog.contextvars.bound_contextvars(**accepted.ids):
            return self._handle(body, accepted, client)

    def _answer_fresh(self, body: bytes, accepted: AcceptedHead, minimum: Minimum) -> bool:
        """Answer a request from the state that it demands; false if this ends the turn."""
        found = self._endpoint.check_minimum(minimum)
        if found is None:
            return self._answer(body, accepted, is_fresh=True)
        if isinstance(found, Missing):
            return self._put(accepted, answers.not_here_yet(found.text))
        self._flush()
        self._enter(Phase.ANSWERING)
        self._task = waiting = asyncio.ensure_future(found)
        waiting.add_done_callback(partial(self._arrived, body, accepted))
        return False

    def _arrived(
        self, body: bytes, accepted: AcceptedHead, task: asyncio.Future[Missing | None]
    ) -> None:
        """Answer a request that has waited for a commit, and continue with the next one."""
        self._task = None
        if self._transport.is_closing():
            self._received = None
            return
        if task.cancelled() or task.exception() is not None:
            self._fail(task)
            return
        self.since, found = self._ticker.now, task.result()
        goes_on = (
            self._answer(body, accepted, is_fresh=True)
            if found is None
            else self._put(accepted, answers.not_here_yet(found.text))
        )
        if goes_on:
            self._received = None
            self._proceed()

    def _handle(self, body: bytes, accepted: AcceptedHead, client: Client) -> bool:
        """Let the handler answer; false if this ends the turn."""
        try:
            reply = self._handlers[accepted.path](body, client)
        except Exception:
            log.exception("handler_failed")
            self._end_with(answers.INTERNAL_ERROR)
            return False
        if isinstance(reply, Reply):
            return self._put(accepted, reply)
        if isinstance(reply, Answer):
            return self._put(accepted, reply)
        self._flush()
        self._wait_for(reply, accepted)
        return False

    def _upgrade(self, upgrade: Upgrade, accepted: AcceptedHead) -> bool:
        """Hand the transport to a WebSocket; true if it is refused."""
        open_session = self._endpoint.session_at(upgrade.path)
        if open_session is None:
            return self._put(accepted, NOT_SERVED)
        self._out.append(render_upgrade(upgrade, self._ticker.date))
        self._flush()
        is_paused = self._gate.unread_answers
        self._unread.end()
        self._gate.unread_answers = self._gate.far_ahead = False
        self._gate.update()
        websocket = WebSocketConnection(self._endpoint, self._transport, self._client)
        self._ticker.replace(self, websocket)
        self._transport.set_protocol(websocket)
        websocket.open(open_session)
        if is_paused:  # the transport reports that only once
            websocket.pause_writing()
        if self._draining:
            websocket.drain()
        if self._reader.unread:
            websocket.data_received(self._reader.rest())
        return False

    def _scrape(self, accepted: AcceptedHead, scrape: Scrape) -> bool:
        """Answer with metrics; false if they come later."""
        found = self._endpoint.scrape(scrape)
        if isinstance(found, Answer):
            return self._put(accepted, found)
        self._flush()
        self._wait_for(found, accepted)
        return False

    def _known(self, answer: Answer | Probe) -> Answer:
        if isinstance(answer, Probe):
            return answers.readiness(self._endpoint.readiness(), answer)
        return answer

    def _wait_for(self, reply: Awaitable[Reply | Answer], accepted: AcceptedHead) -> None:
        self._enter(Phase.ANSWERING)
        self._task = asyncio.ensure_future(reply)
        self._task.add_done_callback(partial(self._waited, accepted))

    def _waited(self, accepted: AcceptedHead, task: asyncio.Future[Reply | Answer]) -> None:
        self._task = self._received = None
        if self._transport.is_closing():
            return
        self.since = self._ticker.now
        if task.cancelled() or task.exception() is not None:
            self._fail(task)
            return
        if accepted.ids:  # what follows is another request
            structlog.contextvars.unbind_contextvars(*accepted.ids)
        self._put_and_proceed(accepted, task.result())

    def _fail(self, task: asyncio.Future[Any]) -> None:
        """Close with the error for a fault of the service."""
        log.error("handler_failed", exc_info=None if task.cancelled() else task.exception())
        self._end_with(answers.INTERNAL_ERROR)

    def _put(self, accepted: AcceptedHead, answer: Answer | Reply) -> bool:
        """Add a response to those of this turn; false if this ends the turn."""
        last = not accepted.keep_alive
        headers = accepted.headers
        if self._draining and not last and not self._reader.unread:
            last, headers = True, headers.replace(answers.KEEP_ALIVE, b"") + answers.CLOSE
        date = self._ticker.date
        if isinstance(answer, Reply):
            self._out += reply_parts(answer, date, headers)
            self._out_size += len(answer.body)
            if answer.rest is not None:
                return self._put_long(answer, answer.rest, last=last)
        else:
            self._out.append(render(answer, date, headers))
            self._out_size += len(answer.text)
        if last:
            self._end()
        elif self._out_size > THRESHOLDS.gathered_bytes:
            self._flush()
        return not last

    def _put_long(self, reply: Reply, rest: LongText | list[bytes], *, last: bool) -> bool:
        """Write the rest of a reply that is too long to be joined; false if this ends the turn."""
        self._last = last
        if isinstance(rest, LongText):
            self._long = rest
            self._transport.set_write_buffer_limits(high=0)
            return self._write_on(rest)
        if not self._write_whole(rest, reply.size - len(reply.body)):
            return self._wait_until_sent(rest)
        if last:
            self._end()
        return not last

    def _write_whole(self, pieces: list[bytes], size: int) -> bool:
        """Write the responses of this turn and then these pieces; whether all was sent."""
        first, *others = pieces
        self._whole = pieces
        beginning = b"".join((*self._out, first))
        self._transport.writelines([beginning, *others])
        self._sent(len(beginning) - len(first) + size)
        self._whole = None
        return not self._transport.get_write_buffer_size()

    def _wait_until_sent(self, pieces: list[bytes]) -> bool:
        """Count unsent bytes; false unless all was sent meanwhile."""
        if self._long is None:
            self._long = LongText.going(self._endpoint.budget, pieces)
        self._transport.set_write_buffer_limits(high=0)
        return self._write_on(self._long)

    def _put_and_proceed(self, accepted: AcceptedHead, reply: Reply | Answer) -> None:
        """Add a response and continue with the next request."""
        if self._put(accepted, reply):
            self._proceed()

    def _write_on(self, text: LongText) -> bool:
        """Write portions of a long response; true if all is sent and more may follow."""
        for _ in range(THRESHOLDS.written_pieces):
            if self._gate.unread_answers:
                break
            text.sent()
            if not text.size:
                self._long = None
                self._transport.set_write_buffer_limits(high=THRESHOLDS.long_bytes)
                if self._last:
                    self._end()
                return not self._last
            portion = [*self._out, *text.next_pieces()]
            self._transport.writelines(portion)
            self._sent(sum(map(len, portion)))
        if self._gate.unread_answers:
            self._enter(Phase.WRITING)
        else:
            self._yield_turn()
        return False

    def _flush(self) -> None:
        if self._out:
            gathered = b"".join(self._out)
            self._transport.write(gathered)
            self._sent(len(gathered))

    def _sent(self, size: int) -> None:
        """The responses of this turn were written, `size` bytes with what followed them."""
        self._traffic(0, size)
        self._out.clear()
        self._out_size = 0

    def _rest(self) -> None:
        """Wait for input: all requests are answered."""
        self._flush()
        if self._ended:
            self._end()
            return
        if self._gate.far_ahead:
            self._gate.far_ahead = False
            self._gate.update()
        phase = self._reader.phase
        if self._gate.unread_answers:
            self._enter(Phase.WRITING)
        elif phase is not self.phase:
            self._enter(phase)

    def _enter(self, phase: Phase) -> None:
        self.phase = phase
        self.since = self._ticker.now

    # Ending.

    def _end_with(self, answer: Answer) -> None:
        self._out.append(render(answer, self._ticker.date, answers.CLOSE))
        self._end()

    def _end(self) -> None:
        """Write what is left and close so that the client can read it.

        Closing a socket with unread input resets the connection and may destroy the last answer.
        So shut down our side first, and wait a little for the client to close.
        """
        self._flush()
        self._enter(Phase.LINGERING)
        if self._ended:
            self._transport.close()
        else:
            self._transport.write_eof()
            self._gate.unread_answers = self._gate.far_ahead = False
            self._gate.update()


def _address(transport: asyncio.BaseTransport) -> str:
    """The address of the peer, without its port."""
    peer = transport.get_extra_info("peername")
    return peer[0] if isinstance(peer, tuple) else ""
