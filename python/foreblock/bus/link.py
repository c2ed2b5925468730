"""A worker's end of the bus: submits transactions, asks about pools, sends commands, keeps hints.

It reconnects whenever the writer is gone; meanwhile a submission is refused at once and reads
go on. The same happens when the writer leaves too much unread. `frames.Submission` decides how
a submission without an answer ends; a question without one has none.
"""

import asyncio
import fcntl
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from typing import Any, Final

import structlog
from msgspec import Struct

from foreblock.bus.commands import AnyCommand
from foreblock.bus.deferral import Deferral, DoneHere
from foreblock.bus.direct import DirectEnd, DirectTransport, say
from foreblock.bus.exchange import Exchange
from foreblock.bus.frames import (
    Accepted,
    AskPool,
    Busy,
    ChainChanged,
    Committed,
    Done,
    Frames,
    Heard,
    NextNonce,
    Order,
    Outcome,
    PoolNotRead,
    PoolPart,
    Print,
    Refused,
    Rejected,
    SourceFacts,
    Submission,
    Submit,
    TakenUp,
    ToWorker,
    WantCommits,
    Wanted,
    frame,
    frames_of,
)
from foreblock.bus.pool_question import PoolContent, PoolQuestion
from foreblock.bus.state_frames import AskState, AskUpstream, StateNotFound, StatePart
from foreblock.bus.state_question import StateQuestion
from foreblock.clock import SECOND_NS, Clock, SystemClock
from foreblock.errors import (
    BusBroken,
    CommandUnknown,
    ErrorAnswer,
    NoUpstream,
    PoolUnavailable,
    RefusedCommand,
    SequencerBusy,
    SequencerUnavailable,
)

ANSWER_SECONDS: Final = 2.0  # until the deadline, also with a stuck writer
MARGIN_SECONDS: Final = 0.01  # after the deadline, so that it has certainly passed
GRACE_SECONDS: Final = 1.0  # for the answer after `TakenUp`
QUESTION_SECONDS: Final = 1.0  # for the whole answer about a pool
COMMAND_SECONDS: Final = 60.0  # for the answer to a command; thousands of blocks take a while
PRINT_LIMIT: Final = 1 << 18  # unsent bytes beyond which nothing is printed
UNSENT_LIMIT: Final = 1 << 20  # bytes; beyond it transactions are refused at once
ROUNDS: Final = 100  # turns of the loop to read what has arrived
SHORTEST_DELAY: Final = 0.05
LONGEST_DELAY: Final = 1.0
HINTS: Final = 100_000  # senders kept; then all are dropped

log = structlog.get_logger()


