"""A transaction from a replica to the writer, and the response. No I/O.

`docs/design/log.md` has the layouts. The response contains the nonce, so that the replica has it
before its client gets the response; other replicas receive it as a hint.
"""

import struct
from typing import Final

from msgspec import Struct

from foreblock.errors import MalformedLogMessage, NewerLogFormat

SUBMISSION_FORMAT: Final = 1
SUBMISSION: Final = struct.Struct(">B20s")
ANSWER: Final = struct.Struct(">BBQ")
HINT: Final = struct.Struct(">20sQ")
# A transaction has at most 128 KiB, with blobs at most 1 MiB; longer ones are refused.
LONGEST_RAW: Final = 1 << 20
LONGEST_REASON: Final = 4096  # bytes


class ForwardedTransaction(Struct, frozen=True):
    """A transaction submitted by a replica, which has recovered its sender."""

    sender: bytes
    raw: bytes

    def encode(self) -> bytes:
        return SUBMISSION.pack(SUBMISSION_FORMAT, self.sender) + self.raw


class ForwardedAnswer(Struct, frozen=True):
    """The reply of the writer to a transaction; without a reason it is in the pool."""

    next_nonce: int
    rejected: str | None = None

    def encode(self) -> bytes:
        head = ANSWER.pack(SUBMISSION_FORMAT, self.rejected is not None, self.next_nonce)
        reason = (self.rejected or "").encode("utf-8", "replace")[:LONGEST_REASON]
        return head + reason


class NonceHint(Struct, frozen=True):
    """The next nonce after a sender's transactions in the pool."""

    sender: bytes
    nonce: int

    def encode(self) -> bytes:
        return HINT.pack(self.sender, self.nonce)


def decode_submission(data: bytes) -> ForwardedTransaction:
    """Raises `MalformedLogMessage` or `NewerLogFormat`."""
    what = "submission"
    _check(what, data, SUBMISSION.size)
    if len(data) > SUBMISSION.size + LONGEST_RAW:
        raise MalformedLogMessage(what, f"a transaction of {len(data) - SUBMISSION.size} bytes")
    _, sender = SUBMISSION.unpack_from(data)
    return ForwardedTransaction(sender, data[SUBMISSION.size :])


def decode_answer(data: bytes) -> ForwardedAnswer:
    """Raises `MalformedLogMessage` or `NewerLogFormat`."""
    what = "reply to a submission"
    _check(what, data, ANSWER.size)
    _, status, nonce = ANSWER.unpack_from(data)
    reason = data[ANSWER.size :]
    match status:
        case 0 if not reason:
            return ForwardedAnswer(nonce)
        case 0:
            raise MalformedLogMessage(what, "accepted, with a reason")
        case 1:
            return ForwardedAnswer(nonce, reason[:LONGEST_REASON].decode("utf-8", "replace"))
        case _:
            raise MalformedLogMessage(what, f"status {status}")


def decode_hint(data: bytes) -> NonceHint:
    """Raises `MalformedLogMessage`."""
    if len(data) != HINT.size:
        raise MalformedLogMessage("nonce hint", f"{len(data)} bytes, not {HINT.size}")
    return NonceHint(*HINT.unpack(data))


def _check(what: str, data: bytes, shortest: int) -> None:
    if not data:
        raise MalformedLogMessage(what, "it is empty")
    if data[0] > SUBMISSION_FORMAT:
        raise NewerLogFormat(f"format of a {what}", data[0], SUBMISSION_FORMAT)
    if data[0] < SUBMISSION_FORMAT:
        raise MalformedLogMessage(what, f"format {data[0]}")
    if len(data) < shortest:
        raise MalformedLogMessage(what, f"{len(data)} bytes, at least {shortest}")
