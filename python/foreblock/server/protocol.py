"""One connection: answers in the order of requests, written together when made together.

The reader turns bytes into requests, the handler turns requests into replies, and this class
moves bytes between them and a transport. A request that is whole in one piece, under a head
known by heart, takes the short way at the top of `data_received`; the long way gives the
same answer and is what every other request takes.

The next request of a connection is looked at when the one before has its answer, so the
order is kept without bookkeeping and one client has one request with the handler at a time.
"""

import asyncio
from collections.abc import Awaitable
from functools import partial
from itertools import count
from typing import Final, cast

import structlog

from foreblock.scheduling.room import LongText, ReceivedBytes
from foreblock.scheduling.thresholds import THRESHOLDS
from foreblock.server import answers
from foreblock.server.answers import Answer, Probe, render, reply_parts
from foreblock.server.checks import Accepted, Refused
from foreblock.server.endpoint import Admission, Endpoint
from foreblock.server.flow import AHEAD_LIMIT, ReadGate
from foreblock.server.head_cache import HeadCache
from foreblock.server.phase import Phase
from foreblock.server.reader import HEAD_END, Request, RequestReader
from foreblock.server.reply import NO_FAST_PATH, Client, Reply
from foreblock.server.unread import Unread

_IDLE: Final = Phase.IDLE  # a name of the module is found faster than a member of the class
_READING: Final = frozenset({Phase.IDLE, Phase.HEAD, Phase.BODY})
_NOTHING_KNOWN: Final = HeadCache()

_numbers: Final = count()  # of connections

log = structlog.get_logger()


