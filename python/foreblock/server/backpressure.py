"""Output that a client has not read: pause reading from it, count it, and queue messages.

The kernel takes what a client is about to read; the rest is held here, and while there is a rest
nothing more is written. Pieces of a long response are counted by the response itself, the rest is
counted here. The kernel takes megabytes at a time, so the progress of a slow client is measured by
what has arrived at its side. How long a client may take is in `sweep`.

`Outbox` is the outgoing half of a WebSocket. Short messages of one turn are joined and written at
once. A long answer is written in fragments, each when the one before has left the process, so that
pongs and closes come between them and nothing long is copied. While the client does not read, or a
long response is being sent, further messages wait here and are counted in the worker's budget. The
connection decides when a client is too slow.
"""

import asyncio
import fcntl
import sys
import termios
from collections import deque
from collections.abc import Callable
from typing import Final

from foreblock.scheduling.admission import LongText, WorkerBudget
from foreblock.scheduling.reply import Reply
from foreblock.scheduling.thresholds import THRESHOLDS
from foreblock.server.frames import CONTINUED, TEXT, frame_head

# Bytes per second. Slower clients are dropped first when memory is short.
STEADY: Final = 64 * 1024
# Bytes that a client may send ahead of the request being answered.
AHEAD_LIMIT: Final = 64 * 1024


class ReadGate:
    """Pauses reading from a transport while there is a reason to."""

    __slots__ = ("_reading", "_transport", "far_ahead", "unread_answers")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport: Final = transport
        self._reading = True
        self.unread_answers = False  # the client does not read
        self.far_ahead = False  # it sent more than `AHEAD_LIMIT`

    def update(self) -> None:
        """Pause or resume reading according to the reasons."""
        wanted = not (self.unread_answers or self.far_ahead)
        if wanted is self._reading or self._transport.is_closing():
            return
        self._reading = wanted
        if wanted:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()


class Unread:
    """The unread responses of one connection."""

    __slots__ = (
        "_budget",
        "_counted",
        "_left",
        "_looked",
        "_renewed",
        "_taken",
        "_text",
        "_transport",
        "slow_seconds",
    )  # fmt: skip

    def __init__(self, transport: asyncio.Transport, budget: WorkerBudget) -> None:
        self._transport: Final = transport
        self._budget: Final = budget
        self._text: LongText | None = None
        self._counted = 0
        self._left = 0  # bytes that had not arrived at the last measurement
        # Bytes that arrived of all that was once unread: until now, at the last measurement, and
        # until a whole portion had last arrived.
        self._taken = self._looked = self._renewed = 0
        self.slow_seconds = 0

    @property
    def held(self) -> int:
        """Bytes that closing the connection would free."""
        waiting = 0 if self._text is None else self._text.size
        return self._transport.get_write_buffer_size() + waiting

    def begin(self, text: LongText | None) -> bool:
        """Start counting unread bytes; false if the budget refuses a long response."""
        self._left = self._not_arrived()
        self._text = text
        if text is not None:
            return True
        self._counted = size = self._transport.get_write_buffer_size()
        self._budget.bytes_left -= size
        if size < THRESHOLDS.long_bytes or self._budget.bytes_left >= 0:
            return True
        self._budget.wanted = True
        return False

    def end(self) -> None:
        """Stop counting: everything is read."""
        self._see_progress()
        self._budget.bytes_left += self._counted
        self._counted = self.slow_seconds = 0
        self._text = None

    def measure(self) -> bool:
        """Called every second: whether a whole portion has arrived since this was last true."""
        self._see_progress()
        steady = self._taken - self._looked >= STEADY
        self._looked = self._taken
        self.slow_seconds = 0 if steady else self.slow_seconds + 1
        if self._taken - self._renewed < THRESHOLDS.piece_bytes:
            return False
        self._renewed = self._taken
        return True

    def _see_progress(self) -> None:
        left = self._not_arrived()
        self._taken += max(0, self._left - left)
        self._left = left

    def _not_arrived(self) -> int:
        """Bytes in the buffers of the process and the kernel."""
        size = self._transport.get_write_buffer_size()
        sock = self._transport.get_extra_info("socket")
        if sock is None:
            return size
        try:
            queued = fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, bytes(4))
        except (OSError, ValueError):
            return size  # closed, or not supported
        return size + int.from_bytes(queued, sys.byteorder)


