"""One upstream: requests within its budget, and its record so far.

Requests wait for the budget, and are refused while the circuit is open. After some failures in a
row the circuit opens. When its time is over, one request is tried: if it fails, the time doubles;
otherwise the circuit closes. A rate limit pauses the budget for as long as the upstream says. Times
are seconds of a monotonic clock.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import structlog

from foreblock.backoff import Backoff, Waits
from foreblock.clock import Clock
from foreblock.errors import RefusedAnswer
from foreblock.secret_urls import redact_urls
from foreblock.status.network_status import UpstreamStatus
from foreblock.upstream.budget import (
    Purpose,
    UnitBudget,
    Urgency,
    default_units,
    price,
    split_units,
)
from foreblock.upstream.http import Connections, HttpReply
from foreblock.upstream.json_rpc import (
    HARMLESS,
    Call,
    RefusalKind,
    Results,
    body_of,
    refuse,
    results,
    retry_after,
)

log = structlog.get_logger()

MOST_FAILURES: Final = 3  # in a row, until it opens
FIRST_PAUSE: Final = 0.5  # seconds
LONGEST_PAUSE: Final = 30.0
LONGEST_OF_ONE: Final = 1.0  # if there is no other upstream

KEPT: Final = 128  # durations
ENOUGH: Final = 8  # durations for an estimate
FIRST_GUESS: Final = 0.5  # seconds, before that
LEAST_HEDGE: Final = 0.01


class Circuit:
    """The circuit of one upstream."""

    def __init__(self, longest: float = LONGEST_PAUSE) -> None:
        """`longest` is the longest time that it stays open."""
        self.failures = 0  # in a row
        self._backoff: Final = Backoff(Waits(FIRST_PAUSE, longest, jitter=0.0))
        self._open_until: float | None = None
        self._is_trying = False

    @property
    def is_open(self) -> bool:
        """True if it failed too often, and has not responded since."""
        return self._open_until is not None

    def may_ask(self, now: float) -> bool:
        """Return True if a request may be sent; with an open circuit, one at a time."""
        if self._open_until is None:
            return True
        return now >= self._open_until and not self._is_trying

    def wait(self, now: float) -> float:
        """Seconds until `may_ask` can be true."""
        return 0.0 if self._open_until is None else max(0.0, self._open_until - now)

    def asking(self) -> None:
        """A request is sent."""
        self._is_trying = self.is_open

    def succeeded(self) -> None:
        """A response arrived."""
        self.failures = 0
        self._backoff.succeeded()
        self._open_until = None
        self._is_trying = False

    def dropped(self) -> None:
        """The request was cancelled: nothing is known."""
        self._is_trying = False

    def failed(self, now: float) -> None:
        """No response, or an invalid one."""
        self.failures += 1
        if self._open_until is None:
            if self.failures >= MOST_FAILURES:
                self._open_until = now + self._backoff.after()
        elif self._is_trying:  # others were sent before it opened
            self._is_trying = False
            self._open_until = now + self._backoff.after()

    def trip(self, seconds: float, now: float) -> None:
        """Open at once, as after invalid data."""
        self.failures = max(self.failures, MOST_FAILURES)
        self._open_until = max(self._open_until or 0.0, now + seconds)
        self._is_trying = False


class Durations:
    """The durations of the last responses of one upstream."""

    def __init__(self) -> None:
        self._kept: Final[deque[float]] = deque(maxlen=KEPT)
        self.observe: Callable[[float], None] | None = None  # also called with each

    def add(self, seconds: float) -> None:
        """Record a duration."""
        self._kept.append(seconds)
        if self.observe is not None:
            self.observe(seconds)

    def quantile(self, share: float) -> float | None:
        """The time that this share of responses needs at most; None without responses."""
        if not self._kept:
            return None
        ordered = sorted(self._kept)
        return ordered[min(int(share * len(ordered)), len(ordered) - 1)]

    @property
    def hedge_after(self) -> float:
        """Seconds after which another upstream is used beside this one: the 95th percentile."""
        slow = self.quantile(0.95)
        return FIRST_GUESS if slow is None or len(self._kept) < ENOUGH else max(slow, LEAST_HEDGE)


BUDGET_SPENT: Final = "the budget is spent"
LONGEST_RETRY_AFTER: Final = 60.0  # seconds that a Retry-After can ask for
PAUSES: Final = Waits(0.5, LONGEST_RETRY_AFTER, jitter=0.0)  # after rate limits without one
UNTRUE_SECONDS: Final = 60.0  # without requests after invalid data
ONLY_SECONDS: Final = 0.1  # the same if there is no other upstream: invalid data is refused anyway
PROBE_SECONDS: Final = 10.0  # for one request of a probe
LEAST_PATIENCE, PATIENCE = 1.0, 8.0  # seconds; times the 95th percentile
LIKELY: Final = 3.0  # times the 95th percentile, in which nearly all responses arrive
SHORT_SECONDS: Final = 2.0  # that flashblocks wait for units until it is reported
SHORT_AGAIN: Final = 60.0  # seconds between two such warnings
TOO_SLOW: Final = 2.0  # times the 95th percentile


class Upstream:
    """An endpoint of a chain; `close` it."""

    def __init__(
        self,
        url: str,
        clock: Clock,
        budget: UnitBudget | None = None,
        *,
        is_only: bool = False,
        connections: Connections | None = None,
    ) -> None:
        """`is_only` if there is no other; `connections` replace those to the URL.

        The query parameter `units` is the budget of this endpoint, and not sent to it.
        Raises `InvalidArgument` for a bad URL.
        """
        url, units = split_units(url)
        self._url: Final = url
        self.shown: Final = redact_urls(url)
        self.budget: Final = budget or UnitBudget(units or default_units(url))
        self.circuit: Final = Circuit(LONGEST_OF_ONE if is_only else LONGEST_PAUSE)
        self.durations: Final = Durations()
        self.requests = 0
        self.units = 0
        self.refusals: Final[Counter[str]] = Counter()
        self.connections: Final = connections or Connections(url)
        self._clock: Final = clock
        self._pauses: Final = Backoff(PAUSES)
        self._why = ""  # the last failure
        self._warn_short_at = 0.0
        self._has_failed = False  # since it was probed

    def is_at(self, url: str) -> bool:
        """Return True if this is the endpoint at a URL, whatever its budget."""
        return split_units(url)[0] == self._url

    @property
    def now(self) -> float:
        """Seconds of the monotonic clock."""
        return self._clock.monotonic_ns() / 1e9

    def wait(self, purpose: Purpose) -> float:
        """Seconds until a request can be sent."""
        return max(self.circuit.wait(self.now), self.budget.wait(1, purpose, self.now))

    @property
    def patience(self) -> float:
        """Seconds after which a response is given up and requested again.

        Far longer than responses take, and longer after each failure.
        """
        usual = max(LEAST_PATIENCE, PATIENCE * self.durations.hedge_after)
        return usual * 2.0 ** min(self.circuit.failures, 10)

    def _longest_wait(self, left: float) -> float:
        """Seconds for one response, of those that are left.

        Half of them, if nearly all responses arrive in that time: the rest is for a retry.
        """
        is_enough = left / 2 >= LIKELY * self.durations.hedge_after
        return min(left / 2 if is_enough else left, self.patience)

    async def ask(self, calls: Sequence[Call], urgency: Urgency, until: float) -> Results:
        """Send requests in one body. Raises `RefusedAnswer`, also out of budget."""
        units = sum(price(method) for method, _ in calls)
        while (wait := self.budget.take(units, urgency.purpose, self.now)) > 0:
            self._warn_short()
            if self.now + wait > until:
                raise refuse(RefusalKind.RATE_LIMITED, f"{BUDGET_SPENT} for {wait:.1f} s")
            await urgency.wait(wait)
        if not self.circuit.may_ask(self.now):
            raise refuse(RefusalKind.UNREACHABLE, f"it failed too often, and rests: {self._why}")
        self.requests += len(calls)
        self.units += units
        self.circuit.asking()
        begun = self.now
        try:
            seconds = self._longest_wait(until - begun)
            is_urgent = urgency.purpose is Purpose.FLASHBLOCK
            reply = await self.connections.post(
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
        self._pauses.succeeded()
        return found

    def _warn_short(self) -> None:
        """Log once a minute that the budget does not suffice to follow the chain."""
        if self.short and self.now >= self._warn_short_at:
            self._warn_short_at = self.now + SHORT_AGAIN
            log.warning("upstream_units_short", url=self.shown, why=self.short)

    @property
    def short(self) -> str:
        """Advice about a budget that is too small for flashblocks, or ""."""
        seconds = self.budget.short_for(self.now)
        if seconds < SHORT_SECONDS:
            return ""
        return (
            f"{self.budget.units:g} units per second are too few to follow this chain; "
            "set --upstream-units, or ?units= in the URL, to what the endpoint allows"
        )

    def dropped(self, seconds: float) -> None:
        """Another was faster; this one has failed only if it took far too long."""
        if seconds > TOO_SLOW * self.durations.hedge_after:
            self._failed(refuse(RefusalKind.UNREACHABLE, f"no response in {seconds:.1f} s"))
        else:
            self.circuit.dropped()

    def _read(self, reply: HttpReply, count: int) -> Results:
        try:
            found = results(reply.status, reply.body, range(1, count + 1))
        except RefusedAnswer as refused:
            if refused.kind == RefusalKind.RATE_LIMITED:
                self._pause(reply.headers)
            raise self.connections.hidden(refused) from None
        hidden = {
            number: self.connections.hidden(each) if isinstance(each, RefusedAnswer) else each
            for number, each in found.items()
        }
        kinds = [each.kind for each in hidden.values() if isinstance(each, RefusedAnswer)]
        if RefusalKind.RATE_LIMITED in kinds:
            self._pause(reply.headers)
        return hidden

    def _pause(self, headers: Mapping[str, str]) -> None:
        named = retry_after(headers, self._clock.wall_ns() / 1e9)
        guessed = self._pauses.after()
        self.budget.pause(min(guessed if named is None else named, LONGEST_RETRY_AFTER), self.now)

    def refuse(self, refused: RefusedAnswer) -> None:
        """Count a refused result."""
        self.refusals[refused.kind] += 1

    def report_bad_data(self, why: str, *, is_only: bool = False) -> None:
        """Record that its data was invalid: it is not used for a while."""
        refused = refuse(RefusalKind.UNTRUE, why)
        self.refuse(refused)
        self._has_failed = True
        self._why = why
        self.circuit.trip(ONLY_SECONDS if is_only else UNTRUE_SECONDS, self.now)
        log.info("upstream_failed", url=self.shown, why=str(refused))

    def status(self) -> UpstreamStatus:
        return UpstreamStatus(
            self.shown,
            "",
            can_prove=False,
            requests=self.requests,
            units=self.units,
            refusals=dict(self.refusals),
            latency=self.durations.quantile(0.5),
            rests_for=self.circuit.wait(self.now),
            paused_for=self.budget.paused(self.now),
            short=self.short,
        )

    def _failed(self, refused: RefusedAnswer) -> None:
        self.refusals[refused.kind] += 1
        if refused.kind in HARMLESS:
            self.circuit.succeeded()
            return
        self._has_failed = True
        self._why = refused.why
        self.circuit.failed(self.now)
        log.info("upstream_failed", url=self.shown, why=str(refused))

    def close(self) -> None:
        """Close its connections."""
        self.connections.close()
