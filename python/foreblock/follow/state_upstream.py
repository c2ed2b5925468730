"""An upstream that serves state: its abilities, probed before the first use.

Abilities are probed again some time after a failure. After refusals its limits are lowered for a
while (`degrade`), and restored later.
"""

import asyncio
from collections.abc import Sequence
from typing import Final, cast

import structlog
from msgspec import structs

from foreblock.backoff import Backoff, Waits
from foreblock.clock import Clock
from foreblock.errors import RefusedAnswer
from foreblock.follow.capabilities import Asking, Capabilities, ProbeResult, probing
from foreblock.follow.state_plan import RequestLimits
from foreblock.status.network_status import UpstreamStatus
from foreblock.upstream.budget import Purpose, UnitBudget, Urgency
from foreblock.upstream.endpoint import PROBE_SECONDS, Upstream
from foreblock.upstream.http import Connections
from foreblock.upstream.json_rpc import OF_THE_EXCHANGE, RefusalKind, refuse

log = structlog.get_logger()

_NOT_REACHED: Final = frozenset({RefusalKind.UNREACHABLE, RefusalKind.SERVER_FAILED})
PROBE_AGAIN: Final = 600.0  # seconds, after something has failed
DEGRADED: Final = Waits(2.0, PROBE_AGAIN, jitter=0.0)  # until a refused request is tried again
WRONG_CHAIN_SECONDS: Final = 60.0  # without requests to an endpoint of another chain
PROBE_TRIES, REACH_TRIES = 8, 3  # of one request of a probe; where it was not reached
PROBE_WAITS: Final = Waits(0.05, 0.5)  # between two of them
UNSURE_SECONDS: Final = 5.0  # until it is probed again, if it did not say what it can


