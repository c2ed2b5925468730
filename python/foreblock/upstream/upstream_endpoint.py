"""One upstream: what it can do, what may be asked of it, and how it has answered so far.

Requests wait for its budget, and are refused while its circuit is open. Every answer moves the
circuit, and a rate limit pauses the budget for as long as the upstream says. Abilities are
probed before the first use, and again some time after something has failed.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, cast

import structlog

from foreblock.clock import Clock
from foreblock.errors import RefusedAnswer
from foreblock.secret_urls import safe_url
from foreblock.upstream import circuit
from foreblock.upstream.budget import Purpose, UnitBudget, price
from foreblock.upstream.capabilities import Asking, Capabilities, Said, probing
from foreblock.upstream.circuit import LONGEST_OF_ONE, Circuit, Durations
from foreblock.upstream.connections import Connections, HttpReply
from foreblock.upstream.envelopes import Call, Results, body_of, results
from foreblock.upstream.refusals import HARMLESS, OF_THE_EXCHANGE, RefusalKind, refuse, retry_after
from foreblock.upstream.state_plan import EndpointWays
from foreblock.upstream.unit_urls import default_units, split_units
from foreblock.upstream.urgency import Urgency

log = structlog.get_logger()

_NOT_REACHED: Final = frozenset({RefusalKind.UNREACHABLE, RefusalKind.SERVER_FAILED})

BUDGET_SPENT: Final = "the budget is spent"
LONGEST_PAUSE: Final = 60.0  # seconds that a Retry-After can ask for
FIRST_PAUSE: Final = 0.5  # after a rate limit without one; it doubles
PROBE_AGAIN: Final = 600.0  # seconds, after something has failed
FIRST_NARROW: Final = 2.0  # seconds in which what it has refused is not tried; they double
UNTRUE_SECONDS: Final = 60.0  # until one that lied is asked again
ONLY_SECONDS: Final = 0.1  # the same where there is no other: what is untrue is refused anyway
WRONG_CHAIN_SECONDS: Final = 60.0  # until an endpoint of another chain is asked again
PROBE_SECONDS: Final = 10.0  # for one request of a probe
LEAST_PATIENCE, PATIENCE = 1.0, 8.0  # seconds; times what 95 of 100 answers take
LIKELY: Final = 3.0  # times what 95 of 100 answers take, in which nearly all come
PROBE_TRIES, REACH_TRIES = 8, 3  # of one request of a probe; where it was not reached
FIRST_WAIT, LONGEST_WAIT = 0.05, 0.5  # seconds between two of them
UNSURE_SECONDS: Final = 5.0  # until it is probed again, if it did not say what it can
SHORT_SECONDS: Final = 2.0  # that flashblocks wait for units until it is reported
SHORT_AGAIN: Final = 60.0  # seconds between two such warnings
TOO_SLOW: Final = 2.0  # times what 95 of 100 answers take


class UpstreamState(NamedTuple):
    """An upstream at one moment; times in seconds."""

    url: str  # without its secrets
    client: str  # empty until it is known
    can_prove: bool
    requests: int
    units: int
    refusals: Mapping[str, int]  # by kind
    latency: float | None  # the median
    rests_for: float  # because it failed
    paused_for: float  # because it asked for it
    short: str = ""  # what to do if its units do not suffice for flashblocks


class Upstream:
    """An endpoint that is asked for state; `close` it."""

    def __init__(
        self,
        url: str,
        clock: Clock,
        budget: UnitBudget | None = None,
        chain_id: int | None = None,
        *,
        is_only: bool = False,
    ) -> None:
        """An endpoint of another chain than `chain_id` is not used; `is_only` if there is no other.

        The query parameter `units` is the budget of this endpoint, and not sent to it.
        Raises `InvalidArgument` for a bad URL.
        """
        url, units = split_units(url)
        self._url: Final = url
        self.shown: Final = safe_url(url)
        self.budget: Final = budget or UnitBudget(units or default_units(url))
        self.circuit: Final = Circuit(LONGEST_OF_ONE if is_only else circuit.LONGEST_PAUSE)
        self.durations: Final = Durations()
        self.capabilities: Capabilities | None = None
        self.ways = EndpointWays()
        self._widen_at = 0.0
        self._narrow_for = FIRST_NARROW
        self.requests = 0
        self.units = 0
        self.refusals: Final[Counter[str]] = Counter()
        self._connections: Final = Connections(url, PROBE_SECONDS)
        self._clock: Final = clock
        self._limited = 0  # rate limits in a row
        self._warn_short_at = 0.0
        self._chain_id: Final = chain_id
        self._probed_at = 0.0
        self._has_failed = False  # since then
        self._is_unsure = False  # whether it can do something, as it did not say
        self._probing: Final = asyncio.Lock()

    def is_at(self, url: str) -> bool:
        """Whether this is the endpoint at a URL, whatever budget that names."""
        return split_units(url)[0] == self._url

    @property
    def now(self) -> float:
        """Seconds of the monotonic clock."""
        return self._clock.monotonic_ns() / 1e9

    @property
    def proves_behind(self) -> bool:
        """Whether it proves the state of blocks below its tip, as far as was seen."""
        depth = None if self.capabilities is None else self.capabilities.proof_depth
        return depth is not None and depth > 0

    def wait(self, purpose: Purpose) -> float:
        """Seconds until a request can go out."""
        return max(self.circuit.wait(self.now), self.budget.wait(1, purpose, self.now))

    @property
    def patience(self) -> float:
        """Seconds after which an answer will not come any more, and is better asked for again.

        Far longer than answers take, and longer after each that did not come.
        """
        usual = max(LEAST_PATIENCE, PATIENCE * self.durations.hedge_after)
        return usual * 2.0 ** min(self.circuit.failures, 10)

    def _longest_wait(self, left: float) -> float:
        """Seconds for one answer, of those that are left.

        Half of them, if nearly all answers come in that time: the rest is for another try.
        """
        is_enough = left / 2 >= LIKELY * self.durations.hedge_after
        return min(left / 2 if is_enough else left, self.patience)

    async def ask(self, calls: Sequence[Call], urgency: Urgency, until: float) -> Results:
        """The results of requests in one body. Raises `RefusedAnswer`, also out of budget."""
        units = sum(price(method) for method, _ in calls)
        while (wait := self.budget.take(units, urgency.purpose, self.now)) > 0:
            self._warn_short()
            if self.now + wait > until:
                raise refuse(RefusalKind.RATE_LIMITED, f"{BUDGET_SPENT} for {wait:.1f} s")
            await urgency.wait(wait)
        if not self.circuit.may_ask(self.now):
            raise refuse(RefusalKind.UNREACHABLE, "it failed too often, and rests")
        self.requests += len(calls)
        self.units += units
        self.circuit.asking()
        begun = self.now
        try:
            seconds = self._longest_wait(until - begun)
            is_urgent = urgency.purpose is Purpose.FLASHBLOCK
            reply = await self._connections.post(
                body_of(calls), max(0.0, seconds), is_urgent=is_urgent
            )
            found = self._read(reply, len(calls))
        except RefusedAnswer as refused:
            self._failed(refused)
            raise
        except asyncio.CancelledError:
            self.dropped(self.now - begun)
            raise
        self.durations.add(self.now - begun)
        self.circuit.succeeded()
        self._limited = 0
        return found

    def _warn_short(self) -> None:
        """Log once a minute that the budget does not suffice to follow the chain."""
        if self.short and self.now >= self._warn_short_at:
            self._warn_short_at = self.now + SHORT_AGAIN
            log.warning("upstream_units_short", url=self.shown, why=self.short)

    @property
    def short(self) -> str:
        """What to do about a budget that is too small for flashblocks; empty if it is not."""
        seconds = self.budget.short_for(self.now)
        if seconds < SHORT_SECONDS:
            return ""
        return (
            f"{self.budget.units:g} units per second are too few to follow this chain; "
            "set --upstream-units, or ?units= in the URL, to what the endpoint allows"
        )

    def dropped(self, seconds: float) -> None:
        """Another was faster: nothing is known against this one, unless it took far too long."""
        if seconds > TOO_SLOW * self.durations.hedge_after:
            self._failed(refuse(RefusalKind.UNREACHABLE, f"no answer in {seconds:.1f} s"))
        else:
            self.circuit.dropped()

    def _read(self, reply: HttpReply, count: int) -> Results:
        try:
            found = results(reply.status, reply.body, range(1, count + 1))
        except RefusedAnswer as refused:
            if refused.kind == RefusalKind.RATE_LIMITED:
                self._pause(reply.headers)
            raise self._connections.hidden(refused) from None
        hidden = {
            number: self._connections.hidden(each) if isinstance(each, RefusedAnswer) else each
            for number, each in found.items()
        }
        kinds = [each.kind for each in hidden.values() if isinstance(each, RefusedAnswer)]
        if RefusalKind.RATE_LIMITED in kinds:
            self._pause(reply.headers)
        return hidden

    def _pause(self, headers: Mapping[str, str]) -> None:
        named = retry_after(headers, self._clock.wall_ns() / 1e9)
        guessed = FIRST_PAUSE * 2.0 ** min(self._limited, 10)
        self._limited += 1
        self.budget.pause(min(guessed if named is None else named, LONGEST_PAUSE), self.now)

    def refuse(self, refused: RefusedAnswer) -> None:
        """Count a result that is no value."""
        self.refusals[refused.kind] += 1

    def lied(self, why: str, *, is_only: bool = False) -> None:
        """What it said was checked, and is not true: it is not asked for a while."""
        refused = refuse(RefusalKind.UNTRUE, why)
        self.refuse(refused)
        self._has_failed = True
        self.circuit.trip(ONLY_SECONDS if is_only else UNTRUE_SECONDS, self.now)
        log.info("upstream_failed", url=self.shown, why=str(refused))

    def state(self) -> UpstreamState:
        """What it is and does, for people who look at the service."""
        return UpstreamState(
            self.shown,
            "" if self.capabilities is None else self.capabilities.client,
            self.capabilities is not None and self.capabilities.can_prove,
            self.requests,
            self.units,
            dict(self.refusals),
            self.durations.quantile(0.5),
            self.circuit.wait(self.now),
            self.budget.paused(self.now),
            self.short,
        )

    def _failed(self, refused: RefusedAnswer) -> None:
        self.refusals[refused.kind] += 1
        if refused.kind in HARMLESS:
            self.circuit.succeeded()
            return
        self._has_failed = True
        self.circuit.failed(self.now)
        log.info("upstream_failed", url=self.shown, why=str(refused))

    async def probe(self, *, whole: bool = False) -> Capabilities:
        """What it can do; asked for once, and again some time after it has failed.

        `whole` asks for everything, also what no plan needs. Raises `RefusedAnswer`.
        """
        async with self._probing:
            if self.capabilities is not None and not whole and not self._is_old():
                return self.capabilities
            self._is_unsure = False
            try:
                found = await self._probe(whole=whole)
            except RefusedAnswer:
                if self.capabilities is None or whole:
                    raise
                found = None
            if self.capabilities is not None and (found is None or self._is_unsure):
                # Nothing is worse known than before because it did not answer this time.
                self._probed_at, self._is_unsure = self.now, False
                return self.capabilities
            assert found is not None, "it has said what it can"
            return self._know(found)

    async def _probe(self, *, whole: bool) -> Capabilities:
        steps = probing(whole=whole)
        asking = next(steps)
        while True:
            said = await self._said_all(asking)
            try:
                asking = steps.send(said)
            except StopIteration as end:
                return cast("Capabilities", end.value)

    async def _said_all(self, asking: Sequence[Asking]) -> list[Said]:
        """The answers to requests that are out at the same time. Raises `RefusedAnswer`."""
        # Of an endpoint that rests only one request at a time finds out whether it is well again.
        alone = [await self._said(asking[0])] if self.circuit.is_open else []
        loop = asyncio.get_running_loop()
        tasks = [loop.create_task(self._said(each)) for each in asking[len(alone) :]]
        try:
            return [*alone, *await asyncio.gather(*tasks)]
        finally:
            for task in tasks:
                task.cancel()

    def narrow(self, ways: EndpointWays) -> None:
        """Ask in these ways, for some time: it has refused others again and again."""
        if ways != self.ways:
            self.ways = ways
            self._widen_at = self.now + self._narrow_for
            self._narrow_for = min(2 * self._narrow_for, PROBE_AGAIN)

    def widen(self) -> None:
        """Ask again as it could be asked when it was probed, if it is time to try."""
        if self.ways_were_reduced and self.now >= self._widen_at and self.capabilities is not None:
            self.ways = self.capabilities.ways()

    def _is_old(self) -> bool:
        """Whether what is known may have changed: something has failed since it was asked for."""
        has_failed = self._has_failed or self.ways_were_reduced
        again = UNSURE_SECONDS if self._is_unsure else PROBE_AGAIN
        return has_failed and self.now - self._probed_at > again

    async def _said(self, asking: Asking) -> Said:
        """The answer to a request of a probe, asked for again where nothing came of it."""
        until, first = self.now + PROBE_SECONDS, None
        tries = PROBE_TRIES if self.capabilities is None else 1  # something is known otherwise
        for number in range(1, tries + 1):
            said = await self._said_once(asking, until)
            if not isinstance(said, RefusedAnswer) or said.kind not in OF_THE_EXCHANGE:
                return said
            first = first or said  # later it may only be said that the endpoint rests
            pause = min(FIRST_WAIT * 2.0 ** (number - 1), LONGEST_WAIT)
            pause = max(pause, self.circuit.wait(self.now), self.budget.paused(self.now))
            is_gone = said.kind in _NOT_REACHED and number >= REACH_TRIES
            if is_gone or number == tries or self.now + pause > until:
                break
            await asyncio.sleep(pause)
        assert first is not None, "it was tried"
        self._is_unsure = True
        if first.kind in _NOT_REACHED:
            raise first
        return first

    async def _said_once(self, asking: Asking, until: float) -> Said:
        calls = [(asking.method, list(asking.params))] * asking.copies
        try:
            found = await self.ask(calls, Urgency(Purpose.FLASHBLOCK), until)
        except RefusedAnswer as refused:
            return refused
        if asking.copies > 1:
            return sum(not isinstance(each, RefusedAnswer) for each in found.values())
        return found[1]

    def _know(self, found: Capabilities) -> Capabilities:
        if self._chain_id not in (None, found.chain_id):
            self.circuit.trip(WRONG_CHAIN_SECONDS, self.now)
            why = f"{found.chain_id} in place of {self._chain_id}"
            raise refuse(RefusalKind.WRONG_CHAIN, why)
        self.capabilities, self.ways = found, found.ways()
        self._narrow_for = FIRST_NARROW
        self._probed_at, self._has_failed = self.now, self._is_unsure
        log.info("upstream_probed", url=self.shown, client=found.client, chain_id=found.chain_id)
        return found

    @property
    def ways_were_reduced(self) -> bool:
        """Whether something that was there at the last probe did not work since."""
        return self.capabilities is not None and self.ways != self.capabilities.ways()

    def close(self) -> None:
        """Close its connections."""
        self._connections.close()