class WriterLink:
    """The connection to the writer, for all networks of a worker."""

    def __init__(
        self,
        path: str,
        clock: Clock | None = None,
        *,
        answer_seconds: float = ANSWER_SECONDS,
        grace_seconds: float = GRACE_SECONDS,
        question_seconds: float = QUESTION_SECONDS,
    ) -> None:
        self._path: Final = path
        self._clock: Final = clock or SystemClock()
        self._answer_seconds: Final = answer_seconds
        self._grace_seconds: Final = grace_seconds
        self._question_seconds: Final = question_seconds
        self._ids: Final = count(1)
        self._waiting: dict[int, Submission] = {}
        self._questions: dict[int, PoolQuestion] = {}
        self._states: dict[int, StateQuestion] = {}
        self._commands: dict[int, asyncio.Future[Any]] = {}
        self._nonces: dict[tuple[str, bytes], int] = {}
        self._facts: dict[str, SourceFacts] = {}
        self._followers: Final[dict[Callable[[], None], str]] = {}  # with their networks
        self._changed: list[Callable[[], None]] = []
        self._deferrals: Final[dict[str, Deferral]] = {}
        self._printed_here: Final[dict[str, Callable[[str], None]]] = {}
        self._unprinted = 0
        self._transport: asyncio.Transport | None = None
        self._sending_long: Final = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._tried: Final = asyncio.Event()

    def start(self) -> None:
        """Connect and keep reconnecting, in the running loop."""
        self._task = asyncio.create_task(self._keep_connected())

    def start_here(self, exchange: Exchange) -> None:
        """Connect to a writer in this process, for good."""
        here, there = DirectTransport(), DirectTransport()
        there.join(_Incoming(self, asyncio.get_running_loop().create_future()))
        here.join(exchange.accept(there))
        self._transport = here
        self._tried.set()

    def put_off_to(self, network: str, deferral: Deferral) -> None:
        """Let commands of a chain that is written in this process be put off."""
        self._deferrals[network] = deferral

    def deferral(self, network: str) -> Deferral | None:
        """What puts off commands of a network; none where none are."""
        return self._deferrals.get(network)

    def here(self, network: str) -> DoneHere | None:
        """What changes a network at once; none where the request that is answered has to wait."""
        deferral = self._deferrals.get(network)
        return deferral.here if deferral is not None and deferral.is_alone else None

    async def tried(self) -> None:
        """Wait for the first connection or its failure.

        A worker that serves earlier refuses transactions although there is a writer.
        """
        await self._tried.wait()

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
        if self._transport is not None:
            self._transport.abort()

    async def submit(
        self, network: str, raw: bytes, sender: bytes, *, may_replace: bool = True
    ) -> None:
        """Submit a transaction and wait until the pool has it.

        Raises `RejectedTransaction` with the pool's reason; `SequencerUnavailable` and
        `SequencerBusy` if the pool certainly does not have it; and `OutcomeUnknown` otherwise.
        """
        transport = self._transport
        if transport is None or transport.is_closing():
            raise SequencerUnavailable
        if transport.get_write_buffer_size() + len(raw) > UNSENT_LIMIT:
            raise SequencerBusy
        number, submission = next(self._ids), Submission()
        deadline = self._clock.monotonic_ns() + int(self._answer_seconds * SECOND_NS)
        self._waiting[number] = submission
        try:
            say(transport, Submit(number, network, raw, sender, deadline, may_replace))
            await asyncio.wait([submission.answer], timeout=self._answer_seconds + MARGIN_SECONDS)
            if not submission.answer.done():
                heard_all = await _hear_all(transport)
                if submission.taken_up:
                    await asyncio.wait([submission.answer], timeout=self._grace_seconds)
                submission.give_up(heard_all=heard_all)
            await submission.answer
        finally:
            del self._waiting[number]

    async def ask_pool(
        self, network: str, wanted: Wanted, about: tuple[bytes, ...] = ()
    ) -> PoolContent:
        """What the pool of a network has of this; raises `PoolUnavailable` without an answer."""
        transport = self._transport
        if transport is None or transport.is_closing():
            raise PoolUnavailable
        if transport.get_write_buffer_size() > UNSENT_LIMIT:
            raise PoolUnavailable
        number, question = next(self._ids), PoolQuestion()
        deadline = self._clock.monotonic_ns() + int(self._question_seconds * SECOND_NS)
        self._questions[number] = question
        try:
            transport.write(frame(AskPool(number, network, wanted, about, deadline)))
            async with asyncio.timeout(self._question_seconds):
                return await question.answer
        except TimeoutError:
            raise PoolUnavailable from None
        finally:
            del self._questions[number]

    async def ask_state(self, network: str, epoch: int, keys: bytes, seconds: float) -> bytes:
        """What the network's process finds of these keys, packed as they are.

        Raises `NoUpstream`, `UnitsSpent`, `NewEpoch`, `InvalidProofData` and `BusMessageTooLong`.
        """
        return await self._ask_beyond(
            partial(AskState, network=network, epoch=epoch, keys=keys), seconds
        )

    async def ask_upstream(self, network: str, method: str, params: bytes, seconds: float) -> bytes:
        """The JSON of an upstream's result, which nobody has verified. Raises the same."""
        try:
            return await self.pass_on(network, method, params, seconds)
        except ErrorAnswer as error:
            raise NoUpstream(str(error), 1) from None

    async def pass_on(self, network: str, method: str, params: bytes, seconds: float) -> bytes:
        """The same for a client that is told the error of an upstream: raises `ErrorAnswer` too."""
        question = partial(AskUpstream, network=network, method=method, params=params)
        return await self._ask_beyond(question, seconds)

    async def _ask_beyond(
        self, message: Callable[..., AskState | AskUpstream], seconds: float
    ) -> bytes:
        transport = self._transport
        if transport is None or transport.is_closing():
            raise NoUpstream("the process that fetches is not there", 1)
        if transport.get_write_buffer_size() > UNSENT_LIMIT:
            raise NoUpstream("too many questions wait", 1)
        number, question = next(self._ids), StateQuestion()
        deadline = self._clock.monotonic_ns() + int(seconds * SECOND_NS)
        self._states[number] = question
        try:
            async with asyncio.timeout(seconds):
                await self._send(transport, message(id=number, deadline_ns=deadline))
                return await question.answer
        except TimeoutError:
            raise NoUpstream(f"nothing in {round(seconds, 2):g} s", 1) from None
        finally:
            del self._states[number]

    async def command(self, network: str, command: AnyCommand) -> Any:  # noqa: ANN401, its own
        """Let the writer change a dev chain; gives the result when all workers serve it.

        Raises `RefusedCommand` with the reason, `SequencerUnavailable` or `BusMessageTooLong` if
        it certainly is not carried out, and `CommandUnknown` otherwise.
        """
        transport = self._transport
        if transport is None or transport.is_closing():
            raise SequencerUnavailable
        number = next(self._ids)
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        deadline = self._clock.monotonic_ns() + int(COMMAND_SECONDS * SECOND_NS)
        self._commands[number] = answer
        try:
            async with asyncio.timeout(COMMAND_SECONDS):
                await self._send(transport, Order(number, network, command, deadline))
                return await answer
        except TimeoutError:
            raise CommandUnknown from None
        finally:
            del self._commands[number]

    async def _send(self, transport: asyncio.Transport, message: Struct) -> None:
        """Send a message of any length; others get in between the parts of a long one."""
        if isinstance(transport, DirectTransport):
            say(transport, message)
            return
        frames = frames_of(message)
        if len(frames) == 1:
            transport.write(frames[0])
            return
        incoming = transport.get_protocol()
        assert isinstance(incoming, _Incoming), "it was made with one"
        async with self._sending_long:
            for part in frames:
                await incoming.is_writable.wait()
                transport.write(part)

    def print(self, network: str, text: str, *, is_request: bool = False) -> None:
        """Let the writer print something; dropped and counted where it does not read."""
        transport = self._transport
        if (
            transport is None
            or transport.is_closing()
            or transport.get_write_buffer_size() > PRINT_LIMIT
        ):
            self._unprinted += 1
            return
        missed, self._unprinted = self._unprinted, 0
        say(transport, Print(network, text, is_request, missed))

    def print_here(self, network: str, request: Callable[[str], None]) -> None:
        """Let this print the requests of a network that is written in this process."""
        self._printed_here[network] = request

    def request_printer(self, network: str) -> Callable[[str], None]:
        """What prints that a client of a network has called a method."""
        return self._printed_here.get(network) or partial(self.print, network, is_request=True)

    def when_changed(self, call: Callable[[], None]) -> None:
        """Call this when a command has changed a chain, and after each connection."""
        self._changed.append(call)

    def next_nonce(self, network: str, sender: bytes) -> int:
        """The next nonce after a sender's transactions in the pool; 0 if unknown."""
        return self._nonces.get((network, sender), 0)

    def source_facts(self, network: str) -> SourceFacts | None:
        """The latest facts about the source of a network."""
        return self._facts.get(network)

    def follow(self, network: str, hint: Callable[[], None]) -> None:
        """Call `hint` soon after each commit of a network from now on; some may be missed."""
        self._followers[hint] = network
        if len(self._followers) == 1:
            self._want_commits(is_on=True)

    @contextmanager
    def following(self, network: str, hint: Callable[[], None]) -> Iterator[None]:
        """The same for a while."""
        self.follow(network, hint)
        try:
            yield
        finally:
            del self._followers[hint]
            if not self._followers:
                self._want_commits(is_on=False)

    def _want_commits(self, *, is_on: bool) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(frame(WantCommits(is_on)))

    async def _keep_connected(self) -> None:
        loop, delay = asyncio.get_running_loop(), SHORTEST_DELAY
        while True:
            ended = loop.create_future()
            try:
                transport, _ = await loop.create_unix_connection(
                    lambda ended=ended: _Incoming(self, ended),  # type: ignore[misc]
                    self._path,
                )
            except OSError:
                self._tried.set()
                await asyncio.sleep(delay)
                delay = min(delay * 2, LONGEST_DELAY)
                continue
            self._transport, delay = transport, SHORTEST_DELAY
            if self._followers:
                self._want_commits(is_on=True)
            self._tried.set()
            self._tell_changed()
            self._disconnected(heard_all=await ended)

    def _disconnected(self, *, heard_all: bool) -> None:
        self._transport = None
        self._nonces.clear()  # the next writer has another pool
        for submission in self._waiting.values():
            submission.give_up(heard_all=heard_all)
        for question in self._questions.values():
            question.give_up()
        for state in self._states.values():
            state.give_up()
        for answer in self._commands.values():
            if not answer.done():
                answer.set_exception(CommandUnknown())

    def hear(self, message: ToWorker) -> None:
        """Apply a message of the writer."""
        match message:
            case NextNonce(network, sender, nonce):
                if len(self._nonces) >= HINTS:
                    self._nonces.clear()
                self._nonces[network, sender] = nonce
            case SourceFacts(network):
                self._facts[network] = message
            case Committed(network):
                self._hear_of_commit(network)
            case TakenUp(numbers):
                for number in numbers:
                    self._tell(number, message)
            case Accepted(number) | Rejected(number) | Busy(number):
                self._tell(number, message)
            case PoolPart() | PoolNotRead() | StatePart() | StateNotFound():
                self._hear_answer(message)
            case _:
                self._hear_of_commands(message)

    def _hear_answer(self, message: PoolPart | PoolNotRead | StatePart | StateNotFound) -> None:
        number = message.id
        if isinstance(message, PoolPart | PoolNotRead):
            if number in self._questions:
                self._questions[number].hear(message)
        elif number in self._states:
            self._states[number].hear(message)

    def _hear_of_commit(self, network: str) -> None:
        for hint, followed in self._followers.items():
            if followed == network:
                hint()

    def _hear_of_commands(self, message: ToWorker) -> None:
        match message:
            case ChainChanged(number, network):
                self.hear_of_change(network)
                if self._transport is not None:
                    self._transport.write(frame(Heard(number)))
            case Done(number, result):
                self._end(number, result)
            case Refused(number, why):
                self._end(number, RefusedCommand(why))
            case _:
                pass

    def hear_of_change(self, network: str) -> None:
        """Forget what was told of a network whose chain a command has changed."""
        self.forget(network)
        self._tell_changed()

    def forget(self, network: str) -> None:
        """Drop the hints about a network whose chain was changed."""
        self._nonces = {key: nonce for key, nonce in self._nonces.items() if key[0] != network}

    def _tell_changed(self) -> None:
        for call in self._changed:
            call()

    def _end(self, number: int, result: object) -> None:
        answer = self._commands.get(number)
        if answer is None or answer.done():
            return
        if isinstance(result, Exception):
            answer.set_exception(result)
        else:
            answer.set_result(result)

    def _tell(self, number: int, message: Outcome) -> None:
        submission = self._waiting.get(number)
        if submission is not None:
            submission.hear(message)


