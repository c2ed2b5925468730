"""Fetch again what is in use, at another anchor: behind everything else, and within the budget.

What messages and readers want is noted by the learner (`HotSet`), and kept with the chain now and
then. When the store has begun anew, and when it is opened, what of it is not known is fetched,
portion by portion, so that reads that were warm are warm again soon: first what messages wanted
since the last anchor, then the rest. It is asked for with the least urgent purpose; who needs a
key of it before lends it his own.

An endpoint that proves its latest block only proves the state below a block until that is sealed.
There what messages wanted is asked for at once, as urgently as by a message.

Called on the loop of the network.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final, Protocol

from foreblock.errors import EndpointError
from foreblock.sources.state_learner import ExecutedBlocks, FoundState, KnownKeys
from foreblock.upstream.budget import Purpose, price
from foreblock.upstream.hot_set import PORTION_ACCOUNTS, HotAccount, HotSet
from foreblock.upstream.wanted import Wanted

KEEP_SECONDS: Final = 30.0  # between two times that the set is kept
KEEP_ACCOUNTS: Final = 256  # in one transaction
TRIES: Final = 4  # for one portion
PORTION_SECONDS: Final = 60.0  # that one try of a portion may take
SHORTEST_WAIT, LONGEST_WAIT = 0.5, 30.0  # seconds after a try that found nothing
BUSY_SECONDS: Final = 0.5  # until it is looked again whether there is room
AT_ONCE_SECONDS: Final = 2.0  # that what is asked for at once may take: then a block has come
AT_ONCE_SHARE: Final = 0.5  # of the units: the rest is for what is new


class Finder(Protocol):
    """Makes keys known."""

    async def find_in_time(
        self,
        wanted: Wanted,
        executed: Callable[[], ExecutedBlocks],
        purpose: Purpose,
        seconds: float,
        *,
        is_used: bool = True,
    ) -> FoundState:
        """Fetch keys, and know them after that; they need not be in use. Raises `EndpointError`."""


Keep = Callable[[Mapping[bytes, HotAccount], Sequence[bytes]], Awaitable[None]]
HasRoom = Callable[[], bool]


class HotFetching:
    """The keys in use of one network."""

    def __init__(
        self, hot: HotSet, finder: Finder, state: KnownKeys, keep: Keep, *, has_room: HasRoom
    ) -> None:
        """`keep` keeps changes of the set; nothing is fetched while there is no room for it."""
        self._hot: Final = hot
        self._finder: Final = finder
        self._state: Final = state
        self._keep: Final = keep
        self._has_room: Final = has_room
        self._begun: Final = asyncio.Event()
        self._units = 0.0  # for what is asked for at once
        self.wanted = 0  # keys that were to be known again
        self.known = 0  # of them, those that are
        self.is_fetching = False

    def begin(self, units: float = 0.0) -> None:
        """Fetch all that is not known: the base is another one.

        What messages wanted is asked for at once, for a part of these units.
        """
        self._units = units
        self._begun.set()

    async def fetch(self) -> None:
        """Fetch whenever it is begun, until cancelled."""
        while True:
            await self._begun.wait()
            self._begun.clear()
            lately = list(self._hot.take_lately())
            await self._fetch_at_once(lately, self._units * AT_ONCE_SHARE)
            for portion in lately:
                await self._fetch(portion)
            await self._fetch_all(list(self._hot.portions()))

    async def _fetch_at_once(self, portions: Sequence[Wanted], units: float) -> None:
        """Ask for as many portions as these units pay for; what is not found comes later."""
        most = int(units / price("eth_getProof")) // PORTION_ACCOUNTS
        if units:
            await asyncio.gather(*map(self._find_at_once, portions[: max(1, most)]))

    async def _find_at_once(self, portion: Wanted) -> None:
        if left := self._state.unknown(portion):
            with suppress(EndpointError):
                await self._finder.find_in_time(
                    left, self._state.executed, Purpose.FLASHBLOCK, AT_ONCE_SECONDS, is_used=False
                )

    async def _fetch_all(self, portions: Sequence[Wanted]) -> None:
        self.wanted, self.known = sum(each.keys for each in portions), 0
        self.is_fetching = True
        for portion in portions:
            left = await self._fetch(portion)
            if self._begun.is_set():
                return
            self.known += portion.keys - left.keys
            await asyncio.sleep(0)  # where all is known, others have their turn
        self.is_fetching = False

    async def _fetch(self, portion: Wanted) -> Wanted:
        """Know a portion, as far as it can be had; gives what is left of it."""
        wait = SHORTEST_WAIT
        left = self._state.unknown(portion)
        for _ in range(TRIES):
            if not left or self._begun.is_set():
                break
            while not self._has_room():  # noqa: ASYNC110, room has no event
                await asyncio.sleep(BUSY_SECONDS)
            try:
                await self._finder.find_in_time(
                    left, self._state.executed, Purpose.WARM_UP, PORTION_SECONDS, is_used=False
                )
            except EndpointError:
                await asyncio.sleep(wait)
                wait = min(2 * wait, LONGEST_WAIT)
            left = self._state.unknown(portion)
        return left

    async def keep(self) -> None:
        """Keep the set now and then, until cancelled."""
        while True:
            await asyncio.sleep(KEEP_SECONDS)
            await self.keep_now()

    async def keep_now(self) -> None:
        """Keep what has changed, a little at a time."""
        while True:
            put, gone = self._hot.take_changes(KEEP_ACCOUNTS)
            if not put and not gone:
                return
            await self._keep(put, gone)

    def fact(self) -> str:
        """How much is in use, and how much of it was fetched again; for people."""
        line = f"hot set: {len(self._hot)} accounts with {self._hot.slots} slots"
        if not self.wanted:
            return line
        so_far = " so far" if self.is_fetching else ""
        return f"{line}; {self.known} of {self.wanted} keys known again{so_far}"
