"""State that a worker's store does not have, fetched through the network's process.

That process has the upstreams; it sends values that are proven, or that the operator trusts. A
request may use a number of rounds, of keys and of seconds. A value is never zero or absent because
something failed: without it the response is an error with the reason.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import closing
from typing import Any, Final

from msgspec.structs import replace

from foreblock.errors import (
    InvalidProofData,
    MissingTrieNodes,
    NewEpoch,
    NoUpstream,
    TooMuchState,
    UnitsSpent,
)
from foreblock.follow.learned_state import (
    KeysAt,
    LearnedState,
    TrieNodeFetcher,
    slots_before,
    unpack_values,
)
from foreblock.ledger.reading.view import Ledger
from foreblock.ledger.storage.open_store import FetchedState
from foreblock.ledger.storage.state_keys import StateKeys
from foreblock.metrics.meters import StateMetrics
from foreblock.rpc.fetching_dispatcher import Missed
from foreblock.settings import FollowSettings
from foreblock.types import MissingKeys
from foreblock.upstream.old_blocks import AskUpstream

THREAD_BYTES: Final = 128 << 10  # longer responses are decoded on a thread

LEAST_CONTRACT: Final = 1 << 16  # smaller addresses are zero and precompiles

MOST_CALLED: Final = 8  # accounts of one run that are requested with their codes

AGAIN: Final = 2  # rounds of a request that may fail
PAUSE: Final = 0.1  # seconds after one

# Predicted keys of a call are fetched in this round; before it most calls need nothing more.
HINTED_ROUND: Final = 2

# Methods that read one account, or slots of some, and run nothing.
PLAIN_READS: Final = frozenset(
    {
        "eth_getBalance",
        "eth_getStorageAt",
        "eth_getStorageValues",
        "eth_getTransactionCount",
        "ots_hasCode",
    }
)

# From an epoch, packed keys and seconds to the values found.
AskState = Callable[[int, bytes, float], Awaitable[bytes]]


class WorkerState:
    """The state of one network in one worker."""

    def __init__(  # noqa: PLR0913, PLR0917, all of it is needed
        self,
        ledger: Ledger,
        settings: FollowSettings,
        ask: AskState,
        metrics: StateMetrics | None = None,
        clock: Callable[[], float] = time.monotonic,
        hint: Callable[[Sequence[Missed]], Awaitable[StateKeys]] | None = None,
        ask_upstream: AskUpstream | None = None,
        predict: Callable[[Sequence[Missed]], StateKeys] | None = None,
        shared: FetchedState | None = None,
        hinted_round: int = HINTED_ROUND,
    ) -> None:
        """`hint` and `predict` return keys that calls will read; they raise nothing.

        Without `ask_upstream` nothing is fetched that proofs and roots need. `shared` are the
        values of a writer in this process. In the `hinted_round` of a request it asks for a hint.
        """
        self.hint: Final = hint
        self.hinted_round: Final = hinted_round
        self.predict: Final = predict or _nothing
        self._ledger: Final = ledger
        self._learned: Final = LearnedState(ledger, shared=shared)
        self._trie_nodes: Final = ask_upstream and TrieNodeFetcher(
            ledger, self._learned, ask_upstream
        )
        self.settings: Final = settings
        self._ask: Final = ask
        self._metrics: Final = metrics or StateMetrics.private()
        self.clock: Final = clock

    def new_fetch_budget(self) -> "FetchBudget":
        """The rounds of one request or batch."""
        return FetchBudget(self)

    def unknown(self, wanted: StateKeys) -> StateKeys:
        """The unknown accounts and slots among these."""
        slots = {address: list(keys) for address, keys in wanted.slots.items()}
        with closing(self._ledger.view()) as view:
            missing = view.state(view.latest).missing(list(wanted.accounts), slots)
        return StateKeys.of(missing)

    async def fetch(self, wanted: StateKeys, seconds: float) -> None:
        """Fetch these keys, or some of them; raises the reason if none can be fetched."""
        self._metrics.keys.add(len(wanted))
        await self._measured(self._fetch(wanted, seconds))

    async def fetch_trie_nodes(self, missing: Sequence[MissingTrieNodes], seconds: float) -> None:
        """Fetch the trie nodes on the paths to keys; raises the reason if that fails."""
        if self._trie_nodes is None:
            raise missing[0]
        self._metrics.keys.add(sum(len(each.misses) for each in missing))
        await self._measured(self._trie_nodes.fetch(missing, seconds))

    async def fetch_slots(self, keys: KeysAt, seconds: float) -> None:
        """Fetch slots that only proofs of these blocks have; raises the reason if that fails."""
        if self._trie_nodes is None:
            raise NoUpstream("old blocks are not fetched", 1)
        await self._measured(self._trie_nodes.fetch_slots(keys, seconds))

    async def _measured(self, fetching: Coroutine[Any, Any, None]) -> None:
        began = self.clock()
        try:
            await fetching
        except Exception as why:
            self._metrics.ended(_outcome(why), self.clock() - began)
            raise
        self._metrics.ended("found", self.clock() - began)
        self._metrics.learned.set(self._learned.size)

    async def _fetch(self, wanted: StateKeys, seconds: float) -> None:
        with closing(self._ledger.view()) as view:
            epoch = view.base.epoch
        data = await self._ask(epoch, wanted.pack(), seconds)
        if len(data) > THREAD_BYTES:
            values = await asyncio.to_thread(unpack_values, data)
        else:
            values = unpack_values(data)
        # Opened after the responses: it has every block that the values are from.
        with closing(self._ledger.view()) as view:
            if view.base.epoch != epoch:
                raise NewEpoch
            self._learned.learn(view, values)


class FetchBudget:
    """The rounds that one request or batch has had."""

    def __init__(self, state: WorkerState) -> None:
        self._state: Final = state
        self._until: Final = state.clock() + state.settings.fetch_timeout
        self._rounds = 0
        self._keys = 0
        self._again = 0  # rounds that failed
        self._hinted = StateKeys()
        self._trie_nodes: list[
            tuple[int, MissingKeys]
        ] = []  # that were requested last, with blocks

    async def fetch(self, missed: Sequence[Missed]) -> None:
        """Fetch the missed keys; raises the reason if that fails."""
        settings = self._state.settings
        nodes = [each.why for each in missed if isinstance(each.why, MissingTrieNodes)]
        missed = [each for each in missed if not isinstance(each.why, MissingTrieNodes)]
        wanted = StateKeys.union(
            [*map(_wanted, missed), *self._hints(), self._state.predict(missed)]
        )
        before = slots_before([each.why.misses for each in missed])
        self._rounds += 1
        self._keys += len(wanted) + sum(len(each.misses) for each in nodes)
        self._keys += sum(len(slots) for keys in before.values() for slots in keys.values())
        if self._rounds > settings.fetch_rounds:
            raise TooMuchState(f"more than {settings.fetch_rounds} rounds")
        if self._keys > settings.fetch_keys:
            raise TooMuchState(f"more than {settings.fetch_keys} keys")
        left = self._until - self._state.clock()
        if left <= 0:
            raise NoUpstream(f"nothing in {settings.fetch_timeout:g} s", 1)
        both = [self._fetch_values(missed, wanted, left)] if wanted else []
        if nodes:
            both.append(self._fetch_trie_nodes(nodes, left))
        if before:
            both.append(self._in_time(self._state.fetch_slots(before, left), left))
        failed = [each for each in await asyncio.gather(*both, return_exceptions=True) if each]
        if failed and len(failed) == len(both):
            await self._try_again(failed[0])

    async def _try_again(self, failed: BaseException) -> None:
        """Retry the request after a moment: the failure may be temporary."""
        is_late = self._until - self._state.clock() <= PAUSE
        if is_late or self._again >= AGAIN or not isinstance(failed, NoUpstream | InvalidProofData):
            raise failed
        self._again += 1
        self._trie_nodes = []
        await asyncio.sleep(PAUSE)

    async def _fetch_trie_nodes(self, nodes: Sequence[MissingTrieNodes], left: float) -> None:
        wanted = [(each.block, each.misses) for each in nodes]
        if wanted == self._trie_nodes:
            raise InvalidProofData("the nodes of proofs do not fit the trie of their block")
        self._trie_nodes = wanted
        await self._in_time(self._state.fetch_trie_nodes(nodes, left), left)

    async def _in_time(self, fetching: Coroutine[Any, Any, None], left: float) -> None:
        try:
            await fetching
        except TimeoutError:
            raise NoUpstream(f"no proofs in {left:.1f} s", 1) from None

    async def _fetch_values(self, missed: Sequence[Missed], wanted: StateKeys, left: float) -> None:
        try:
            if self._rounds == self._state.hinted_round and self._state.hint is not None:
                hinting = asyncio.ensure_future(self._state.hint(missed))
                try:
                    await self._state.fetch(wanted, left)
                    # The remaining time is needed for the next round.
                    patience = max(0.0, (self._until - self._state.clock()) / 2)
                    if (await asyncio.wait([hinting], timeout=patience))[0]:
                        self._hinted = hinting.result()
                finally:
                    hinting.cancel()
            else:
                await self._state.fetch(wanted, left)
        except NewEpoch:
            return  # the next run is on the new base, and misses other keys

    def _hints(self) -> list[StateKeys]:
        """Return the hinted keys of the calls, once."""
        hinted, self._hinted = self._hinted, StateKeys()
        if not hinted:
            return []
        unknown = self._state.unknown(hinted)
        return [replace(unknown, codes_of=_likely_contracts(unknown))]


def _nothing(_: Sequence[Missed]) -> StateKeys:
    return StateKeys()


def _wanted(missed: Missed) -> StateKeys:
    """Return the keys that a request missed; accounts of a run come with their codes.

    So a call of a new contract has its code and its first slots in the same round. Of many accounts
    at once, few have code.
    """
    wanted = StateKeys.of(missed.why.misses)
    if missed.method in PLAIN_READS:
        return wanted
    return replace(wanted, codes_of=called_among(wanted))


def called_among(wanted: StateKeys) -> frozenset[bytes]:
    """The accounts that a run is likely to call; none of many."""
    return frozenset() if len(wanted.accounts) > MOST_CALLED else _likely_contracts(wanted)


def _likely_contracts(wanted: StateKeys) -> frozenset[bytes]:
    """The accounts that are likely to have code."""
    return frozenset(each for each in wanted.accounts if int.from_bytes(each) >= LEAST_CONTRACT)


def _outcome(why: Exception) -> str:
    match why:
        case UnitsSpent():
            return "spent"
        case NewEpoch():
            return "moved"
        case InvalidProofData():
            return "untrue"
        case _:
            return "unavailable"
