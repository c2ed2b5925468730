"""What an endpoint said of a transaction that was sent to it, by name. No I/O.

Only one thing counts as taken: its hash as the result, or the words by which nodes say that
they have it already. A refusal of the transaction is passed on in the endpoint's own words,
without secrets of its URL. What leaves open whether it was taken is `UNKNOWN`, and never a
refusal: the sender looks for the hash.
"""

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final

import msgspec

from foreblock.errors import RefusedAnswer
from foreblock.primitives import parse_hash
from foreblock.upstream.envelopes import results
from foreblock.upstream.refusals import RefusalKind

_KNOWN: Final = re.compile(
    r"already known|known transaction|already (exists|imported|in (the )?(mem)?pool)", re.IGNORECASE
)
_CODE: Final = re.compile(r"(-?[0-9]+): ")
_NO_METHOD: Final = ("-32601", "-32604")  # by words a type of transactions might be meant
# Refusals of a whole body that certainly leave the transaction out.
_TOO_MANY: Final = frozenset({RefusalKind.RATE_LIMITED.value})
_CLOSED: Final = frozenset({RefusalKind.FORBIDDEN.value, RefusalKind.TOO_LARGE.value})


class SentOutcome(Enum):
    """What became of a transaction."""

    TAKEN = "taken"
    REJECTED = "rejected"  # by a rule of the endpoint's pool, in its words
    TOO_MANY = "too many"  # the endpoint limits rates; it was not taken
    CLOSED = "closed"  # the endpoint takes no transactions from here
    UNKNOWN = "unknown"  # it may have been taken


@dataclass(frozen=True, slots=True)
class SentAnswer:
    """What became of a transaction, and why."""

    outcome: SentOutcome
    why: str = ""


def read_sent(status: int, body: bytes, transaction_hash: bytes) -> SentAnswer:
    """What an answer to `eth_sendRawTransaction` says of the transaction with this hash."""
    try:
        result = results(status, body, [1])[1]
    except RefusedAnswer as refused:
        return _of_whole(refused)
    if isinstance(result, RefusedAnswer):
        return _of_error(result)
    try:
        found = parse_hash(msgspec.json.decode(result))
    except (ValueError, msgspec.MsgspecError):
        return SentAnswer(SentOutcome.UNKNOWN, "the answer is no hash")
    if found != transaction_hash:
        return SentAnswer(SentOutcome.UNKNOWN, "the answer is the hash of another transaction")
    return SentAnswer(SentOutcome.TAKEN)


def _of_whole(refused: RefusedAnswer) -> SentAnswer:
    """A refusal without regard to the transaction, or something that is no answer."""
    if refused.kind in _TOO_MANY:
        return SentAnswer(SentOutcome.TOO_MANY, refused.why)
    if refused.kind in _CLOSED:
        return SentAnswer(SentOutcome.CLOSED, str(refused))
    return SentAnswer(SentOutcome.UNKNOWN, str(refused))


def _of_error(refused: RefusedAnswer) -> SentAnswer:
    """An error in place of the hash: the endpoint has looked at the request."""
    if refused.kind in _TOO_MANY:
        return SentAnswer(SentOutcome.TOO_MANY, refused.why)
    code = _CODE.match(refused.why)
    if code is not None and code[1] in _NO_METHOD:
        return SentAnswer(SentOutcome.CLOSED, str(refused))
    why = _CODE.sub("", refused.why, count=1)
    if _KNOWN.search(why):
        return SentAnswer(SentOutcome.TAKEN)
    return SentAnswer(SentOutcome.REJECTED, why)