class Connection(asyncio.Protocol):
    """One client."""

    __slots__ = (
        "_client",
        "_draining",
        "_ended",
        "_endpoint",
        "_fast_path",
        "_gate",
        "_handle",
        "_heads",
        "_last",
        "_long",
        "_out",
        "_out_size",
        "_reader",
        "_received",
        "_task",
        "_ticker",
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

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint: Final = endpoint
        self._handle: Final = endpoint.handler
        self._ticker: Final = endpoint.ticker
        self._fast_path = endpoint.fast_path
        self._heads = endpoint.heads
        self._reader = RequestReader(endpoint.rules, endpoint.heads, endpoint.room)
        # The answers of this turn.
        self._out: list[bytes] = []
        self._out_size = 0
        # A long answer that is not sent yet, and whether it is the connection's last.
        self._long: LongText | None = None
        self._last = False
        self._whole: list[bytes] | None = None  # while it is written, a long answer
        # How far it has come.
        self._task: asyncio.Future[Reply] | None = None
        self._received: ReceivedBytes | None = None  # of the request that is being answered
        self._ended = False  # the client will send no more
        self._draining = False
        self.phase = Phase.IDLE
        self.since = self._ticker.now

    # What the transport calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin, unless there are too many."""
        self._transport = cast("asyncio.Transport", transport)
        self._gate = ReadGate(self._transport)
        # What the system does not take at once is waited for, and counted, from here on; of
        # an answer in pieces from its first byte on. To do so for all costs a block of 200
        # transactions a third of its time.
        self._transport.set_write_buffer_limits(high=THRESHOLDS.long_bytes)
        self._unread = Unread(self._transport, self._endpoint.room)
        self._client = Client(_address(transport), next(_numbers))
        match self._endpoint.admit(self):
            case Admission.REFUSED:
                self._end_with(answers.TOO_MANY_CONNECTIONS)
            case Admission.DROPPED:
                self._transport.abort()
            case Admission.ADMITTED:
                pass

    def data_received(self, data: bytes) -> None:
        """Answer what came, as far as it can be answered."""
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
                self._answer_known(known, body)
                return
        elif self.phase is Phase.LINGERING:
            return
        self._reader.feed(data)
        if self.phase in _READING:
            self._proceed()
        elif self._reader.unread > AHEAD_LIMIT:
            self._gate.far_ahead = True
            self._gate.settle()

    def eof_received(self) -> bool:
        """Whether to keep the other direction open: as long as answers are there to be written.

        A client that closes while a request is with the handler says the same as one that
        has gone, and nearly always has: as other servers do, nothing is worked out for it.
        """
        self._ended = True
        return self._task is None and self.phase in (Phase.ANSWERING, Phase.WRITING)

    def pause_writing(self) -> None:
        """The client does not read: neither read from it nor answer it."""
        self._gate.unread_answers = True
        self._gate.settle()
        if self.phase in _READING:
            self._enter(Phase.WRITING)
        if self._whole is not None:
            self._long = LongText.going(self._endpoint.room, self._whole)
        if not self._unread.begin(self._long):
            self._transport.abort()

    def resume_writing(self) -> None:
        """The client has read all: go on."""
        self._unread.end()
        self._gate.unread_answers = False
        self._gate.settle()
        if self.phase is Phase.WRITING:
            self._take_next_turn()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002, asyncio's signature
        """Forget everything; nobody waits for the answer any more."""
        self._endpoint.forget(self)
        self._unread.end()
        self._long = self._received = None
        self._reader.let_go()
        if self._task is not None:
            self._task.cancel()

    # What the sweep and the drain call.

    @property
    def slow_seconds(self) -> int:
        """For how long the client has not kept pace."""
        return self._unread.slow_seconds

    @property
    def held(self) -> int:
        """The bytes of answers that would be free if it ended."""
        return self._unread.held

    def look(self) -> None:
        """A second has passed in which the client was to read."""
        if self._unread.look():
            self.since = self._ticker.now

    def expire(self, *, unread_too_long: bool) -> None:
        """End: the phase took too long."""
        if self._transport.is_closing():
            # It waits for the client to take the rest.
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
        """Answer what was sent, say that the connection closes, and close."""
        self._draining = True
        # The fast path does not say that the connection closes.
        self._heads, self._fast_path = _NOTHING_KNOWN, NO_FAST_PATH.answer
        if self.phase is Phase.IDLE:
            self.since = self._ticker.now

    def abort(self) -> None:
        """End at once."""
        self._transport.abort()

    # Answering.

    def _answer_known(self, known: Accepted, body: bytes) -> None:
        """Answer a request that came whole, alone, and with a head that was accepted before."""
        self.since = self._ticker.now
        try:
            reply = self._handle(body, self._client)
        except Exception:
            log.exception("handler_failed")
            self._end_with(answers.INTERNAL_ERROR)
            return
        if not isinstance(reply, Reply):
            self._wait_for(reply, known)
            return
        parts = reply_parts(reply, self._ticker.date, known.headers)
        if reply.rest is None:
            self._transport.write(b"".join(parts))
        else:
            self._out += parts
            self._put_long(reply.rest, last=False)  # it came alone: nothing follows it

    def _proceed(self) -> None:
        """Take a turn: answer what can be answered, in order, and write it at once."""
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
            if isinstance(step, Request):
                self._received = step.received
                if not self._answer(step.body, step.accepted):
                    return
                self._received = None
            elif isinstance(step, Refused):
                self._end_with(step.answer)
                return
            else:
                self._out.append(answers.CONTINUE)
        self._flush()
        self._let_others()

    def _let_others(self) -> None:
        """Go on in the next round of the loop."""
        self._enter(Phase.ANSWERING)
        asyncio.get_running_loop().call_soon(self._take_next_turn)

    def _take_next_turn(self) -> None:
        if not self._transport.is_closing():
            self._proceed()

    def _answer(self, body: bytes, accepted: Accepted) -> bool:
        """Answer a request; false when the turn is over with it."""
        self.since = self._ticker.now
        if accepted.answer is not None:
            return self._put(accepted, self._known(accepted.answer))
        try:
            reply = self._handle(body, self._client)
        except Exception:
            log.exception("handler_failed")
            self._end_with(answers.INTERNAL_ERROR)
            return False
        if isinstance(reply, Reply):
            return self._put(accepted, reply)
        self._flush()
        self._wait_for(reply, accepted)
        return False

    def _known(self, answer: Answer | Probe) -> Answer:
        if isinstance(answer, Probe):
            return answers.readiness(self._endpoint.readiness(), answer)
        return answer

    def _wait_for(self, reply: Awaitable[Reply], accepted: Accepted) -> None:
        self._enter(Phase.ANSWERING)
        self._task = asyncio.ensure_future(reply)
        self._task.add_done_callback(partial(self._waited, accepted))

    def _waited(self, accepted: Accepted, task: asyncio.Future[Reply]) -> None:
        self._task = self._received = None
        if self._transport.is_closing():
            return
        self.since = self._ticker.now
        if task.cancelled() or task.exception() is not None:
            log.error("handler_failed", exc_info=None if task.cancelled() else task.exception())
            self._end_with(answers.INTERNAL_ERROR)
        else:
            self._put_and_proceed(accepted, task.result())

    def _put(self, accepted: Accepted, answer: Answer | Reply) -> bool:
        """Add an answer to those of this turn; false when the turn is over with it."""
        last = not accepted.keep_alive
        headers = accepted.headers
        if self._draining and not last and not self._reader.unread:
            last, headers = True, headers.replace(answers.KEEP_ALIVE, b"") + answers.CLOSE
        date = self._ticker.date
        if isinstance(answer, Reply):
            self._out += reply_parts(answer, date, headers)
            self._out_size += len(answer.body)
            if answer.rest is not None:
                return self._put_long(answer.rest, last=last)
        else:
            self._out.append(render(answer, date, headers))
        if last:
            self._end()
        elif self._out_size > THRESHOLDS.gathered_bytes:
            self._flush()
        return not last

    def _put_long(self, rest: LongText | list[bytes], *, last: bool) -> bool:
        """Write what is too long to be joined; false when the turn is over with it."""
        self._last = last
        if isinstance(rest, LongText):
            self._long = rest
            self._transport.set_write_buffer_limits(high=0)
            return self._write_on(rest)
        if not self._write_whole(rest):
            return self._wait_until_sent(rest)
        if last:
            self._end()
        return not last

    def _write_whole(self, pieces: list[bytes]) -> bool:
        """Write the answers of this turn and these after them; whether all of it was sent."""
        first, *others = pieces
        self._whole = pieces
        self._transport.writelines([b"".join((*self._out, first)), *others])
        self._whole = None
        self._out.clear()
        self._out_size = 0
        return not self._transport.get_write_buffer_size()

    def _wait_until_sent(self, pieces: list[bytes]) -> bool:
        """Count what was written and not sent; false unless it was sent meanwhile."""
        if self._long is None:
            self._long = LongText.going(self._endpoint.room, pieces)
        self._transport.set_write_buffer_limits(high=0)
        return self._write_on(self._long)

    def _put_and_proceed(self, accepted: Accepted, reply: Reply) -> None:
        """Add an answer, write it, and go on with what follows it."""
        if self._put(accepted, reply):
            self._proceed()

    def _write_on(self, text: LongText) -> bool:
        """Write some of a long answer; true when all of it is sent and more may follow."""
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
            self._transport.writelines([*self._out, *text.take()])
            self._out.clear()
            self._out_size = 0
        if self._gate.unread_answers:
            self._enter(Phase.WRITING)
        else:
            self._let_others()
        return False

    def _flush(self) -> None:
        if self._out:
            self._transport.write(b"".join(self._out))
            self._out.clear()
            self._out_size = 0

    def _rest(self) -> None:
        """All that came is answered."""
        self._flush()
        if self._ended:
            self._end()
            return
        if self._gate.far_ahead:
            self._gate.far_ahead = False
            self._gate.settle()
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
        """Write what is left and close, in a way that lets the client read it.

        Closing a socket with unread input resets the connection and may destroy the last
        answer on its way. So say that no more will come, and wait a little for the client
        to say the same.
        """
        self._flush()
        self._enter(Phase.LINGERING)
        if self._ended:
            self._transport.close()
        else:
            self._transport.write_eof()
            self._gate.unread_answers = self._gate.far_ahead = False
            self._gate.settle()


def _address(transport: asyncio.BaseTransport) -> str:
    """The other end's address, without its port."""
    peer = transport.get_extra_info("peername")
    return peer[0] if isinstance(peer, tuple) else ""
