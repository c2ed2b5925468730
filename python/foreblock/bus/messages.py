"""Messages between workers and the writer, and the two ends of a call. No I/O.

A worker sends a `BusCall` to a network: a transaction, a query of its pool, a request for state or
for an upstream, or a command that changes a dev chain. Every call gets a `Result` or `Failed`,
perhaps after `ResultPart`s. A network does not begin a call after its deadline.

A transaction must not be sent twice, so its worker must know whether it may be in the pool. The
writer sends `Started` before it examines a transaction. A worker that has read everything the
writer sent and finds no `Started` after the deadline knows that the transaction was not and will
not be accepted. After `Started`, without a result, the outcome is unknown.

The other messages of the writer are hints, which a worker may miss. Only `ChainChanged` needs an
`Ack`: a command has its result when every worker has dropped hints that no longer hold.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Literal, NamedTuple, Protocol

from msgspec import Struct

from foreblock.bus.commands import AnyCommand
from foreblock.errors import (
    CommandUnknown,
    ErrorAnswer,
    ForeblockError,
    InvalidProofData,
    NewEpoch,
    NoUpstream,
    OutcomeUnknown,
    PoolUnavailable,
    RefusedCommand,
    RejectedTransaction,
    SequencerBusy,
    SequencerUnavailable,
    UnitsSpent,
)
from foreblock.status.network_status import SourceStatus

STATE_PART_BYTES: Final = 256 << 10
MOST_STATE_BYTES: Final = 64 << 20  # of a response
POOL_PART_BYTES: Final = 64 << 10  # of transactions, which one turn of the writer's loop encodes
MOST_POOL_BYTES: Final = 4 << 20  # of transactions in a response
MOST_ABOUT: Final = 32  # transactions of at most 128 KiB that one query may name


# --- Calls ------------------------------------------------------------------------------------


class Submit(Struct, frozen=True, tag=True, array_like=True):
    """Add a decoded transaction to the pool; its sender is recovered."""

    raw: bytes
    sender: bytes
    may_replace: bool = True  # a waiting transaction with the same nonce


# Transactions by hash, those of senders, all of them, or only their numbers.
PoolSelection = Literal["found", "of_senders", "all", "numbers"]


class PoolQuery(Struct, frozen=True, tag=True, array_like=True):
    """Read the pool: `ResultPart`s of `WaitingTransaction`s, then a result of `PoolNumbers`."""

    selection: PoolSelection
    about: tuple[bytes, ...] = ()  # hashes for `found`, senders for `of_senders`


class GetState(Struct, frozen=True, tag=True, array_like=True):
    """Fetch keys of the state that a store does not have: bytes, in parts.

    Keys and result are packed by `ledger.storage.state_keys` and `follow.learned_state`.
    """

    epoch: int  # of the base in which the keys are missing
    keys: bytes


class CallUpstream(Struct, frozen=True, tag=True, array_like=True):
    """Send a request to an upstream: the JSON of its result, in parts."""

    method: str
    params: bytes  # JSON


CallBody = Submit | PoolQuery | GetState | CallUpstream | AnyCommand


class BusCall(Struct, frozen=True, tag=True, array_like=True):
    """A request of a worker to a network."""

    id: int
    network: str
    body: CallBody
    deadline_ns: int  # monotonic, equal in all processes


# --- Replies ----------------------------------------------------------------------------------


class WaitingTransaction(Struct, frozen=True, array_like=True):
    """A transaction that is in no committed flashblock."""

    hash: bytes
    raw: bytes
    sender: bytes
    can_run: bool  # does not wait for an earlier nonce


class PoolNumbers(NamedTuple):
    """The last part of a pool's response."""

    pending: int = 0  # transactions of the whole pool that can run
    queued: int = 0  # those that wait for an earlier nonce
    left_out: int = 0  # bytes of the selection if they exceed the limit; then it is empty