class StateUpstream(Upstream):
    """An endpoint that serves state; `close` it."""

    def __init__(
        self,
        url: str,
        clock: Clock,
        budget: UnitBudget | None = None,
        chain_id: int | None = None,
        *,
        is_only: bool = False,
        connections: Connections | None = None,
    ) -> None:
        """An endpoint of another chain than `chain_id` is not used; `is_only` if there is no other.

        Raises `InvalidArgument` for a bad URL.
        """
        super().__init__(url, clock, budget, is_only=is_only, connections=connections)
        self.capabilities: Capabilities | None = None
        self.limits = RequestLimits()
        self._restore_at = 0.0
        self._degradations: Final = Backoff(DEGRADED)
        self._chain_id: Final = chain_id
        self._probed_at = 0.0
        self._is_unsure = False  # whether an ability may be missing because a probe failed
        self._probe_failed = False  # whether a request of this probe has failed
        self._probing: Final = asyncio.Lock()

    def status(self) -> UpstreamStatus:
        """The status, with what is known of the node behind it."""
        status, can = super().status(), self.capabilities
        if can is None:
            return status
        return structs.replace(status, client=can.client, can_prove=can.can_prove)

    @property
    def proves_behind(self) -> bool:
        """True if it proves the state of blocks below its tip."""
        depth = None if self.capabilities is None else self.capabilities.proof_depth
        return depth is not None and depth > 0

    async def probe(self, *, whole: bool = False) -> Capabilities:
        """Return its abilities; they are probed once, and again some time after a failure.

        `whole` asks for everything, also what no plan needs. Raises `RefusedAnswer`.
        """
        async with self._probing:
            known = self.capabilities
            if known is not None and not whole and not self._is_old():
                return known
            self._probe_failed = False
            try:
                found = await self._probe(whole=whole)
            except RefusedAnswer:
                if known is None or whole:
                    raise
                found, self._probe_failed = known, True
            if known is not None and self._probe_failed:
                # A failed request does not disprove an ability that is known.
                if not self._is_unsure:
                    self._probed_at = self.now
                    return known
                found = found.union(known)
            self._is_unsure = self._probe_failed
            return self._accept(found)

    def assume(self, known: Capabilities) -> None:
        """Use abilities that another process has probed."""
        self._accept(known)

    async def _probe(self, *, whole: bool) -> Capabilities:
        steps = probing(whole=whole)
        asking = next(steps)
        while True:
            result = await self.probe_all(asking)
            try:
                asking = steps.send(result)
            except StopIteration as end:
                return cast("Capabilities", end.value)

    async def probe_all(self, asking: Sequence[Asking]) -> list[ProbeResult]:
        """The responses to requests in flight at the same time. Raises `RefusedAnswer`."""
        # An endpoint with an open circuit is probed by one request at a time.
        alone = [await self._probe_one(asking[0])] if self.circuit.is_open else []
        loop = asyncio.get_running_loop()
        tasks = [loop.create_task(self._probe_one(each)) for each in asking[len(alone) :]]
        try:
            return [*alone, *await asyncio.gather(*tasks)]
        finally:
            for task in tasks:
                task.cancel()

    def degrade(self, limits: RequestLimits) -> None:
        """Stay within these limits for some time, after repeated refusals."""
        if limits != self.limits:
            self.limits = limits
            self._restore_at = self.now + self._degradations.after()

    def restore(self) -> None:
        """Restore the limits of the last probe, if the wait is over."""
        if self.is_degraded and self.now >= self._restore_at and self.capabilities is not None:
            self.limits = self.capabilities.limits()

    def _is_old(self) -> bool:
        """Return True if the abilities may have changed: something has failed since."""
        has_failed = self._has_failed or self.is_degraded
        again = UNSURE_SECONDS if self._is_unsure else PROBE_AGAIN
        return has_failed and self.now - self._probed_at > again

    async def _probe_one(self, asking: Asking) -> ProbeResult:
        """Return the response to a request of a probe, with retries if the exchange fails."""
        until, first, backoff = self.now + PROBE_SECONDS, None, Backoff(PROBE_WAITS)
        is_known = self.capabilities is not None and not self._is_unsure
        tries = 1 if is_known else PROBE_TRIES
        for number in range(1, tries + 1):
            result = await self._probe_once(asking, until)
            if not isinstance(result, RefusedAnswer) or result.kind not in OF_THE_EXCHANGE:
                return result
            first = first or result  # later the error may only be that the circuit is open
            pause = max(backoff.after(), self.circuit.wait(self.now), self.budget.paused(self.now))
            is_gone = result.kind in _NOT_REACHED and number >= REACH_TRIES
            if is_gone or number == tries or self.now + pause > until:
                break
            await asyncio.sleep(pause)
        assert first is not None, "it was tried"
        self._probe_failed = True
        if first.kind in _NOT_REACHED:
            raise first
        return first

    async def _probe_once(self, asking: Asking, until: float) -> ProbeResult:
        calls = [(asking.method, list(asking.params))] * asking.copies
        try:
            found = await self.ask(calls, Urgency(Purpose.FLASHBLOCK), until)
        except RefusedAnswer as refused:
            return refused
        if asking.copies > 1:
            return sum(not isinstance(each, RefusedAnswer) for each in found.values())
        return found[1]

    def _accept(self, found: Capabilities) -> Capabilities:
        if self._chain_id not in (None, found.chain_id):
            self.circuit.trip(WRONG_CHAIN_SECONDS, self.now)
            why = f"{found.chain_id} in place of {self._chain_id}"
            raise refuse(RefusalKind.WRONG_CHAIN, why)
        self.capabilities, self.limits = found, found.limits()
        self._degradations.succeeded()
        self._probed_at, self._has_failed = self.now, self._is_unsure
        log.info("upstream_probed", url=self.shown, client=found.client, chain_id=found.chain_id)
        return found

    @property
    def is_degraded(self) -> bool:
        """True if its limits are lower than at the last probe."""
        return self.capabilities is not None and self.limits != self.capabilities.limits()
