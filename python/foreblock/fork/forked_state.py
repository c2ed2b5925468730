"""Find missing state of the fork block: fetched, proven or trusted, learned, and kept on disk.

Callers wait on threads of their own, or ask over the bus (`answer`). What is found is of one block
for good, so no key is requested twice.
"""

import asyncio
import dataclasses
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Final

import msgspec
import structlog
from msgspec import Raw
from msgspec.structs import replace

from foreblock.bus.messages import BusCall, CallUpstream, GetState
from foreblock.clock import SECOND_NS, SystemClock
from foreblock.errors import (
    BadSetting,
    EndpointError,
    ErrorAnswer,
    NoUpstream,
    RefusedAnswer,
    StateMissing,
    UnitsSpent,
)
from foreblock.follow.fetch_result import FetchResult
from foreblock.follow.fetcher import Fetcher, FetchOptions
from foreblock.follow.learned_state import KnownValues, known_values, learn_values
from foreblock.follow.prediction import call_hints
from foreblock.follow.state_fetcher import ExecutedBlocks, ProvenState, StateFetcher
from foreblock.follow.worker_requests import WorkerRequests
from foreblock.follow.worker_state import called_among
from foreblock.fork.cache import ForkFile, named_keys
from foreblock.fork.fork_upstream import open_upstreams
from foreblock.fork.history import block_of
from foreblock.fork.upstream_thread import UpstreamThread
from foreblock.fork.wanted_keys import likely_with, ring_slots
from foreblock.ledger.rules.execution import HISTORY_WINDOW
from foreblock.ledger.storage.open_store import FetchedState, Store, unknown_in
from foreblock.ledger.storage.state_keys import StateKeys
from foreblock.primitives import format_data, format_quantity
from foreblock.rpc.fetching_dispatcher import Missed
from foreblock.settings import ForkPoint, ForkSettings
from foreblock.types import Header, MissingKeys, Transaction
from foreblock.upstream.budget import Purpose

HINT: Final = "eth_createAccessList"
SLOW_SECONDS: Final = 3.0  # after which a fetch is logged
NO_BLOCKS: Final[frozenset[int]] = frozenset()

log = structlog.get_logger()


