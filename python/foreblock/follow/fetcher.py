"""Fetch wanted state from several upstreams: gathered, each key once, by the fastest that can.

Wants of one purpose that come within a few milliseconds go out together. A key that is on its way
is not asked for again: who wants it waits for the same flight, and lends it its urgency. A flight
asks the first upstream that may be asked; if that has not answered after the time that 95 of 100
of its answers take, the next one is asked beside it, and the first to answer wins.

What is found is a claim, for the engine to prove or for the operator to trust.
"""

import asyncio
import math
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from foreblock.clock import Clock
from foreblock.errors import NoUpstream, RefusedAnswer, UnitsSpent
from foreblock.follow.fetch_job import AttemptOutcome, FetchJob, attempt
from foreblock.follow.fetch_result import FetchResult
from foreblock.follow.requests import BlockAt
from foreblock.follow.state_plan import FIRST_SLOTS, IMPLEMENTATION, with_first_slots
from foreblock.follow.state_upstream import StateUpstream
from foreblock.ledger.storage.state_keys import NO_ADDRESS, StateKeys
from foreblock.upstream.budget import Purpose, Urgency
from foreblock.upstream.endpoint import BUDGET_SPENT

MOST_KEYS: Final = 20_000  # as many as a run may want; who comes later takes the next
LARGE: Final = 256  # keys of one want; one with more flies alone, and nobody has to wait for it


class InFlightFetch:
    """Keys that are gathered, or on their way, and those who wait for them."""

    def __init__(self, epoch: int, errand: FetchJob) -> None:
        self.epoch: Final = epoch
        self.errand = errand
        self.has_left = False
        self.landed: Final[asyncio.Future[AttemptOutcome]] = (
            asyncio.get_running_loop().create_future()
        )
        self._gathered: Final = [errand.wanted]
        self._keys = len(errand.wanted)

    def has_room(self, errand: FetchJob) -> bool:
        """Return True if the keys of an errand can be taken along."""
        largest = max(len(self._gathered[0]), len(errand.wanted)) if self._gathered else 0
        return not self.has_left and largest <= LARGE and self._keys < MOST_KEYS

    def board(self, errand: FetchJob) -> None:
        """Take more keys along while it has room, or lend urgency to those that are out."""
        if not self.has_left:
            self._gathered.append(errand.wanted)
            self._keys += len(errand.wanted)
        self.errand.urgency.raise_to(errand.urgency.purpose)
        self.errand = self.errand._replace(until=max(self.errand.until, errand.until))

    def leave(self) -> None:
        """Take no more keys."""
        self.has_left = True
        if len(self._gathered) > 1:
            self.errand = self.errand._replace(wanted=StateKeys.union(self._gathered))
        self._gathered.clear()


ROUNDS: Final = 2  # in which every upstream is asked, for one flight
ROUNDS_IN_WEATHER: Final = 6  # the same where answers were damaged or did not come
MOST_ROUNDS: Final = 16  # where some rest meanwhile
SLICE: Final = 1024  # keys of one want that are asked for at a time; what was found is kept
BETWEEN_ROUNDS: Final = 0.05  # seconds
MOST_HOMES: Final = 65_536  # codes whose account is remembered
_MOST_CONTRACTS: Final = 65_536  # whose first slots were fetched


