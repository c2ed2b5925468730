"""A worker's end of the bus: sends calls to networks, and keeps the hints of the writer.

It reconnects when the writer is gone. Meanwhile calls fail at once, and reads continue. Calls also
fail at once while the writer leaves too much unread. `messages.PendingCall` decides how a call
without a reply ends.
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

from foreblock.backoff import Backoff, Waits
from foreblock.bus.bus_server import BusServer
from foreblock.bus.commands import AnyCommand, Command, InProcessWriter
from foreblock.bus.frames import BusEnd, DirectTransport, Frames, frame, frames_of, send
from foreblock.bus.messages import (
    NOT_AVAILABLE,
    Ack,
    BusCall,
    CallBody,
    CallUpstream,
    ChainChanged,
    Committed,
    GetState,
    NextNonce,
    PendingCall,
    PoolNumbers,
    PoolQuery,
    PoolSelection,
    Print,
    Reply,
    SourceReport,
    Started,
    Submit,
    ToWorker,
    WaitingTransaction,
    WantCommits,
    unanswered,
    unavailable,
)
from foreblock.clock import SECOND_NS, Clock, SystemClock
from foreblock.errors import BusBroken, ErrorAnswer, NoUpstream, SequencerBusy

SUBMIT_SECONDS: Final = 2.0  # until the deadline of a transaction, also with a stuck writer
MARGIN_SECONDS: Final = 0.01  # after the deadline, so that it has certainly passed
GRACE_SECONDS: Final = 1.0  # for the result after `Started`
POOL_SECONDS: Final = 1.0  # for the whole response of a pool
COMMAND_SECONDS: Final = 60.0  # for a command; thousands of blocks take a while
PRINT_LIMIT: Final = 1 << 18  # unsent bytes beyond which nothing is printed
UNSENT_LIMIT: Final = 1 << 20  # unsent bytes beyond which calls fail at once
READ_TURNS: Final = 100  # turns of the loop to read what has arrived
WAITS: Final = Waits(shortest=0.05, longest=1.0)  # before another attempt to connect
HINTS: Final = 100_000  # senders kept; then all are dropped

log = structlog.get_logger()


class PoolContent(Struct, frozen=True):
    """The response to a pool query."""

    transactions: tuple[WaitingTransaction, ...]
    numbers: PoolNumbers


class BusClient:
    """The connection to the writer, for all networks of a worker."""

    def __init__(
        self,
        path: str,
        clock: Clock | None = None,
        *,
        submit_seconds: float = SUBMIT_SECONDS,
        grace_seconds: float = GRACE_SECONDS,
        pool_seconds: float = POOL_SECONDS,
    ) -> None:
        self._path: Final = path
        self._clock: Final = clock or SystemClock()
        self._submit_seconds: Final = submit_seconds
        self._grace_seconds: Final = grace_seconds
        self._pool_seconds: Final = pool_seconds
        self._ids: Final = count(1)
        self._pending: Final[dict[int, PendingCall]] = {}
        self._nonces: dict[tuple[str, bytes], int] = {}
        self._reports: dict[str, SourceReport] = {}
        self._on_commit: Final[dict[Callable[[], None], str]] = {}  # with their networks
        self._on_change: Final[list[Callable[[], None]]] = []
        self._writers_here: Final[dict[str, InProcessWriter]] = {}
        self._direct_printers: Final[dict[str, Callable[[str], None]]] = {}
        self._unprinted = 0
        self._transport: asyncio.Transport | None = None
        self._sending_long: Final = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._tried: Final = asyncio.Event()

    # --- The connection -------------------------------------------------------------------

    def start(self) -> None:
        """Connect and keep reconnecting, in the running loop."""
        self._task = asyncio.create_task(self._keep_connected())

    def connect_directly(self, server: BusServer) -> None:
        """Connect to a writer in this process, until the process ends."""
        to_server, to_client = DirectTransport(), DirectTransport()
        to_client.connect(_Incoming(self, asyncio.get_running_loop().create_future()))
        to_server.connect(server.accept(to_client))
        self._transport = to_server
        self._tried.set()

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

    async def _keep_connected(self) -> None:
        loop, backoff = asyncio.get_running_loop(), Backoff(WAITS)
        while True:
            ended = loop.create_future()
            try:
                transport, _ = await loop.create_unix_connection(
                    lambda ended=ended: _Incoming(self, ended),  # type: ignore[misc]
                    self._path,
                )
            except OSError:
                self._tried.set()
                await asyncio.sleep(backoff.after())
                continue
            self._transport = transport
            backoff.succeeded()
            if self._on_commit:
                self._want_commits(is_on=True)
            self._tried.set()
            self._chain_changed()
            self._disconnected(received_all=await ended)

    def _disconnected(self, *, received_all: bool) -> None:
        self._transport = None
        self._nonces.clear()  # the next writer has another pool
        for pending in self._pending.values():
            pending.give_up(received_all=received_all, why=NOT_AVAILABLE)

    # --- Calls ----------------------------------------------------------------------------

    async def submit(
        self, network: str, raw: bytes, sender: bytes, *, may_replace: bool = True
    ) -> None:
        """Return when the pool has the transaction.

        Raises `RejectedTransaction` with the pool's reason; `SequencerUnavailable` and
        `SequencerBusy` if it certainly was not accepted, and `OutcomeUnknown` otherwise.
        """
        body = Submit(raw, sender, may_replace)
        transport = self._connected(body)
        if transport.get_write_buffer_size() + len(raw) > UNSENT_LIMIT:
            raise SequencerBusy
        with self._call(network, body, self._submit_seconds) as (call, pending):
            send(transport, call)
            await asyncio.wait([pending.result], timeout=self._submit_seconds + MARGIN_SECONDS)
            if not pending.result.done():
                received_all = await _receive_all(transport)
                if pending.is_started:
                    await asyncio.wait([pending.result], timeout=self._grace_seconds)
                pending.give_up(received_all=received_all, why="")
            await pending.result

    async def query_pool(
        self, network: str, selection: PoolSelection, about: tuple[bytes, ...] = ()
    ) -> PoolContent:
        """Read the pool of a network; raises `PoolUnavailable`."""
        body = PoolQuery(selection, about)
        parts, numbers = await self._finished(network, body, self._pool_seconds)
        found = tuple(transaction for part in parts for transaction in part)
        return PoolContent(found, PoolNumbers(*numbers))

    async def get_state(self, network: str, epoch: int, keys: bytes, seconds: float) -> bytes:
        """Fetch packed keys of the state; the result is packed too.

        Raises `NoUpstream`, `UnitsSpent`, `NewEpoch`, `InvalidProofData` and `BusMessageTooLong`.
        """
        return await self._fetched(network, GetState(epoch, keys), seconds)

    async def ask_upstream(self, network: str, method: str, params: bytes, seconds: float) -> bytes:
        """The unverified JSON of an upstream's result. Raises as `get_state`."""
        try:
            return await self.pass_on(network, method, params, seconds)
        except ErrorAnswer as error:
            raise NoUpstream(str(error), 1) from None

    async def pass_on(self, network: str, method: str, params: bytes, seconds: float) -> bytes:
        """As `ask_upstream`, for a client that gets the upstream's error: raises `ErrorAnswer`."""
        return await self._fetched(network, CallUpstream(method, params), seconds)

    async def _fetched(self, network: str, body: GetState | CallUpstream, seconds: float) -> bytes:
        parts, last = await self._finished(network, body, seconds)
        return b"".join((*parts, last))

    async def command(self, network: str, command: AnyCommand) -> Any:  # noqa: ANN401, its own
        """Change a dev chain; returns the result when all workers serve the change.

        Raises `RefusedCommand` with the reason, `SequencerUnavailable` or `BusMessageTooLong` if
        it certainly is not executed, and `CommandUnknown` otherwise.
        """
        return (await self._finished(network, command, COMMAND_SECONDS))[1]

    async def _finished(
        self, network: str, body: CallBody, seconds: float
    ) -> tuple[list[Any], Any]:
        """Send a call; returns the parts and the value of its result."""
        transport = self._connected(body)
        if transport.get_write_buffer_size() > UNSENT_LIMIT and not isinstance(body, Command):
            raise unavailable(body, "too many requests wait")
        with self._call(network, body, seconds) as (call, pending):
            try:
                async with asyncio.timeout(seconds):
                    await self._send(transport, call)
                    return pending.parts, await pending.result
            except TimeoutError:
                raise unanswered(body, f"nothing in {round(seconds, 2):g} s") from None

    def _connected(self, body: CallBody) -> asyncio.Transport:
        transport = self._transport
        if transport is None or transport.is_closing():
            raise unavailable(body)
        return transport

    @contextmanager
    def _call(
        self, network: str, body: CallBody, seconds: float
    ) -> Iterator[tuple[BusCall, PendingCall]]:
        """A call whose replies are received inside of this."""
        number, pending = next(self._ids), PendingCall(body)
        deadline_ns = self._clock.monotonic_ns() + int(seconds * SECOND_NS)
        self._pending[number] = pending
        try:
            yield BusCall(number, network, body, deadline_ns), pending
        finally:
            del self._pending[number]

    async def _send(self, transport: asyncio.Transport, message: Struct) -> None:
        """Send a message of any length; others get in between the parts of a long one."""
        if isinstance(transport, DirectTransport):
            send(transport, message)
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

    # --- A chain that is written in this process -------------------------------------------

    def write_here(self, network: str, writer: InProcessWriter) -> None:
        """Use this writer, in this process, for short changes of a network."""
        self._writers_here[network] = writer

    def writer_here(self, network: str) -> InProcessWriter | None:
        """The writer of a network, if it is in this process."""
        return self._writers_here.get(network)

    # --- Console output -------------------------------------------------------------------

    def print(self, network: str, text: str, *, is_request: bool = False) -> None:
        """Print text on the writer's console; dropped and counted while it does not read."""
        transport = self._transport
        if (
            transport is None
            or transport.is_closing()
            or transport.get_write_buffer_size() > PRINT_LIMIT
        ):
            self._unprinted += 1
            return
        missed, self._unprinted = self._unprinted, 0
        send(transport, Print(network, text, is_request, missed))

    def print_directly(self, network: str, print_request: Callable[[str], None]) -> None:
        """Print the requests of a network that is written in this process with this."""
        self._direct_printers[network] = print_request

    def request_printer(self, network: str) -> Callable[[str], None]:
        """The function that prints the method of a request."""
        return self._direct_printers.get(network) or partial(self.print, network, is_request=True)

    # --- Hints ----------------------------------------------------------------------------

    def next_nonce(self, network: str, sender: bytes) -> int:
        """The next nonce after a sender's transactions in the pool; 0 if unknown."""
        return self._nonces.get((network, sender), 0)

    def source_report(self, network: str) -> SourceReport | None:
        """The latest report on the source of a network."""
        return self._reports.get(network)

    def when_changed(self, call: Callable[[], None]) -> None:
        """Call this when a command has changed a chain, and after each connection."""
        self._on_change.append(call)

    def follow(self, network: str, on_commit: Callable[[], None]) -> None:
        """Call this soon after each commit of a network from now on; some may be missed."""
        self._on_commit[on_commit] = network
        if len(self._on_commit) == 1:
            self._want_commits(is_on=True)

    @contextmanager
    def following(self, network: str, on_commit: Callable[[], None]) -> Iterator[None]:
        """As `follow`, inside of this."""
        self.follow(network, on_commit)
        try:
            yield
        finally:
            del self._on_commit[on_commit]
            if not self._on_commit:
                self._want_commits(is_on=False)

    def _want_commits(self, *, is_on: bool) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(frame(WantCommits(is_on)))

    def on_message(self, message: ToWorker) -> None:
        """Apply a message of the writer."""
        match message:
            case NextNonce(network, sender, nonce):
                if len(self._nonces) >= HINTS:
                    self._nonces.clear()
                self._nonces[network, sender] = nonce
            case SourceReport(network):
                self._reports[network] = message
            case Committed(network):
                for on_commit, followed in self._on_commit.items():
                    if followed == network:
                        on_commit()
            case ChainChanged(number, network):
                self.chain_changed(network)
                if self._transport is not None:
                    self._transport.write(frame(Ack(number)))
            case _:
                self._on_reply(message)

    def _on_reply(self, message: Reply) -> None:
        for number in message.ids if isinstance(message, Started) else (message.id,):
            pending = self._pending.get(number)
            if pending is not None:
                pending.on_message(message)

    def chain_changed(self, network: str) -> None:
        """Drop hints about a network whose chain a command has changed."""
        self.forget(network)
        self._chain_changed()

    def forget(self, network: str) -> None:
        """Drop the nonces of a network."""
        self._nonces = {key: nonce for key, nonce in self._nonces.items() if key[0] != network}

    def _chain_changed(self) -> None:
        for call in self._on_change:
            call()


