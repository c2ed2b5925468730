"""Fetch state from several upstreams: each key once, from the fastest that can serve it.

Requests of one purpose that arrive within a few milliseconds are sent together. A key in flight is
not requested again: the second caller joins the fetch, and raises its urgency to its own. A fetch
uses the best available upstream. If that has not responded after its 95th percentile, the next
upstream is tried beside it, and the first response wins.

The result is a claim, for the engine to prove or for the operator to trust.
"""

import asyncio
import math
from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from foreblock.clock import Clock
from foreblock.errors import NoUpstream, RefusedAnswer, UnitsSpent
from foreblock.follow.fetch_job import AttemptOutcome, FetchJob, attempt
from foreblock.follow.fetch_result import FetchResult
from foreblock.follow.requests import BlockAt
from foreblock.follow.state_plan import FIRST_SLOTS, IMPLEMENTATION, with_first_slots
from foreblock.follow.state_upstream import StateUpstream
from foreblock.ledger.storage.state_keys import NO_ADDRESS, StateKeys
from foreblock.lru_cache import LruCache
from foreblock.upstream.budget import Purpose, Urgency
from foreblock.upstream.endpoint import BUDGET_SPENT

MOST_KEYS: Final = 20_000  # the most of one run; later ones join the next
LARGE: Final = 256  # keys of one want; a larger one is sent alone, so that no other waits for it


class InFlightFetch:
    """Keys that are gathered or in flight, for all callers that wait for them."""

    def __init__(self, epoch: int, job: FetchJob) -> None:
        self.epoch: Final = epoch
        self.job = job
        self.is_sent = False
        self.done: Final[asyncio.Future[AttemptOutcome]] = (
            asyncio.get_running_loop().create_future()
        )
        self._gathered: Final = [job.wanted]
        self._keys = len(job.wanted)

    def accepts(self, job: FetchJob) -> bool:
        """Return True if the keys of a job can be added."""
        largest = max(len(self._gathered[0]), len(job.wanted)) if self._gathered else 0
        return not self.is_sent and largest <= LARGE and self._keys < MOST_KEYS

    def join(self, job: FetchJob) -> None:
        """Add keys until it is sent; then only raise its urgency and extend its deadline."""
        if not self.is_sent:
            self._gathered.append(job.wanted)
            self._keys += len(job.wanted)
        self.job.urgency.raise_to(job.urgency.purpose)
        self.job = self.job._replace(until=max(self.job.until, job.until))

    def send(self) -> None:
        """Accept no more keys."""
        self.is_sent = True
        if len(self._gathered) > 1:
            self.job = self.job._replace(wanted=StateKeys.union(self._gathered))
        self._gathered.clear()


ROUNDS: Final = 2  # of one fetch, each over all upstreams
ROUNDS_AFTER_FAILURES: Final = 6  # if responses were damaged or did not arrive
MOST_ROUNDS: Final = 16  # if circuits are open meanwhile
SLICE: Final = 1024  # keys that are requested at a time; results are kept
BETWEEN_ROUNDS: Final = 0.05  # seconds
MOST_HOMES: Final = 65_536  # codes whose account is remembered
_MOST_CONTRACTS: Final = 65_536  # whose first slots were fetched


class FetchOptions(Struct, frozen=True):
    """How state is fetched; times in seconds."""

    proven: bool = True  # only provable values are of use
    gather: float = 0.003
    first_slots: bool = True  # of new contracts, with their accounts