@dataclass(frozen=True, slots=True)
class FetchOptions:
    """How state is fetched; times in seconds."""

    proven: bool = True  # only what can be proven is of use
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
        self._flights: Final[list[InFlightFetch]] = []
        self._tasks: Final[set[asyncio.Task[None]]] = set()
        self._homes: Final[OrderedDict[bytes, bytes]] = OrderedDict()  # accounts by code hash
        self._contracts: Final[OrderedDict[bytes, None]] = OrderedDict()
        self._epoch = 0

    async def fetch(
        self,
        wanted: StateKeys,
        places: Sequence[BlockAt],
        purpose: Purpose,
        seconds: float,
        epoch: int = 0,
    ) -> FetchResult:
        """What was found of these keys within some seconds, all of it or a part.

        `places` are blocks at which every key has the value that is wanted, the best first.
        Raises `UnitsSpent` or `NoUpstream` if nothing was found.
        """
        if epoch != self._epoch:
            self._epoch = epoch
            self._contracts.clear()
        until = self._now + seconds
        found, why, given_up = FetchResult(), "", StateKeys()
        most = len(wanted) if purpose is Purpose.FLASHBLOCK else SLICE
        while (left := found.missing(wanted).without(given_up)) and self._now < until:
            part = left.first(most)
            errand = FetchJob(
                self._placed(part), tuple(places), Urgency(purpose), until, self._options.proven
            )
            flights = self._board(errand, epoch)
            waits = [each.landed for each in flights]
            await asyncio.wait(waits, timeout=until - self._now)
            for landed in waits:
                if landed.done() and not landed.cancelled():
                    found.merge(landed.result().found.part(errand.wanted, FIRST_SLOTS))
                    why = landed.result().why or why
            is_own = len(flights) == 1 and flights[0].errand.urgency is errand.urgency
            if is_own and found.missing(part) == part:
                given_up = given_up.also(part)
        if wanted and not found:
            raise self._failure(why, purpose, seconds)
        return found

    async def probe(self) -> list[RefusedAnswer]:
        """Find out at once what all upstreams can do; returns why some do not say it."""
        probes = (upstream.probe() for upstream in self.upstreams)
        said = await asyncio.gather(*probes, return_exceptions=True)
        for each in said:
            if isinstance(each, BaseException) and not isinstance(each, RefusedAnswer):
                raise each
        return [each for each in said if isinstance(each, RefusedAnswer)]

    @property
    def proves_tip_only(self) -> bool:
        """Whether all that prove prove the latest block only, as far as was seen."""
        known = [each.ways for each in self.upstreams if each.capabilities is not None]
        proving = [each for each in known if each.proofs]
        return bool(proving) and all(each.tip_proofs for each in proving)

    def proves_tip(self, source: str) -> bool:
        """Return True if this upstream proves the latest block only."""
        return any(each.shown == source and each.ways.tip_proofs for each in self.upstreams)

    def report_bad_data(self, source: str, why: str) -> None:
        """The engine has checked something that this upstream said, and it is not true.

        It is not asked for a while: for a moment only if there is no other.
        """
        now = self._now
        for upstream in self.upstreams:
            if upstream.shown == source:
                others = [each for each in self.upstreams if each is not upstream]
                is_only = all(each.circuit.wait(now) > 0 for each in others)
                upstream.report_bad_data(why, is_only=is_only)

    def close(self) -> None:
        """Stop what is on its way, and close the upstreams."""
        for task in self._tasks:
            task.cancel()
        for upstream in self.upstreams:
            upstream.close()

    @property
    def _now(self) -> float:
        return self._clock.monotonic_ns() / 1e9

    def _placed(self, wanted: StateKeys) -> StateKeys:
        """The same, with accounts for codes where one is known, and first slots of contracts."""
        homes = {
            code: home or self._homes.get(code, NO_ADDRESS) for code, home in wanted.codes.items()
        }
        placed = replace(wanted, codes=homes)
        if not self._options.first_slots:
            return placed
        return with_first_slots(placed, self._contracts.keys())

    def _board(self, errand: FetchJob, epoch: int) -> list[InFlightFetch]:
        """The flights that bring these keys: those that are out, and one for what is left."""
        boarded, left = [], errand.wanted
        for flight in self._flights:
            if flight.epoch != epoch or not flight.has_left:
                continue
            rest = left.without(flight.errand.wanted)
            if len(rest) < len(left):
                flight.board(errand)
                boarded.append(flight)
                left = rest
        if left:
            boarded.append(self._gather(errand._replace(wanted=left), epoch))
        return boarded

    def _gather(self, errand: FetchJob, epoch: int) -> InFlightFetch:
        for flight in self._flights:
            is_same = flight.epoch == epoch and flight.errand.places == errand.places
            # What is urgent does not wait until all is there that somebody else wants.
            is_same = is_same and flight.errand.urgency.purpose == errand.urgency.purpose
            if is_same and flight.has_room(errand):
                flight.board(errand)
                return flight
        flight = InFlightFetch(epoch, errand)
        self._flights.append(flight)
        task = asyncio.get_running_loop().create_task(self._fly(flight))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return flight

    async def _fly(self, flight: InFlightFetch) -> None:
        try:
            await asyncio.sleep(self._options.gather)
            flight.leave()
            outcome = await self._settle(flight)
            self._remember(outcome.found)
            if not flight.landed.done():
                flight.landed.set_result(outcome)
        finally:
            self._flights.remove(flight)
            flight.landed.cancel()

    async def _settle(self, flight: InFlightFetch) -> AttemptOutcome:
        """Ask upstreams until everything is found, all were asked, or the time is over."""
        found, why = FetchResult(), ""
        for number in range(1, MOST_ROUNDS + 1):
            told, may_change = await self._ask_all(flight, found)
            why = told or why
            if not found.missing(flight.errand.wanted):
                break
            wait = min(each.wait(flight.errand.urgency.purpose) for each in self.upstreams)
            if wait == 0.0 and number >= (ROUNDS_IN_WEATHER if may_change else ROUNDS):
                break  # all may be asked, and none can say it
            pause = max(wait, BETWEEN_ROUNDS)
            if self._now + pause >= flight.errand.until:
                break
            await asyncio.sleep(pause)
        return AttemptOutcome(found, why)

    async def _ask_all(self, flight: InFlightFetch, found: FetchResult) -> tuple[str, bool]:
        """One round: add to `found`; returns the last reason why something is missing.

        Also whether somebody may say more if asked again.
        """
        untried, why, may_change = list(self.upstreams), "", False
        running: dict[asyncio.Task[AttemptOutcome], StateUpstream] = {}
        try:
            while untried or running:
                self._start(flight, untried, running, found)
                done, _ = await asyncio.wait(
                    running,
                    timeout=self._patience(flight, untried, running),
                    return_when=asyncio.FIRST_COMPLETED,
                )
                for task in done:
                    del running[task]
                    found.merge(task.result().found)
                    why = task.result().why or why
                    may_change = may_change or task.result().may_change
                if not found.missing(flight.errand.wanted) or self._now >= flight.errand.until:
                    break
        finally:
            for task in running:
                task.cancel()
        return why, may_change

    def _start(
        self,
        flight: InFlightFetch,
        untried: list[StateUpstream],
        running: dict[asyncio.Task[AttemptOutcome], StateUpstream],
        found: FetchResult,
    ) -> None:
        """Ask the best of the upstreams that were not asked in this round."""
        if not untried:
            return
        purpose = flight.errand.urgency.purpose
        best = min(untried, key=lambda each: each.wait(purpose))
        untried.remove(best)
        errand = flight.errand._replace(wanted=found.missing(flight.errand.wanted))
        task = asyncio.get_running_loop().create_task(attempt(best, errand))
        running[task] = best

    def _patience(
        self,
        flight: InFlightFetch,
        untried: Sequence[StateUpstream],
        running: dict[asyncio.Task[AttemptOutcome], StateUpstream],
    ) -> float:
        """Seconds until the next upstream is asked beside those that are."""
        left = max(0.0, flight.errand.until - self._now)
        if not untried:
            return left
        return min(left, *(each.durations.hedge_after for each in running.values()))

    def _remember(self, found: FetchResult) -> None:
        """Keep which account has which code, and which contracts had their first slots."""
        for address, account in found.accounts.items():
            self._homes[account.code_hash] = address
        for address, slots in found.slots.items():
            if IMPLEMENTATION in slots:
                self._contracts[address] = None
        for kept, most in ((self._homes, MOST_HOMES), (self._contracts, _MOST_CONTRACTS)):
            while len(kept) > most:
                kept.popitem(last=False)

    def _failure(self, why: str, purpose: Purpose, seconds: float) -> UnitsSpent | NoUpstream:
        now = self._now
        waits = [max(each.circuit.wait(now), each.budget.paused(now)) for each in self.upstreams]
        after = math.ceil(min(waits, default=0.0)) or 1
        # What waited for units until the time was over has not said why.
        is_waiting = not why and all(each.budget.wait(1, purpose, now) for each in self.upstreams)
        if is_waiting or BUDGET_SPENT in why:
            return UnitsSpent(after)
        return NoUpstream(why or f"nothing in {seconds:g} s", after)
