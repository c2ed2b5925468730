"""Responses as values: the snapshot, the freshness, and the exception of a failure. No I/O."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Raw, Struct

from foreblock.backoff import Backoff
from foreblock.client.values import Hex
from foreblock.errors import (
    ErrorAnswer,
    ForeblockError,
    NoSuchBlock,
    NotAnAnswer,
    OutcomeUnknown,
    RefusedAnswer,
    Reverted,
    SyncTimedOut,
    Unreachable,
)
from foreblock.primitives import harmless, parse_data
from foreblock.types import revert_reason
from foreblock.upstream.http import HttpReply
from foreblock.upstream.json_rpc import OF_THE_EXCHANGE, RefusalKind, results, retry_after
from foreblock.upstream.rpc_client import MIN_COMMIT, shown_commit, shown_snapshot

MIN_PLACE: Final = "Foreblock-Min-Place"
SYNC_TIMED_OUT: Final = 4  # the code of EIP-7966
OUTCOME_UNKNOWN: Final = -32002  # of a foreblock whose sequencer did not reply

_HEAD: Final = re.compile(r"\b(latest|pending)=(0x[0-9a-f]+)(?:\.(\d+))?:(0x[0-9a-f]{64})")
_NOT_HERE: Final = b"is not here yet"


class HeadData(Struct, frozen=True):
    """A block of a snapshot; `index` is that of the newest flashblock of a block in progress."""

    number: int
    hash: Hex
    index: int | None = None


class SnapshotData(Struct, frozen=True):
    """The commit that a response of a foreblock is of; `pending` is None while it is `latest`."""

    commit: int
    latest: HeadData
    pending: HeadData | None


def snapshot_of(headers: Mapping[str, str]) -> SnapshotData | None:
    """The snapshot that a response names; None for other nodes."""
    text = shown_snapshot(headers)
    commit = shown_commit(text)
    heads = {
        name: HeadData(int(number, 16), Hex(parse_data(named)), int(index) if index else None)
        for name, number, index, named in _HEAD.findall(text)
    }
    if commit is None or "latest" not in heads:
        return None
    return SnapshotData(commit, heads["latest"], heads.get("pending"))


class Demand(Struct, frozen=True):
    """The oldest state that a response may have: a commit, a flashblock (block number, index)."""

    commit: int | None = None
    flashblock: tuple[int, int] | None = None
    wait: float | None = None  # seconds that the endpoint may wait; None for its own

    def headers(self, seen: int) -> dict[str, str]:
        """The headers of a request; `seen` is the highest commit of an earlier response."""
        end = "" if self.wait is None else f"; wait={round(1000 * self.wait)}"
        found = {}
        commit = max(seen, self.commit or 0)
        if commit:
            found[MIN_COMMIT] = f"{commit}{end}"
        if self.flashblock is not None:
            number, index = self.flashblock
            found[MIN_PLACE] = f"{number:#x}.{index}{end}"
        return found

    def is_met(self, snapshot: SnapshotData | None) -> bool:
        """Return True if the snapshot includes it; never for a node that names none."""
        if self.commit is None and self.flashblock is None:
            return True
        if snapshot is None or snapshot.commit < (self.commit or 0):
            return False
        if self.flashblock is None or snapshot.latest.number >= self.flashblock[0]:
            return True
        pending = snapshot.pending
        return pending is not None and (pending.number, pending.index or 0) >= self.flashblock

    def __str__(self) -> str:
        named = [] if self.commit is None else [f"commit {self.commit}"]
        if self.flashblock is not None:
            named.append(f"flashblock {self.flashblock[0]}.{self.flashblock[1]}")
        return " and ".join(named) or "an earlier response"


class Exchanged(Struct, frozen=True):
    """One exchange: the results of a body, or `refused` for the whole."""

    results: Sequence[Raw | RefusedAnswer] = ()
    refused: RefusedAnswer | None = None
    headers: Mapping[str, str] = {}
    body: bytes = b""

    @property
    def is_stale(self) -> bool:
        """True if a foreblock refused because it is behind."""
        return self.refused is not None and _NOT_HERE in self.body

    @property
    def text(self) -> str:
        return harmless(self.body.decode("utf-8", "replace"))

    def pause(self, waits: Backoff, wanted: Demand, wall: float) -> float | None:
        """Seconds after which to repeat a read; None if that does not help."""
        refusals = [self.refused] if self.refused is not None else self.results
        kinds = {each.kind for each in refusals if isinstance(each, RefusedAnswer)}
        if not kinds & OF_THE_EXCHANGE or (self.is_stale and wanted.wait is not None):
            return None
        named = retry_after(self.headers, wall)
        return waits.after() if named is None else named


def exchanged(reply: HttpReply, count: int) -> Exchanged:
    """Return the results of a response to `count` requests."""
    try:
        found = results(reply.status, reply.body, range(1, count + 1))
    except RefusedAnswer as refused:
        return Exchanged((), refused, reply.headers, reply.body)
    return Exchanged(list(found.values()), None, reply.headers)


def failure_of_read(url: str, refused: RefusedAnswer, block: str = "") -> ForeblockError:
    """The exception of a request that changes nothing; `block` is that of the request."""
    said = refused.said
    match refused.kind:
        case RefusalKind.UNREACHABLE:
            return Unreachable(url, refused.why)
        case RefusalKind.REVERTED if said is not None:
            output = parse_data(said.data) if said.data else b""
            reason = said.message.partition("execution reverted: ")[2]
            return Reverted(output, revert_reason(output) or reason)
        case RefusalKind.NO_BLOCK if block:
            return NoSuchBlock(url, block)
        case _ if said is not None:
            return said
        case RefusalKind.NOT_JSON | RefusalKind.HTML | RefusalKind.NOT_AN_ANSWER:
            return NotAnAnswer(url, refused.why)
        case _:
            return refused


def failure_of_send(url: str, refused: RefusedAnswer) -> ForeblockError:
    """The exception of a transaction that was sent.

    It is `OutcomeUnknown` if the endpoint may have accepted the transaction.
    """
    match refused.said:
        case ErrorAnswer(code=code, data=data) if code == SYNC_TIMED_OUT and data:
            return SyncTimedOut(parse_data(data), 0)  # the caller knows the time
        case ErrorAnswer(code=code) if code == OUTCOME_UNKNOWN:
            return OutcomeUnknown()
        case ErrorAnswer():
            return failure_of_read(url, refused)
        case _ if refused.kind in (RefusalKind.RATE_LIMITED, RefusalKind.FORBIDDEN):
            return refused  # before it was executed
        case _:
            return OutcomeUnknown()
