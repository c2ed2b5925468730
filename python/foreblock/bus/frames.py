"""Messages on the bus, their frames, and the state of a submitted transaction. No I/O.

A frame is a length (4 bytes, big-endian) and one message in MessagePack. A message longer than
`LONGEST` is sent as several `MessagePart`s; other messages may come between them.

A submission is sent, may be taken up, and is answered or not. Until the writer says that it
takes it up, it is not examined, and after its deadline it never will be; so a refusal is
certain then. After `TakenUp`, without an answer, the outcome is unknown.

A question about the pool (`pool_question`) is answered in parts of a bounded size, or not.

A question about state that the store does not have (`state_frames`) is answered the same way.

A command for a dev chain (`commands`) is answered when it is carried out and every worker has
heard that: hints from before are wrong then.
"""

import asyncio
from collections.abc import Iterator
from itertools import count
from typing import Any, Final, Literal, TypeVar

import msgspec
from msgspec import Struct, structs

from foreblock.bus.commands import AnyCommand
from foreblock.bus.state_frames import AskState, AskUpstream, StateNotFound, StatePart
from foreblock.errors import (
    BusBroken,
    BusMessageTooLong,
    OutcomeUnknown,
    RejectedTransaction,
    SequencerBusy,
    SequencerUnavailable,
)

LENGTH: Final = 4
LONGEST: Final = 1 << 20  # of a frame; a longer one is not one of ours
PART_BYTES: Final = 256 << 10  # of a message that is longer than that
MOST_BYTES: Final = 16 << 20  # of a message

M = TypeVar("M")


class Submit(Struct, frozen=True, tag=True, array_like=True):
    """A transaction from a worker, decoded and with its sender recovered.

    The writer drops it if its deadline has passed: by then the client has its refusal.
    """

    id: int
    network: str
    raw: bytes
    sender: bytes
    deadline_ns: int  # monotonic, equal in all processes
    may_replace: bool = True  # one with the same nonce that waits


class TakenUp(Struct, frozen=True, tag=True, array_like=True):
    """From now on these may be in the pool; sent before the first of them is examined.

    A worker that has read everything without this after a deadline knows that the transaction
    was not accepted and will not be.
    """

    ids: tuple[int, ...]


class Accepted(Struct, frozen=True, tag=True, array_like=True):
    """The transaction is in the pool."""

    id: int


class Rejected(Struct, frozen=True, tag=True, array_like=True):
    """The transaction is not in the pool, with the reason."""

    id: int
    why: str


class Busy(Struct, frozen=True, tag=True, array_like=True):
    """The transaction is not in the pool, because too many are waiting."""

    id: int


class NextNonce(Struct, frozen=True, tag=True, array_like=True):
    """Hint: the next nonce after a sender's transactions in the pool."""

    network: str
    sender: bytes
    nonce: int


class Committed(Struct, frozen=True, tag=True, array_like=True):
    """Hint: a network has a new commit. Only workers that follow commits get it."""

    network: str
    commit: int


class SourceFacts(Struct, frozen=True, tag=True, array_like=True):
    """Hint: the state of a network's source, one line per fact."""

    network: str
    told_ns: int  # monotonic, equal in all processes
    facts: tuple[str, ...]


# What a question about a pool asks for: transactions by their hashes, those of senders, all of
# them, or only how many there are.
Wanted = Literal["found", "of_senders", "all", "numbers"]


class AskPool(Struct, frozen=True, tag=True, array_like=True):
    """A question of a worker: which transactions wait.

    `about` are hashes of transactions for `found`, senders for `of_senders`, and empty
    otherwise.
    """

    id: int
    network: str
    wanted: Wanted
    about: tuple[bytes, ...]
    deadline_ns: int  # monotonic; later nobody waits for the answer


class WaitingTransaction(Struct, frozen=True, array_like=True):
    """A transaction that is in no committed flashblock."""

    hash: bytes
    raw: bytes
    sender: bytes
    can_run: bool  # and does not wait for a nonce before its own


class PoolPart(Struct, frozen=True, tag=True, array_like=True):
    """A part of the answer; the last one says how many there are in the whole pool."""

    id: int
    transactions: tuple[WaitingTransaction, ...]
    is_last: bool = True
    pending: int = 0  # transactions of the pool that can run
    queued: int = 0  # those that wait for a nonce
    left_out: int = 0  # bytes of what was asked for, where they are too many; there is nothing then


class PoolNotRead(Struct, frozen=True, tag=True, array_like=True):
    """There is no answer: the network is restarting, or asked too much."""

    id: int


class Order(Struct, frozen=True, tag=True, array_like=True):
    """A command of a worker; not begun after its deadline."""

    id: int
    network: str
    command: AnyCommand
    deadline_ns: int  # monotonic


class Done(Struct, frozen=True, tag=True, array_like=True):
    """A command is carried out."""

    id: int
    result: Any = None


class Refused(Struct, frozen=True, tag=True, array_like=True):
    """A command is not carried out, with the reason."""

    id: int
    why: str


class ChainChanged(Struct, frozen=True, tag=True, array_like=True):
    """A command was carried out: forget hints about this network, and say `Heard`."""

    id: int
    network: str


class Heard(Struct, frozen=True, tag=True, array_like=True):
    """A worker has forgotten what no longer holds."""

    id: int