class ForkedState:
    """The state of one fork; `close` it."""

    def __init__(
        self, settings: ForkSettings, point: ForkPoint, header: Header, known: ForkFile
    ) -> None:
        """Fetched values are added to the file `known`. Raises `BadSetting`."""
        self._settings: Final = settings
        self._point: Final = point
        self._header: Final = header
        self._known: Final = known
        self._answers: Final = known.answers() if settings.state else {}  # recorded, or to record
        self._missed: list[bytes] = []  # the transactions of the last miss
        self._thread: Final = UpstreamThread()
        try:
            self._thread.run(self._open(settings.url, point.abilities))
        except BaseException:
            self._thread.close()
            raise

    async def _open(self, urls: Sequence[str], abilities: Sequence[bytes] = ()) -> None:
        settings = dataclasses.replace(self._settings, url=tuple(urls))
        upstreams = open_upstreams(settings, self._point.chain_id, abilities)
        options = FetchOptions(proven=self._point.proven)
        self._fetcher = Fetcher(upstreams, SystemClock(), options)
        self._learner = StateFetcher(self._fetcher, proven=self._point.proven, behind=0)
        self._requests = WorkerRequests(self._fetcher, self, self, _refuse_to_start, SystemClock())
        self.shown = tuple(each.shown for each in upstreams)

    def serve(self, store: Store, learned: FetchedState) -> None:
        """Find state that this store does not know; values are added to `learned`."""
        self._store, self._learned = store, learned
        self._blocks = ExecutedBlocks(
            learned.epoch,
            [self._header],
            keeps_hashes=self._header.requests_hash is not None
            and self._header.number > HISTORY_WINDOW,
        )
        self._verify_apart()

    def _verify_apart(self) -> None:
        """Verify proofs in a state of its own.

        It knows some keys from the nodes of others, which the next run of the cache would not.
        """
        self._learner.begin(FetchedState(self._learned.epoch, nodes=False))

    def use(self, url: str) -> None:
        """Fetch from another endpoint of the chain. Raises `BadSetting`, `EndpointError`."""
        if self._settings.state:
            raise BadSetting("fork_state", "a recording has no endpoint")
        self._thread.run(self._use(url))

    async def _use(self, url: str) -> None:
        (upstream,) = open_upstreams(dataclasses.replace(self._settings, url=(url,)), None)
        try:
            chain_id = await upstream.chain_id()
        except RefusedAnswer as why:
            raise NoUpstream(f"{upstream.shown}: {why}", 1) from None
        finally:
            upstream.close()
        if chain_id != self._point.chain_id:
            text = f"{upstream.shown} is of chain {chain_id}, not {self._point.chain_id}"
            raise BadSetting("fork_url", text)
        self._fetcher.close()
        await self._open((url,))
        self._verify_apart()

    def close(self) -> None:
        """Cancel requests, and end the thread."""
        self._fetcher.close()
        self._thread.close()

    # --- For callers that wait -----------------------------------------------------------

    def find(self, missing: MissingKeys, transactions: Sequence[Transaction] = ()) -> None:
        """Fetch keys that a run has missed. Raises `EndpointError` if some are not found."""
        needed = StateKeys.of(missing)
        if not needed:
            raise NoUpstream("the slots of an account that was deleted here are not kept", 1)
        if self._settings.state and not transactions:
            needed = self._without_rings(needed)
        if needed:
            self._thread.run(self._find_with_hint(needed, transactions))

    def _without_rings(self, needed: StateKeys) -> StateKeys:
        """Learn zeros for slots that the start of a block overwrites, and that are not recorded.

        Which these are depends on the time, so no recording has all of them.
        """
        rings = ring_slots(needed)
        zeros = {address: dict.fromkeys(slots, 0) for address, slots in rings.slots.items()}
        learn_values(self._learned, KnownValues({}, zeros))
        return needed.without(rings)

    def answer(
        self, body: GetState | CallUpstream, deadline_ns: int | None = None
    ) -> Future[bytes]:
        """Begin to answer a call of a worker."""
        if deadline_ns is None:
            left_ns = int(self._settings.timeout * SECOND_NS)
            deadline_ns = SystemClock().monotonic_ns() + left_ns
        return self._thread.start(self._answer(BusCall(0, "", body, deadline_ns)))

    # --- On the thread -------------------------------------------------------------------

    async def find_in_time(
        self,
        wanted: StateKeys,
        executed: Callable[[], ExecutedBlocks],  # noqa: ARG002, always the same block
        purpose: Purpose,  # noqa: ARG002, all are urgent
        seconds: float,
    ) -> ProvenState:
        """Fetch and learn keys for a worker. Raises `EndpointError`."""
        return await self._find(wanted, StateKeys(), seconds)

    def executed(self) -> ExecutedBlocks:
        """The block of the fork."""
        return self._blocks

    def unknown(self, wanted: StateKeys) -> StateKeys:
        """Return the keys that are not known yet."""
        return wanted.still_missing(unknown_in(self._store, wanted.accounts, wanted.slots))

    async def store_learned(self) -> None:
        """Store the known values, for workers."""
        await asyncio.to_thread(self._store.learn, self._learned)

    async def _find_with_hint(self, needed: StateKeys, transactions: Sequence[Transaction]) -> None:
        """Fetch keys; at the second miss of a transaction also the keys of its access list."""
        seconds = self._settings.timeout
        finding = self._find(needed, likely_with(needed), seconds)
        hashes = [each.hash for each in transactions]
        is_again, self._missed = bool(hashes) and hashes == self._missed, hashes
        if not is_again:
            await finding
            return
        missed = [Missed("eth_call", call_params(each), _NOTHING) for each in transactions]
        hint, _ = await asyncio.gather(
            call_hints(self._ask, missed, block_of(self._blocks.anchor)), finding
        )
        likely = replace(self.unknown(hint), codes_of=called_among(hint))
        if likely and not self._settings.state:
            with suppress(EndpointError):  # the run misses them again
                await self._find(StateKeys(), likely, seconds)

    async def _answer(self, call: BusCall) -> bytes:
        """Answer a call of a worker, from the recording if there is no endpoint."""
        body = call.body
        if not isinstance(body, CallUpstream):
            return await self._requests.result(call)
        known = self._answers.get((body.method, body.params))
        if known is None:
            known = await self._fetched(call, body)
        if isinstance(known, ErrorAnswer):
            raise known
        return known

    async def _fetched(self, call: BusCall, body: CallUpstream) -> bytes | ErrorAnswer:
        """An answer that is not recorded, or its error."""
        if self._settings.state:
            request = f"{body.method} {body.params.decode()}"
            raise NoUpstream(f"{self._settings.state} does not have {request}", 1)
        answer: bytes | ErrorAnswer
        try:
            answer = await self._requests.result(call)
        except ErrorAnswer as error:
            answer = error
        # Hints are of the fork block; the keys that they name are fetched.
        is_hint = body.method == HINT and body.params.endswith(b",%b]" % block_of(self._header))
        if self._settings.record and not is_hint:
            self._answers[body.method, body.params] = answer
            self._known.put_answer(body.method, body.params, answer)
        return answer

    async def _ask(self, method: str, params: bytes) -> bytes:
        deadline_ns = SystemClock().monotonic_ns() + int(self._settings.timeout * SECOND_NS)
        body = CallUpstream(method, params)
        try:
            return await self._answer(BusCall(0, "", body, deadline_ns))
        except ErrorAnswer as error:
            raise NoUpstream(str(error), 1) from None

    async def _find(self, needed: StateKeys, likely: StateKeys, seconds: float) -> ProvenState:
        """Fetch and learn keys; those that are likely to be needed with the first try."""
        if self._settings.state:
            raise NoUpstream(f"{self._settings.state} does not have {named_keys(needed)}", 1)
        loop = asyncio.get_running_loop()
        slow = loop.call_later(SLOW_SECONDS, self._log_slow, needed)
        try:
            return await self._find_in_tries(needed, likely, seconds)
        finally:
            slow.cancel()

    def _log_slow(self, needed: StateKeys) -> None:
        log.warning("fork_state_slow", url=", ".join(self.shown), keys=len(needed))

    async def _find_in_tries(
        self, needed: StateKeys, likely: StateKeys, seconds: float
    ) -> ProvenState:
        loop, found, hashes = asyncio.get_running_loop(), FetchResult(), dict[int, bytes]()
        until = loop.time() + seconds
        why: EndpointError = NoUpstream("nothing was found", 1)
        for tries_left in reversed(range(self._settings.retries + 1)):
            wanted, likely = needed.also(likely), StateKeys()
            try:
                more = await self._learner.find(
                    wanted, self._blocks, Purpose.FLASHBLOCK, until - loop.time()
                )
            except (NoUpstream, UnitsSpent) as failure:
                why = failure
            else:
                learn_values(self._learned, known_values(more.found, more.blocks))
                self._known.put_values(more.found, more.blocks)
                found.merge(more.found)
                hashes |= more.blocks
                left = found.missing(replace(needed, blocks=NO_BLOCKS))
                needed = replace(left, blocks=needed.blocks - hashes.keys())
                if not needed:
                    return ProvenState(found, hashes)
                continue
            pause = self._settings.retry_backoff
            if not tries_left or loop.time() + pause >= until:
                break
            await asyncio.sleep(pause)
        text = why.why if isinstance(why, NoUpstream) else str(why)
        raise NoUpstream(f"{', '.join(self.shown)}: {text}", 1)


def _refuse_to_start(_: object) -> None:
    raise AssertionError("the caller of `result` runs it")


_NOTHING: Final = StateMissing(MissingKeys())


def call_params(transaction: Transaction) -> Raw:
    """The parameters of a call with the effects of a transaction."""
    call = {
        "from": format_data(transaction.sender),
        "value": format_quantity(transaction.value),
        "data": format_data(transaction.input),
    }
    if transaction.to:
        call["to"] = format_data(transaction.to)
    return Raw(msgspec.json.encode([call]))
