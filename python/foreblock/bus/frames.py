"""What is said on the bus, and how it is cut into frames. No I/O.

A frame is its length (4 bytes, big-endian) and one message in MessagePack.
"""

import asyncio
from collections.abc import Iterator
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from foreblock.errors import (
    BusBroken,
    OutcomeUnknown,
    RejectedTransaction,
    SequencerBusy,
    SequencerUnavailable,
)

LENGTH: Final = 4
# A transaction has at most 128 KiB; whatever is longer is not one of our messages.
LONGEST: Final = 1 << 20

M = TypeVar("M")


class Submit(Struct, frozen=True, tag=True, array_like=True):
    """A worker hands in a transaction, decoded and with its sender recovered.

    What is not taken up before its deadline is thrown away: the client has its refusal.
    """

    id: int
    network: str
    raw: bytes
    sender: bytes
    deadline_ns: int  # monotonic, which is the same in all processes


class TakenUp(Struct, frozen=True, tag=True, array_like=True):
    """From now on these may be in the pool; said before the first of them is looked at.

    A worker that has heard everything and not this after a deadline knows that the
    transaction was not taken and will not be.
    """

    ids: tuple[int, ...]


class Accepted(Struct, frozen=True, tag=True, array_like=True):
    """The transaction is in the pool."""

    id: int


class Rejected(Struct, frozen=True, tag=True, array_like=True):
    """The transaction is not, and why."""

    id: int
    why: str


class Busy(Struct, frozen=True, tag=True, array_like=True):
    """The transaction is not, because too many wait to be looked at."""

    id: int


class NextNonce(Struct, frozen=True, tag=True, array_like=True):
    """The nonce that follows a sender's transactions in the pool; a hint."""

    network: str
    sender: bytes
    nonce: int


class Committed(Struct, frozen=True, tag=True, array_like=True):
    """A network has a new commit; a hint."""

    network: str
    commit: int


class SourceFacts(Struct, frozen=True, tag=True, array_like=True):
    """How the source of a network is, a line for each fact; a hint."""

    network: str
    told_ns: int  # monotonic, which is the same in all processes
    facts: tuple[str, ...]


ToWriter = Submit
ToWorker = TakenUp | Accepted | Rejected | Busy | NextNonce | Committed | SourceFacts

_encode = msgspec.msgpack.Encoder().encode


def frame(message: Struct) -> bytes:
    """A message as it is sent."""
    try:
        body = _encode(message)
    except UnicodeEncodeError:  # a text of somebody else's; nobody is to fail for it
        body = _encode(_encodable(message))
    return len(body).to_bytes(LENGTH) + body


def _encodable(message: Struct) -> Struct:
    """The message with a mark for whatever in its texts is no character."""
    match message:
        case Rejected(number, why):
            return Rejected(number, _replaced(why))
        case SourceFacts(network, told_ns, facts):
            return SourceFacts(network, told_ns, tuple(map(_replaced, facts)))
        case _:
            return message


def _replaced(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


class Frames:
    """Bytes as they come, to messages of one direction."""

    def __init__(self, kind: object) -> None:
        self._decode: Final = msgspec.msgpack.Decoder(kind).decode
        self._held = bytearray()

    def feed(self, data: bytes) -> Iterator[object]:
        """The messages that are whole now; `BusBroken` for what cannot be one."""
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
            try:
                yield self._decode(body)
            except (msgspec.MsgspecError, UnicodeDecodeError) as why:
                raise BusBroken(str(why)) from None


# What the writer says of one transaction.
Word = TakenUp | Accepted | Rejected | Busy


class Handed:
    """What is known of a transaction that was handed over."""

    def __init__(self) -> None:
        self.taken_up = False
        self.answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def hear(self, word: Word) -> None:
        """Take in what the writer says of it."""
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
        """Nobody will answer any more: after the deadline, or because the writer has gone.

        `heard_all`: nothing that the writer has said by now is unread.
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