class WantCommits(Struct, frozen=True, tag=True, array_like=True):
    """A worker wants `Committed` from now on, or no longer."""

    is_on: bool


class Print(Struct, frozen=True, tag=True, array_like=True):
    """Something for the people who watch a network, with what could not be sent before it."""

    network: str
    text: str  # lines, or the name of a method that a client has called
    is_request: bool = False
    missed: int = 0  # texts that were not sent


class MessagePart(Struct, frozen=True, tag=True, array_like=True):
    """A part of a long message. A new id gives up the message before it."""

    id: int
    data: bytes
    is_last: bool


ToWriter = Submit | AskPool | AskState | AskUpstream | Order | Heard | WantCommits | Print
ToWorker = (
    TakenUp
    | Accepted
    | Rejected
    | Busy
    | NextNonce
    | Committed
    | SourceFacts
    | PoolPart
    | PoolNotRead
    | StatePart
    | StateNotFound
    | Done
    | Refused
    | ChainChanged
)

Outcome = TakenUp | Accepted | Rejected | Busy  # what the writer says of one transaction

_encode = msgspec.msgpack.Encoder().encode
_part_ids: Final = count()


def frame(message: Struct) -> bytes:
    """Encode a message; raises `BusMessageTooLong`."""
    return b"".join(frames_of(message))


def frames_of(message: Struct) -> list[bytes]:
    """Encode a message as the frames it is sent in: one, or one for each part."""
    body = _encoded(message)
    if len(body) <= LONGEST:
        return [len(body).to_bytes(LENGTH) + body]
    if len(body) > MOST_BYTES:
        raise BusMessageTooLong(len(body), MOST_BYTES)
    number, last = next(_part_ids), (len(body) - 1) // PART_BYTES * PART_BYTES
    return [
        frame(MessagePart(number, body[start : start + PART_BYTES], start == last))
        for start in range(0, len(body), PART_BYTES)
    ]


def _encoded(message: Struct) -> bytes:
    try:
        return _encode(message)
    except UnicodeEncodeError:  # text from outside must not fail the sender
        return _encode(_encodable(message))


def _encodable(message: Struct) -> Struct:
    """The message with replacement marks for lone surrogates in its texts."""
    match message:
        case Rejected(number, why):
            return Rejected(number, _replaced(why))
        case Refused(number, why):
            return Refused(number, _replaced(why))
        case StateNotFound():
            return structs.replace(
                message, why=_replaced(message.why), data=_replaced(message.data)
            )
        case Print(network, text, is_request, missed):
            return Print(network, _replaced(text), is_request, missed)
        case SourceFacts(network, told_ns, facts):
            return SourceFacts(network, told_ns, tuple(map(_replaced, facts)))
        case _:
            return message


def _replaced(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


class Frames:
    """Decodes the messages of one direction."""

    def __init__(self, kind: Any) -> None:  # noqa: ANN401, a type or a union
        self._decode: Final = msgspec.msgpack.Decoder(kind | MessagePart).decode
        self._held = bytearray()
        self._part_id = -1
        self._parts = bytearray()  # of a long message

    def feed(self, data: bytes) -> Iterator[object]:
        """The complete messages. Raises `BusBroken` for anything else."""
        held = self._held
        held += data
        while len(held) >= LENGTH:
            length = int.from_bytes(held[:LENGTH])
            if length > LONGEST:
                raise BusBroken(f"a frame of {length} bytes")
            if len(held) < LENGTH + length:
                return
            body = bytes(held[LENGTH : LENGTH + length])
            del held[: LENGTH + length]
            message = self._decoded(body)
            if isinstance(message, MessagePart):
                message = self._joined(message)
            if message is not None:
                yield message

    def _joined(self, part: MessagePart) -> object | None:
        """The whole message if this was its last part."""
        if part.id != self._part_id:
            self._parts, self._part_id = bytearray(), part.id
        self._parts += part.data
        if len(self._parts) > MOST_BYTES:
            raise BusBroken(f"a message of more than {MOST_BYTES} bytes")
        if not part.is_last:
            return None
        whole, self._parts = self._decoded(self._parts), bytearray()
        return whole

    def _decoded(self, body: bytes | bytearray) -> object:
        try:
            return self._decode(body)
        except (msgspec.MsgspecError, UnicodeDecodeError) as why:
            raise BusBroken(str(why)) from None


class Submission:
    """A submitted transaction, as its worker knows it."""

    def __init__(self) -> None:
        self.taken_up = False
        self.answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def hear(self, word: Outcome) -> None:
        """Apply a message of the writer."""
        match word:
            case TakenUp():
                self.taken_up = True
            case Accepted():
                self._end(None)
            case Rejected(_, why):
                self._end(RejectedTransaction(why))
            case Busy():
                self._end(SequencerBusy())

    def give_up(self, *, heard_all: bool) -> None:
        """Fail without an answer, after the deadline or because the writer is gone.

        `heard_all` says that everything the writer has sent by now is read.
        """
        certain = heard_all and not self.taken_up
        self._end(SequencerUnavailable() if certain else OutcomeUnknown())

    def _end(self, failure: Exception | None) -> None:
        if self.answer.done():
            return
        if failure is None:
            self.answer.set_result(None)
        else:
            self.answer.set_exception(failure)