class _Incoming(BusEnd):
    """One connection to a writer."""

    def __init__(self, client: BusClient, ended: asyncio.Future[bool]) -> None:
        """`ended` gets whether everything that the writer sent was read."""
        self._client = client
        self._ended = ended
        self._received_all = False
        self._frames = Frames(ToWorker)
        self._transport: asyncio.BaseTransport | None = None
        self.is_writable: Final = asyncio.Event()
        self.is_writable.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        try:
            for message in self._frames.feed(data):
                self._client.on_message(message)  # type: ignore[arg-type]  # the decoder's own kind
        except BusBroken as why:
            log.warning("bus_broken", why=str(why))
            assert self._transport is not None, "data comes over a transport"
            self._transport.close()

    def on_message(self, message: Struct) -> None:
        self._client.on_message(message)  # type: ignore[arg-type]  # one of the writer's

    def pause_writing(self) -> None:
        self.is_writable.clear()

    def resume_writing(self) -> None:
        self.is_writable.set()

    def eof_received(self) -> None:
        self._received_all = True

    def connection_lost(self, exc: Exception | None) -> None:
        if isinstance(exc, ConnectionResetError):
            # The writer is gone and left unread data. A read reports this after all data; a write
            # raises `BrokenPipeError`, perhaps before all data is read.
            self._received_all = True
        self.is_writable.set()
        if not self._ended.done():
            self._ended.set_result(self._received_all)


async def _receive_all(transport: asyncio.Transport) -> bool:
    """Make the loop read everything the writer has sent; false if that fails."""
    for _ in range(READ_TURNS):
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