class Started(Struct, frozen=True, tag=True, array_like=True):
    """From now on these transactions may be in the pool."""

    ids: tuple[int, ...]


class ResultPart(Struct, frozen=True, tag=True, array_like=True):
    """A part of a result that is not the last."""

    id: int
    value: bytes | tuple[WaitingTransaction, ...]


class Result(Struct, frozen=True, tag=True, array_like=True):
    """The call succeeded; the value depends on its body."""

    id: int
    value: Any = None


class Failed(Struct, frozen=True, tag=True, array_like=True):
    """The call failed with one of the errors in `FAILURES`."""

    id: int
    error: str
    facts: tuple[Any, ...] = ()


# --- Hints and the rest -----------------------------------------------------------------------


class NextNonce(Struct, frozen=True, tag=True, array_like=True):
    """Hint: the next nonce after a sender's transactions in the pool."""

    network: str
    sender: bytes
    nonce: int


class Committed(Struct, frozen=True, tag=True, array_like=True):
    """Hint: a network has a new commit. Only workers that want commits get it."""

    network: str
    commit: int


class SourceReport(Struct, frozen=True, tag=True, array_like=True):
    """Hint: the status of a network's source."""

    network: str
    sent_at_ns: int  # monotonic, equal in all processes
    status: SourceStatus


class ChainChanged(Struct, frozen=True, tag=True, array_like=True):
    """A command changed a chain: drop hints about this network and send an `Ack`."""

    id: int
    network: str


class Ack(Struct, frozen=True, tag=True, array_like=True):
    """A worker has dropped the hints that a change invalidated."""

    id: int


class WantCommits(Struct, frozen=True, tag=True, array_like=True):
    """A worker wants `Committed` from now on, or no longer."""

    is_on: bool


class Print(Struct, frozen=True, tag=True, array_like=True):
    """Text for the console of a network."""

    network: str
    text: str  # lines, or the name of a method that a client has called
    is_request: bool = False
    missed: int = 0  # texts before this one that could not be sent


ToWriter = BusCall | Ack | WantCommits | Print
Reply = Started | ResultPart | Result | Failed
ToWorker = Reply | NextNonce | Committed | SourceReport | ChainChanged


# --- The writer's end of a call ---------------------------------------------------------------

# Errors that cross the bus unchanged.
FAILURES: Final[dict[str, type[ForeblockError]]] = {
    each.__name__: each
    for each in (
        CommandUnknown,
        ErrorAnswer,
        NewEpoch,
        NoUpstream,
        OutcomeUnknown,
        PoolUnavailable,
        RefusedCommand,
        RejectedTransaction,
        SequencerBusy,
        SequencerUnavailable,
        UnitsSpent,
        InvalidProofData,
    )
}


def failed(number: int, error: ForeblockError) -> Failed:
    """The message that a call failed with an error of `FAILURES`."""
    facts = tuple(getattr(error, name) for name in error.__match_args__)
    return Failed(number, type(error).__name__, facts)


# Sends a message to one worker; false if the kernel did not accept it at once.
Respond = Callable[[ToWorker], bool | None]


class BusRequest(NamedTuple):
    """A received call and the connection to its worker; `finish` or `fail` every one."""

    call: BusCall
    respond: Respond

    @property
    def submission(self) -> Submit:
        body = self.call.body
        assert isinstance(body, Submit), "a network sorts calls by their bodies"
        return body

    def is_late(self, now_ns: int) -> bool:
        return now_ns >= self.call.deadline_ns

    def start(self) -> bool:
        """Send `Started`; false if the worker may not get it, so the call must fail."""
        return self.respond(Started((self.call.id,))) is not False

    def part(self, value: bytes | tuple[WaitingTransaction, ...]) -> None:
        self.respond(ResultPart(self.call.id, value))

    def finish(self, value: object = None) -> None:
        self.respond(Result(self.call.id, value))

    def finish_in_parts(self, data: bytes) -> None:
        """Send bytes in parts that fit into frames."""
        last = max(0, len(data) - 1) // STATE_PART_BYTES * STATE_PART_BYTES
        for start in range(0, last, STATE_PART_BYTES):
            self.part(data[start : start + STATE_PART_BYTES])
        self.finish(data[last:])

    def fail(self, error: Exception) -> None:
        """Send an error. The worker gets no details of one that is not in `FAILURES`."""
        if not isinstance(error, ForeblockError) or type(error).__name__ not in FAILURES:
            error = unanswered(self.call.body, "internal error")
        self.respond(failed(self.call.id, error))

    def refuse(self) -> None:
        """Fail because the network is not available."""
        self.fail(unavailable(self.call.body))