class Fetcher:
    """Fetches from these upstreams, the best first; `close` it."""

    def __init__(
        self, upstreams: Sequence[StateUpstream], clock: Clock, options: FetchOptions | None = None
    ) -> None:
        self.upstreams: Final = tuple(upstreams)
        self._clock: Final = clock
        self._options: Final = options or FetchOptions()
        self._in_flight: Final[list[InFlightFetch]] = []
        self.tasks: Final[set[asyncio.Task[None]]] = set()
        self._homes: Final = LruCache[bytes, bytes](MOST_HOMES)  # accounts by code hash
        self._contracts: Final = LruCache[bytes, None](_MOST_CONTRACTS)
        self._epoch = 0

    async def fetch(
        self,
        wanted: StateKeys,
        at_blocks: Sequence[BlockAt],
        purpose: Purpose,
        seconds: float,
        epoch: int = 0,
    ) -> FetchResult:
        """Fetch keys within some seconds; return the values that were found.

        `at_blocks` are blocks at which every key has the requested value, the best first. Raises
        `UnitsSpent` or `NoUpstream` if nothing was found.
        """
        if epoch != self._epoch:
            self._epoch = epoch
            self._contracts.clear()
        until = self._now + seconds
        found, why, given_up = FetchResult(), "", StateKeys()
        most = len(wanted) if purpose is Purpose.FLASHBLOCK else SLICE
        while (left := found.missing(wanted).without(given_up)) and self._now < until:
            part = left.first(most)
            job = FetchJob(
                self._completed(part),
                tuple(at_blocks),
                Urgency(purpose),
                until,
                self._options.proven,
            )
            fetches = self._join(job, epoch)
            waits = [each.done for each in fetches]
            await asyncio.wait(waits, timeout=until - self._now)
            for done in waits:
                if done.done() and not done.cancelled():
                    found.merge(done.result().found.part(job.wanted, FIRST_SLOTS))
                    why = done.result().why or why
            is_own = len(fetches) == 1 and fetches[0].job.urgency is job.urgency
            if is_own and found.missing(part) == part:
                given_up = given_up.also(part)
        if wanted and not found:
            raise self._failure(why, purpose, seconds)
        return found

    async def probe(self) -> list[RefusedAnswer]:
        """Probe all upstreams at once; return why some did not respond."""
        probes = (upstream.probe() for upstream in self.upstreams)
        said = await asyncio.gather(*probes, return_exceptions=True)
        for each in said:
            if isinstance(each, BaseException) and not isinstance(each, RefusedAnswer):
                raise each
        return [each for each in said if isinstance(each, RefusedAnswer)]

    @property
    def proves_tip_only(self) -> bool:
        """True if every known upstream with proofs proves the latest block only."""
        known = [each.limits for each in self.upstreams if each.capabilities is not None]
        proving = [each for each in known if each.proofs]
        return bool(proving) and all(each.tip_proofs for each in proving)

    def proves_tip(self, source: str) -> bool:
        """Return True if this upstream proves the latest block only."""
        return any(each.shown == source and each.limits.tip_proofs for each in self.upstreams)

    def report_bad_data(self, source: str, why: str) -> None:
        """Report a response of this upstream that the engine has refuted.

        The upstream is not used for a while, or for a moment if there is no other.
        """
        now = self._now
        for upstream in self.upstreams:
            if upstream.shown == source:
                others = [each for each in self.upstreams if each is not upstream]
                is_only = all(each.circuit.wait(now) > 0 for each in others)
                upstream.report_bad_data(why, is_only=is_only)

    def close(self) -> None:
        """Cancel requests, and close the upstreams."""
        for task in self.tasks:
            task.cancel()
        for upstream in self.upstreams:
            upstream.close()

    @property
    def _now(self) -> float:
        return self._clock.monotonic_ns() / 1e9

    def _completed(self, wanted: StateKeys) -> StateKeys:
        """Add known accounts of codes, and the first slots of new contracts."""
        homes = {
            code: home or self._homes.get(code) or NO_ADDRESS for code, home in wanted.codes.items()
        }
        placed = replace(wanted, codes=homes)
        if not self._options.first_slots:
            return placed
        return with_first_slots(placed, self._contracts.keys())

    def _join(self, job: FetchJob, epoch: int) -> list[InFlightFetch]:
        """The fetches of these keys: those in flight, and one for the rest."""
        joined, left = [], job.wanted
        for fetch in self._in_flight:
            if fetch.epoch != epoch or not fetch.is_sent:
                continue
            rest = left.without(fetch.job.wanted)
            if len(rest) < len(left):
                fetch.join(job)
                joined.append(fetch)
                left = rest
        if left:
            joined.append(self._gather(job._replace(wanted=left), epoch))
        return joined

    def _gather(self, job: FetchJob, epoch: int) -> InFlightFetch:
        for fetch in self._in_flight:
            is_same = fetch.epoch == epoch and fetch.job.at_blocks == job.at_blocks
            # An urgent fetch does not wait for keys of other callers.
            is_same = is_same and fetch.job.urgency.purpose == job.urgency.purpose
            if is_same and fetch.accepts(job):
                fetch.join(job)
                return fetch
        fetch = InFlightFetch(epoch, job)
        self._in_flight.append(fetch)
        task = asyncio.get_running_loop().create_task(self._run(fetch))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return fetch

    async def _run(self, fetch: InFlightFetch) -> None:
        try:
            await asyncio.sleep(self._options.gather)
            fetch.send()
            outcome = await self._query_upstreams(fetch)
            self._remember(outcome.found)
            if not fetch.done.done():
                fetch.done.set_result(outcome)
        finally:
            self._in_flight.remove(fetch)
            fetch.done.cancel()

    async def _query_upstreams(self, fetch: InFlightFetch) -> AttemptOutcome:
        """Query upstreams until everything is found, all were tried, or the time is over."""
        found, why = FetchResult(), ""
        for number in range(1, MOST_ROUNDS + 1):
            reason, may_change = await self._ask_all(fetch, found)
            why = reason or why
            if not found.missing(fetch.job.wanted):
                break
            wait = min(each.wait(fetch.job.urgency.purpose) for each in self.upstreams)
            if wait == 0.0 and number >= (ROUNDS_AFTER_FAILURES if may_change else ROUNDS):
                break  # no upstream has it
            pause = max(wait, BETWEEN_ROUNDS)
            if self._now + pause >= fetch.job.until:
                break
            await asyncio.sleep(pause)
        return AttemptOutcome(found, why)

    async def _ask_all(self, fetch: InFlightFetch, found: FetchResult) -> tuple[str, bool]:
        """One round: add to `found`; returns the last reason why something is missing.

        Also whether a retry may find more.
        """
        untried, why, may_change = list(self.upstreams), "", False
        running: dict[asyncio.Task[AttemptOutcome], StateUpstream] = {}
        try:
            while untried or running:
                self._start(fetch, untried, running, found)
                done, _ = await asyncio.wait(
                    running,
                    timeout=self._patience(fetch, untried, running),
                    return_when=asyncio.FIRST_COMPLETED,
                )
                for task in done:
                    del running[task]
                    found.merge(task.result().found)
                    why = task.result().why or why
                    may_change = may_change or task.result().may_change
                if not found.missing(fetch.job.wanted) or self._now >= fetch.job.until:
                    break
        finally:
            for task in running:
                task.cancel()
        return why, may_change

    def _start(
        self,
        fetch: InFlightFetch,
        untried: list[StateUpstream],
        running: dict[asyncio.Task[AttemptOutcome], StateUpstream],
        found: FetchResult,
    ) -> None:
        """Query the best upstream that was not tried in this round."""
        if not untried:
            return
        purpose = fetch.job.urgency.purpose
        best = min(untried, key=lambda each: each.wait(purpose))
        untried.remove(best)
        job = fetch.job._replace(wanted=found.missing(fetch.job.wanted))
        task = asyncio.get_running_loop().create_task(attempt(best, job))
        running[task] = best

    def _patience(
        self,
        fetch: InFlightFetch,
        untried: Sequence[StateUpstream],
        running: dict[asyncio.Task[AttemptOutcome], StateUpstream],
    ) -> float:
        """Seconds until another upstream is queried in parallel."""
        left = max(0.0, fetch.job.until - self._now)
        if not untried:
            return left
        return min(left, *(each.durations.hedge_after for each in running.values()))

    def _remember(self, found: FetchResult) -> None:
        """Remember accounts by code, and contracts whose first slots were fetched."""
        for address, account in found.accounts.items():
            self._homes.keep(account.code_hash, address)
        for address, slots in found.slots.items():
            if IMPLEMENTATION in slots:
                self._contracts.keep(address, None)

    def _failure(self, why: str, purpose: Purpose, seconds: float) -> UnitsSpent | NoUpstream:
        now = self._now
        waits = [max(each.circuit.wait(now), each.budget.paused(now)) for each in self.upstreams]
        after = math.ceil(min(waits, default=0.0)) or 1
        # A request that waited for units until the deadline has no reason.
        is_waiting = not why and all(each.budget.wait(1, purpose, now) for each in self.upstreams)
        if is_waiting or BUDGET_SPENT in why:
            return UnitsSpent(after)
        return NoUpstream(why or f"nothing in {seconds:g} s", after)
