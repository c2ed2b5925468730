"""Forward raw transactions of a network that is sequenced elsewhere, to one endpoint.

Workers submit as to a sequencer of our own, so `eth_sendRawTransaction` and its variant that waits
for the receipt work alike. A worker is notified before the transaction leaves this machine; from
then on, a transaction that the endpoint does not clearly refuse has an unknown outcome and gets no
response: the worker reports that after its deadline. Nothing is sent twice deliberately. The URL
appears in no response and no log: it may hold secrets.

Nodes have no common codes for the outcome; `read_sent` reads it from code and words. Workers
forward transactions as they are in blocks. Blobs are not part of blocks, so blob transactions are
refused.
"""

import asyncio
import re
from enum import Enum
from typing import Final, Protocol

import msgspec
import structlog
from msgspec import Struct

from foreblock.bus.messages import BusRequest
from foreblock.clock import Clock, SystemClock
from foreblock.errors import RefusedAnswer, RejectedTransaction, SequencerBusy
from foreblock.ledger.rules.transaction_rules import BLOB
from foreblock.primitives import format_data, harmless, parse_hash
from foreblock.secret_urls import redact_urls
from foreblock.types import keccak256
from foreblock.upstream.http import Connections, HttpReply
from foreblock.upstream.json_rpc import RefusalKind, body_of, results

log = structlog.get_logger()

_KNOWN: Final = re.compile(
    r"already known|known transaction|already (exists|imported|in (the )?(mem)?pool)", re.IGNORECASE
)
_CODE: Final = re.compile(r"(-?[0-9]+): ")
_NO_METHOD: Final = ("-32601", "-32604")  # by words a type of transactions might be meant
# Refusals of a whole body that certainly leave the transaction out.
_TOO_MANY: Final = frozenset({RefusalKind.RATE_LIMITED.value})
_CLOSED: Final = frozenset({RefusalKind.FORBIDDEN.value, RefusalKind.TOO_LARGE.value})


class SentOutcome(Enum):
    """The outcome of a transaction."""

    TAKEN = "taken"
    REJECTED = "rejected"  # by a rule of the endpoint's pool, in its words
    TOO_MANY = "too many"  # the endpoint limits rates; it was not taken
    CLOSED = "closed"  # the endpoint takes no transactions from here
    UNKNOWN = "unknown"  # it may have been taken


class SentAnswer(Struct, frozen=True):
    """The outcome of a transaction, and why."""

    outcome: SentOutcome
    why: str = ""


def read_sent(status: int, body: bytes, transaction_hash: bytes) -> SentAnswer:
    """Return the outcome by a response to `eth_sendRawTransaction`."""
    try:
        result = results(status, body, [1])[1]
    except RefusedAnswer as refused:
        return _of_whole(refused)
    if isinstance(result, RefusedAnswer):
        return _of_error(result)
    try:
        found = parse_hash(msgspec.json.decode(result))
    except (ValueError, msgspec.MsgspecError):
        return SentAnswer(SentOutcome.UNKNOWN, "the response is not a hash")
    if found != transaction_hash:
        return SentAnswer(SentOutcome.UNKNOWN, "the response is the hash of another transaction")
    return SentAnswer(SentOutcome.TAKEN)


def _of_whole(refused: RefusedAnswer) -> SentAnswer:
    """A refusal independent of the transaction, or an invalid response."""
    if refused.kind in _TOO_MANY:
        return SentAnswer(SentOutcome.TOO_MANY, refused.why)
    if refused.kind in _CLOSED:
        return SentAnswer(SentOutcome.CLOSED, str(refused))
    return SentAnswer(SentOutcome.UNKNOWN, str(refused))


def _of_error(refused: RefusedAnswer) -> SentAnswer:
    """An error in place of the hash: the endpoint has processed the request."""
    if refused.kind in _TOO_MANY:
        return SentAnswer(SentOutcome.TOO_MANY, refused.why)
    code = _CODE.match(refused.why)
    if code is not None and code[1] in _NO_METHOD:
        return SentAnswer(SentOutcome.CLOSED, str(refused))
    why = _CODE.sub("", refused.why, count=1)
    if _KNOWN.search(why):
        return SentAnswer(SentOutcome.TAKEN)
    return SentAnswer(SentOutcome.REJECTED, why)


MOST: Final = 64  # in flight at a time
SECONDS: Final = 2.5  # for a response; workers wait for three
BLOBS_STAY: Final = "transactions with blobs are not forwarded: send it to a node of the chain"


class Posting(Protocol):
    """Posts bodies to the endpoint."""

    async def post(self, body: bytes, seconds: float) -> HttpReply:
        """Post a body; raises `RefusedAnswer` if there is no response."""

    def hide(self, text: str) -> str:
        """The text without the secrets of the URL."""

    def close(self) -> None:
        """Close all connections."""


class TransactionForwarding:
    """Forwards transactions to one endpoint; `close` it."""

    def __init__(
        self,
        network: str,
        url: str,
        clock: Clock | None = None,
        connections: Posting | None = None,
    ) -> None:
        """Raises `InvalidArgument` for a bad URL."""
        self._network: Final = network
        self._shown: Final = redact_urls(url)
        self._clock: Final = clock or SystemClock()
        self._connections: Final = connections or Connections(url)
        self._tasks: Final[set[asyncio.Task[None]]] = set()

    def submit(self, request: BusRequest) -> None:
        """Forward a transaction, on the loop; the reply goes to its worker."""
        if request.submission.raw[0] == BLOB:
            request.fail(RejectedTransaction(BLOBS_STAY))
        elif len(self._tasks) >= MOST:
            request.fail(SequencerBusy())
        elif request.is_late(self._clock.monotonic_ns()) or not request.start():
            request.refuse()
        else:
            task = asyncio.create_task(self._forward(request))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Cancel transactions in flight: their outcome is unknown."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._connections.close()

    async def _forward(self, request: BusRequest) -> None:
        raw = request.submission.raw
        answer = await self._send(raw)
        match answer.outcome:
            case SentOutcome.TAKEN:
                request.finish()
            case SentOutcome.REJECTED:
                request.fail(RejectedTransaction(answer.why))
            case SentOutcome.TOO_MANY:
                request.fail(SequencerBusy())
            case SentOutcome.CLOSED:
                request.refuse()
            case SentOutcome.UNKNOWN:
                pass  # the worker reports that after its deadline
        if answer.outcome in (SentOutcome.CLOSED, SentOutcome.UNKNOWN):
            log.warning(
                "transaction_not_forwarded",
                network=self._network,
                endpoint=self._shown,
                transaction=format_data(keccak256(raw)),
                outcome=answer.outcome.value,
                why=answer.why,
            )

    async def _send(self, raw: bytes) -> SentAnswer:
        body = body_of([("eth_sendRawTransaction", [format_data(raw)])])
        try:
            reply = await self._connections.post(body, SECONDS)
        except RefusedAnswer as refused:
            return SentAnswer(SentOutcome.UNKNOWN, harmless(self._connections.hide(str(refused))))
        answer = read_sent(reply.status, reply.body, keccak256(raw))
        return SentAnswer(answer.outcome, harmless(self._connections.hide(answer.why)))