class _Incoming(DirectEnd):
    """One connection to a writer."""

    def __init__(self, link: WriterLink, ended: asyncio.Future[bool]) -> None:
        """`ended` gets whether everything that the writer sent was read."""
        self._link = link
        self._ended = ended
        self._heard_all = False
        self._frames = Frames(ToWorker)
        self._transport: asyncio.BaseTransport | None = None
        self.is_writable: Final = asyncio.Event()
        self.is_writable.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        try:
            for message in self._frames.feed(data):
                self._link.hear(message)  # type: ignore[arg-type]  # the decoder's own kind
        except BusBroken as why:
            log.warning("bus_broken", why=str(why))
            assert self._transport is not None, "data comes over a transport"
            self._transport.close()

    def heard(self, message: Struct) -> None:
        self._link.hear(message)  # type: ignore[arg-type]  # one of the writer's

    def pause_writing(self) -> None:
        self.is_writable.clear()

    def resume_writing(self) -> None:
        self.is_writable.set()

    def eof_received(self) -> None:
        self._heard_all = True

    def connection_lost(self, exc: Exception | None) -> None:
        if isinstance(exc, ConnectionResetError):
            # The writer is gone and left something unread. A read reports this after all data; a
            # write raises `BrokenPipeError`, perhaps before all data is read.
            self._heard_all = True
        self.is_writable.set()
        if not self._ended.done():
            self._ended.set_result(self._heard_all)


async def _hear_all(transport: asyncio.Transport) -> bool:
    """Let the loop read what the writer has sent by now; false if that failed."""
    for _ in range(ROUNDS):
        if transport.is_closing():
            return False
        if not _unread(transport):
            return True
        await asyncio.sleep(0)
    return False


def _unread(transport: asyncio.Transport) -> int:
    """The number of bytes in the receive buffer."""
    sock = transport.get_extra_info("socket")
    if sock is None:
        return 0  # the writer is in this process
    found = fcntl.ioctl(sock.fileno(), termios.FIONREAD, bytes(4))
    return int.from_bytes(found, sys.byteorder)