class Outbox:
    """The messages that are not written yet."""

    __slots__ = (
        "_budget",
        "_gathered",
        "_gathered_bytes",
        "_is_begun",
        "_traffic",
        "_transport",
        "_waiting",
        "_waiting_answers",
        "long",
        "paused",
        "waiting_bytes",
    )  # fmt: skip

    def __init__(
        self,
        transport: asyncio.Transport,
        budget: WorkerBudget,
        traffic: Callable[[int, int], None],
    ) -> None:
        """`traffic` counts bytes received, which are 0 here, and sent."""
        self._traffic: Final = traffic
        self._transport: Final = transport
        self._budget: Final = budget
        self.paused = False  # the client does not read
        # Frames of this turn.
        self._gathered: list[bytes] = []
        self._gathered_bytes = 0
        # A long answer on its way, and whether a fragment of it was written.
        self.long: LongText | None = None
        self._is_begun = False
        # The queue, and its bytes of short messages and of long responses.
        self._waiting: deque[bytes | LongText] | None = None
        self.waiting_bytes = 0
        self._waiting_answers = 0

    @property
    def is_empty(self) -> bool:
        """The transport has everything."""
        return not (self.holds_back or self._gathered)

    @property
    def holds_back(self) -> bool:
        """Messages have to wait."""
        return self.paused or self.long is not None or bool(self._waiting)

    @property
    def is_crowded(self) -> bool:
        """Further answers would have to wait behind many others."""
        return self.paused or self.waiting_bytes >= THRESHOLDS.long_bytes

    @property
    def unsent(self) -> int:
        """Bytes that the socket has not taken."""
        on_its_way = 0 if self.long is None else self.long.size
        waiting = self.waiting_bytes + self._waiting_answers
        return self._transport.get_write_buffer_size() + self._gathered_bytes + on_its_way + waiting

    def put(self, message: bytes) -> None:
        """Add a short message."""
        if self.holds_back:
            self._wait(message)
            self.waiting_bytes += len(message)
            self._budget.bytes_left -= len(message)
        else:
            self._gather(message)

    def put_reply(self, reply: Reply) -> None:
        """Add a response; an empty one is ignored."""
        rest, body = reply.rest, reply.body
        if rest is None:
            if body:
                self.put(body)
        elif isinstance(rest, LongText) or self.holds_back:
            text = rest if isinstance(rest, LongText) else LongText(self._budget, rest)
            assert not body, "a long answer has all of its text in pieces"
            self._wait(text)
            self._waiting_answers += text.size
        else:
            self._write(frame_head(TEXT, reply.size), body, *rest)

    def put_control(self, frame: bytes) -> None:
        """Add a control frame, which may stand before any other and between fragments."""
        self._gathered.append(frame)
        self._gathered_bytes += len(frame)

    def advance(self) -> bool:
        """Write what may be written in this turn; whether there is more for the next one."""
        if self.long is None and self._waiting is None:
            self.flush()
            return False
        for _ in range(THRESHOLDS.written_pieces):
            if self.paused:
                return False
            if self.long is not None:
                self._write_fragment(self.long)
            elif not self._waiting:
                break
            else:
                self._take_waiting(self._waiting)
        self._write()
        return self.holds_back and not self.paused

    def flush(self) -> None:
        """Write the short messages of this turn."""
        if self._gathered_bytes >= THRESHOLDS.long_bytes:
            self._write()
        elif self._gathered:
            frames = b"".join(self._gathered)
            self._gathered.clear()
            self._gathered_bytes = 0
            self._traffic(0, len(frames))
            self._transport.write(frames)

    def clear(self) -> None:
        """Drop what is not written yet."""
        self._gathered.clear()
        self._gathered_bytes = 0
        self.long = self._waiting = None
        self._budget.bytes_left += self.waiting_bytes
        self.waiting_bytes = self._waiting_answers = 0

    def _wait(self, item: bytes | LongText) -> None:
        if self._waiting is None:
            self._waiting = deque()
        self._waiting.append(item)

    def _gather(self, message: bytes) -> None:
        self._gathered += (frame_head(TEXT, len(message)), message)
        self._gathered_bytes += len(message)
        if self._gathered_bytes > THRESHOLDS.gathered_bytes:
            self._write()

    def _write(self, *frame: bytes) -> None:
        """Write the frames of this turn, and one more."""
        pieces = [*self._gathered, *frame]
        size, self._gathered_bytes = self._gathered_bytes, 0
        self._gathered.clear()
        if size + sum(map(len, frame)) < THRESHOLDS.long_bytes:
            pieces = [b"".join(pieces)]
        if pieces[0]:
            self._traffic(0, sum(map(len, pieces)))
            self._transport.writelines(pieces)

    def _take_waiting(self, waiting: deque[bytes | LongText]) -> None:
        """Gather short messages, or begin a long response."""
        size = 0
        while waiting and size < THRESHOLDS.gathered_bytes:
            item = waiting.popleft()
            if isinstance(item, LongText):
                self._waiting_answers -= item.size
                self.long, self._is_begun = item, False
                # From its first unsent byte on it is held back.
                self._transport.set_write_buffer_limits(high=0)
                break
            self._gathered += (frame_head(TEXT, len(item)), item)
            self._gathered_bytes += len(item)
            size += len(item)
        if not waiting:
            self._waiting = None
        self.waiting_bytes -= size
        self._budget.bytes_left += size
        self._write()

    def _write_fragment(self, text: LongText) -> None:
        """Write the next fragment of a long response, once those before are sent."""
        text.sent()
        if not text.size:
            self.long = None
            self._transport.set_write_buffer_limits(high=THRESHOLDS.long_bytes)
            return
        opcode = CONTINUED if self._is_begun else TEXT
        self._is_begun = True
        pieces = text.next_pieces()
        head = frame_head(opcode, sum(map(len, pieces)), final=not text.size)
        self._write(head, *pieces)
