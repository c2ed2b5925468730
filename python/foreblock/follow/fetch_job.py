"""Request the keys of one job from one upstream: plan, send, read, and degrade if it refuses.

The outcome has the upstream's claims, and why the rest is missing. Nothing is raised: another
upstream may have the rest.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from msgspec import Raw
from msgspec.structs import replace

from foreblock.errors import RefusedAnswer
from foreblock.follow.fetch_result import FetchResult
from foreblock.follow.requests import BlockAt, StateRequest
from foreblock.follow.responses import ResponseReader
from foreblock.follow.state_plan import RequestLimits, block_of, bodies, degrade, plan_state
from foreblock.follow.state_upstream import StateUpstream
from foreblock.ledger.storage.state_keys import StateKeys
from foreblock.upstream import http
from foreblock.upstream.budget import Purpose, Urgency, price
from foreblock.upstream.json_rpc import RefusalKind

TRIES: Final = 6  # at one upstream, each narrower than the one before
# Refusals that show that a kind of request does not work.
KIND_REFUSALS: Final = frozenset({RefusalKind.NO_METHOD, RefusalKind.NO_STATE})
# A request refused for these reasons will be refused again; others may be accidents.
LASTING: Final = frozenset(
    {
        RefusalKind.NO_METHOD,
        RefusalKind.NO_STATE,
        RefusalKind.NO_BLOCK,
        RefusalKind.TOO_LARGE,
        RefusalKind.REVERTED,
    }
)
AT_ONCE: Final = 2  # batches that a budget can pay in one second at least, so that it is used
_DEAREST: Final = price("eth_call")


class FetchJob(NamedTuple):
    """Keys to fetch, at one of these blocks, the best first.

    After `until`, in seconds of the monotonic clock, they are of no use.
    """

    wanted: StateKeys
    at_blocks: tuple[BlockAt, ...]
    urgency: Urgency
    until: float
    proven: bool


class AttemptOutcome(NamedTuple):
    """The claims of an upstream, and the last reason why something is missing, or ""."""

    found: FetchResult
    why: str
    may_change: bool = False  # whether a retry may find more


async def attempt(upstream: StateUpstream, job: FetchJob) -> AttemptOutcome:
    """Request all of it from one upstream."""
    found, why, back, apart, doubted, may_change = FetchResult(), "", 0, False, False, False
    try:
        await upstream.probe()
    except RefusedAnswer as failure:
        return AttemptOutcome(found, str(failure), may_change=True)
    upstream.restore()
    for _ in range(TRIES):
        left = found.missing(job.wanted)
        if not left:
            return AttemptOutcome(found, "")
        requests, refused = await _once(upstream, job, left, back, found, apart=apart)
        if refused:
            why = str(refused[0][1])
            may_change = any(refusal.kind not in LASTING for _, refusal in refused)
        elif not requests:
            return AttemptOutcome(found, why or "it cannot serve these keys", may_change)
        # If blocks below the tip are proven, a missing state is one of some keys only.
        of_keys = RefusalKind.NO_STATE if upstream.proves_behind else None
        kinds = [(each, refusal.kind) for each, refusal in refused if refusal.kind != of_keys]
        lasting = lasting_refusals(requests, kinds)
        following = degrade(upstream.limits, lasting, back, len(job.at_blocks))
        if following is None and len(kinds) < len(refused) and not apart:
            apart = True  # one missing key refuses all keys of its request
            continue
        if following is None and len(lasting) < len(kinds):
            continue
        if following is None:
            break
        limits, back = following
        if limits != upstream.limits and not doubted:
            doubted = True  # it could when it was probed: this may be temporary
        else:
            upstream.degrade(limits)
    return AttemptOutcome(found, why, may_change)


async def _once(
    upstream: StateUpstream,
    job: FetchJob,
    left: StateKeys,
    back: int,
    found: FetchResult,
    *,
    apart: bool,
) -> tuple[Sequence[StateRequest], list[tuple[StateRequest, RefusedAnswer]]]:
    """One plan: adds to `found`; returns the requests, and those that were refused.

    With `apart` each key has its own request, so a missing key refuses no other.
    """
    limits, at = _within_budget(upstream, job), job.at_blocks[back]
    parts = [left]
    if apart:
        limits = limits._replace(proof_slots=1)
        parts = [replace(left, slots={}), StateKeys(slots=left.slots)]
    plans = [plan_state(each, limits, at, proven=job.proven).requests for each in parts if each]
    requests = [each for plan in plans for each in plan]
    block = block_of(limits, at, proven=job.proven)
    reader = ResponseReader(upstream.shown)
    free = asyncio.Semaphore(_at_a_time(job))

    async def send(some: Sequence[StateRequest]) -> list[tuple[StateRequest, RefusedAnswer]]:
        async with free:
            return await _send(upstream, job, some, block, reader)

    refused = [
        each for some in await asyncio.gather(*map(send, bodies(requests, limits))) for each in some
    ]
    found.merge(reader.found)
    return requests, refused


def lasting_refusals(
    requests: Sequence[StateRequest], refused: Sequence[tuple[StateRequest, str]]
) -> list[tuple[StateRequest, str]]:
    """Return the refusals that are not accidents: a kind of request that worked once works."""
    all_of, failed = Counter(map(type, requests)), Counter(type(each) for each, _ in refused)
    return [
        (each, kind)
        for each, kind in refused
        if kind not in KIND_REFUSALS or failed[type(each)] == all_of[type(each)]
    ]


async def _send(
    upstream: StateUpstream,
    job: FetchJob,
    requests: Sequence[StateRequest],
    block: object,
    reader: ResponseReader,
) -> list[tuple[StateRequest, RefusedAnswer]]:
    """One body; returns the requests of it that were refused."""
    calls = [(each.method, each.params(block)) for each in requests]
    try:
        results = await upstream.ask(calls, job.urgency, job.until)
    except RefusedAnswer as why:
        return [(each, why) for each in requests]
    refused = []
    for number, each in enumerate(requests, start=1):
        result = results[number]
        try:
            if not isinstance(result, Raw):
                raise result
            reader.take(each, result)
        except RefusedAnswer as why:
            refused.append((each, why))
            upstream.refuse(why)
    return refused


def _at_a_time(job: FetchJob) -> int:
    """Bodies of one job that are out at a time, so that others find a connection."""
    is_urgent = job.urgency.purpose is Purpose.FLASHBLOCK
    return http.MOST if is_urgent else http.MOST // 2


def _within_budget(upstream: StateUpstream, job: FetchJob) -> RequestLimits:
    """Return the limits of the upstream, with batches that its budget can pay for."""
    affordable = int(upstream.budget.share(job.urgency.purpose) // (AT_ONCE * _DEAREST))
    return upstream.limits._replace(batch=max(1, min(upstream.limits.batch, affordable)))
