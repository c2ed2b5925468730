"""Answer the workers of a network: state that they miss, and requests for an upstream.

Their purpose is their own, so that flashblocks come first. Values sent to them were proven here,
and are shared by all; values known here already are not fetched again but stored for all workers.
The response of an upstream about old blocks is sent unchanged: workers verify it. An error that all
upstreams return is sent too; a reverted call is a result, and no other upstream is queried.
"""

from collections.abc import Callable, Coroutine
from typing import Any, Final, Protocol

import msgspec
from msgspec import Raw

from foreblock.bus.messages import BusCall, BusRequest, CallUpstream, GetState
from foreblock.clock import SECOND_NS, Clock
from foreblock.errors import EndpointError, NewEpoch, NoUpstream, RefusedAnswer
from foreblock.follow.fetch_result import FetchResult
from foreblock.follow.fetcher import Fetcher
from foreblock.follow.learned_state import pack_values
from foreblock.follow.state_fetcher import ExecutedBlocks, KnownKeys, ProvenState
from foreblock.ledger.storage.state_keys import StateKeys
from foreblock.upstream.budget import Purpose, Urgency
from foreblock.upstream.json_rpc import OF_THE_EXCHANGE, RefusalKind

# Errors that have nothing to do with the request.
UNANSWERED: Final = OF_THE_EXCHANGE | {RefusalKind.FORBIDDEN}

Start = Callable[[Coroutine[Any, Any, None]], object]


class KnownState(KnownKeys, Protocol):
    """The known keys, which can be stored for workers."""

    async def store_learned(self) -> None:
        """Store the known values for workers."""


class StateSearch(Protocol):
    """Finds state, as `StateFetcher` does."""

    async def find_in_time(
        self,
        wanted: StateKeys,
        executed: Callable[[], ExecutedBlocks],
        purpose: Purpose,
        seconds: float,
    ) -> ProvenState:
        """Fetch and learn keys. Raises `EndpointError`."""


class WorkerRequests:
    """Answers requests on the loop of the network."""

    def __init__(
        self,
        fetcher: Fetcher,
        learner: StateSearch,
        state: KnownState,
        start: Start,
        clock: Clock,
    ) -> None:
        """`start` starts a task."""
        self._fetcher: Final = fetcher
        self._learner: Final = learner
        self._state: Final = state
        self._start: Final = start
        self._clock: Final = clock

    def fetch(self, request: BusRequest) -> None:
        """Reply to a call some time later."""
        self._start(self._answer(request))

    async def result(self, call: BusCall) -> bytes:
        """The result of a call. Raises `EndpointError`."""
        if isinstance(call.body, GetState):
            return await self._find_state(call.body, call.deadline_ns)
        assert isinstance(call.body, CallUpstream), "other calls do not get here"
        return await self._ask_upstreams(call.body, call.deadline_ns)

    async def _answer(self, request: BusRequest) -> None:
        """Reply to a call, with the failure if there is one."""
        try:
            data = await self.result(request.call)
        except Exception as why:
            request.fail(why)
            if not isinstance(why, EndpointError):
                raise  # it is logged
            return
        request.finish_in_parts(data)

    async def _find_state(self, wanted_state: GetState, deadline_ns: int) -> bytes:
        """The values of the keys that are not stored, packed. Raises `EndpointError`."""
        if wanted_state.epoch != self._state.executed().epoch:
            raise NewEpoch
        wanted = StateKeys.unpack(wanted_state.keys)
        left = self._state.unknown(wanted)
        if len(left) < len(wanted):
            await self._state.store_learned()  # the worker finds it in the store
        found = ProvenState(FetchResult(), {})
        if left:
            seconds = self._seconds_until(deadline_ns)
            found = await self._learner.find_in_time(
                left, self._state.executed, Purpose.CLIENT, seconds
            )
        return pack_values(*found)

    async def _ask_upstreams(self, request: CallUpstream, deadline_ns: int) -> bytes:
        """The result of the first upstream that has one. Raises `EndpointError`."""
        calls = [(request.method, msgspec.json.decode(request.params, type=list[Any]))]
        why: EndpointError = NoUpstream("there is none", 1)
        for upstream in sorted(self._fetcher.upstreams, key=lambda each: each.wait(Purpose.CLIENT)):
            until = upstream.now + self._seconds_until(deadline_ns)
            try:
                said = (await upstream.ask(calls, Urgency(Purpose.CLIENT), until))[1]
                if not isinstance(said, Raw):
                    raise said
            except RefusedAnswer as refused:
                why = _failure(refused)
                if refused.kind == RefusalKind.REVERTED:
                    break
                continue
            return bytes(said)
        raise why

    def _seconds_until(self, deadline_ns: int) -> float:
        return max(0.0, (deadline_ns - self._clock.monotonic_ns()) / SECOND_NS)


def _failure(refused: RefusedAnswer) -> EndpointError:
    """Return the error for the worker: the upstream's, or that there was no response."""
    if refused.said is None or refused.kind in UNANSWERED:
        return NoUpstream(str(refused), 1)
    return refused.said