NOT_AVAILABLE: Final = "the process that fetches is not available"


def unavailable(body: CallBody, why: str = NOT_AVAILABLE) -> ForeblockError:
    """The error of a call that was certainly not executed."""
    match body:
        case PoolQuery():
            return PoolUnavailable()
        case GetState() | CallUpstream():
            return NoUpstream(why, 1)
        case _:
            return SequencerUnavailable()


def unanswered(body: CallBody, why: str) -> ForeblockError:
    """The error of a call that may have been executed."""
    match body:
        case Submit():
            return OutcomeUnknown()
        case PoolQuery():
            return PoolUnavailable()
        case GetState() | CallUpstream():
            return NoUpstream(why, 1)
        case _:
            return CommandUnknown()


class EncodedTransaction(Protocol):
    """A transaction of a pool, as far as a response needs it."""

    @property
    def hash(self) -> bytes: ...

    @property
    def raw(self) -> bytes: ...

    @property
    def sender(self) -> bytes: ...


def pool_parts(
    found: Sequence[tuple[EncodedTransaction, bool]], size: int
) -> Iterator[tuple[WaitingTransaction, ...]]:
    """Split transactions of `size` bytes, each with whether it can run; too many yield nothing."""
    part: list[WaitingTransaction] = []
    held = 0
    for transaction, can_run in found if size <= MOST_POOL_BYTES else ():
        raw = transaction.raw
        if part and held + len(raw) > POOL_PART_BYTES:
            yield tuple(part)
            part, held = [], 0
        part.append(WaitingTransaction(transaction.hash, raw, transaction.sender, can_run))
        held += len(raw)
    if part:
        yield tuple(part)


# --- The worker's end of a call ---------------------------------------------------------------


class PendingCall:
    """A sent call: its parts until it has a result."""

    def __init__(self, body: CallBody) -> None:
        self._body: Final = body
        self._size = 0
        self.is_started = False
        self.parts: Final[list[Any]] = []
        self.result: Final[asyncio.Future[Any]] = asyncio.get_running_loop().create_future()

    def on_message(self, message: Reply) -> None:
        """Apply a message of the writer."""
        if self.result.done():
            return
        match message:
            case Started():
                self.is_started = True
            case ResultPart(_, value):
                self._add(value)
            case Result(_, value):
                self.result.set_result(value)
            case Failed(_, error, facts):
                self.result.set_exception(FAILURES[error](*facts))

    def give_up(self, *, received_all: bool, why: str) -> None:
        """Fail without a reply, after the deadline or because the writer is gone.

        `received_all` says that everything the writer has sent by now was read.
        """
        if self.result.done():
            return
        certain = received_all and not self.is_started and isinstance(self._body, Submit)
        body = self._body
        self.result.set_exception(unavailable(body) if certain else unanswered(body, why))

    def _add(self, value: bytes | tuple[WaitingTransaction, ...]) -> None:
        self._size += len(value)
        if self._size > MOST_STATE_BYTES:
            error = NoUpstream(f"the response has more than {MOST_STATE_BYTES} bytes", 1)
            self.result.set_exception(error)
        else:
            self.parts.append(value)
