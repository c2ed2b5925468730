"""The keys that messages and readers use; they are fetched again at a new anchor.

`WorkingSet` records which accounts and slots are in use, the latest last, and is stored now and
then. When the store restarts at another anchor, and when it is opened, `WorkingSetRefresh` fetches
the unknown part of it, portion by portion, so that these reads are fast again soon: first what
messages wanted since the last anchor, then the rest. It has the least urgent purpose; a caller that
needs a key earlier raises the urgency of its fetch.

An upstream that proves its latest block only proves the state below a block until that is sealed.
With such an upstream, the keys of messages are requested at once, as urgently as by a message.

Called on the loop of the network.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count, islice
from typing import Final, NamedTuple, Protocol

from msgspec import Struct, field

from foreblock.backoff import Backoff, Waits
from foreblock.errors import EndpointError
from foreblock.follow.state_fetcher import ExecutedBlocks, KnownKeys, ProvenState
from foreblock.follow.state_plan import IMPLEMENTATION
from foreblock.ledger.storage.state_keys import StateKeys
from foreblock.status.network_status import WorkingSetStatus
from foreblock.upstream.budget import Purpose, price

MOST_SLOTS: Final = 100_000
MOST_ACCOUNTS: Final = 50_000
FIRST_OF_ONE: Final = 64  # slots of an account that stay as long as it
LATER_OF_ONE: Final = 4_096  # slots of an account beside these

OF_A_PROOF: Final = 256  # slots of an account that are fetched together
PORTION_ACCOUNTS: Final = 16
PORTION_SLOTS: Final = 1_024


class HotAccount(NamedTuple):
    """An account, when it was used last, and its slots: the first, then the others in order."""

    used: int
    slots: tuple[int, ...]


class _Slots(Struct):
    used: int
    recent: bool = False  # whether messages used it since the last anchor
    first: dict[int, None] = field(default_factory=dict)
    later: dict[int, None] = field(default_factory=dict)  # the newest last

    def __len__(self) -> int:
        return len(self.first) + len(self.later)

    def add(self, slot: int) -> None:
        if slot in self.first:
            return
        if len(self.first) < FIRST_OF_ONE:
            self.first[slot] = None
            return
        self.later.pop(slot, None)
        self.later[slot] = None
        if len(self.later) > LATER_OF_ONE:
            del self.later[next(iter(self.later))]


class WorkingSet:
    """Accounts with slots, the newest last; called on one thread."""

    def __init__(self, most_slots: int = MOST_SLOTS, most_accounts: int = MOST_ACCOUNTS) -> None:
        self._most_slots: Final = most_slots
        self._most_accounts: Final = most_accounts
        self._accounts: Final[dict[bytes, _Slots]] = {}
        self._used = 0
        self._changed: Final[dict[bytes, None]] = {}  # and not stored yet, or removed
        self.slots = 0

    def __len__(self) -> int:
        return len(self._accounts)

    def take(self, kept: Mapping[bytes, HotAccount]) -> None:
        """Begin with the stored set."""
        for address, account in sorted(kept.items(), key=lambda each: each[1].used):
            self._add(address, account.slots, account.used)
        self._used = max((each.used for each in kept.values()), default=0)
        self._changed.clear()
        self._bound()

    def note(self, wanted: StateKeys, *, by_messages: bool = False) -> None:
        """Record keys used by messages or readers; `codes_of` are contracts.

        With a slot of a contract, the slots that contracts read first are fetched, so one entry
        represents them.
        """
        self._used += 1
        for address in wanted.accounts | wanted.slots.keys() | wanted.codes_of:
            of_all = (IMPLEMENTATION,) if address in wanted.codes_of else ()
            account = self._add(
                address, (*of_all, *sorted(wanted.slots.get(address, ()))), self._used
            )
            account.recent = account.recent or by_messages
        self._bound()

    def _add(self, address: bytes, slots: Iterable[int], used: int) -> _Slots:
        account = self._accounts.pop(address, None)
        if account is None:
            account = _Slots(used)
        account.used = used
        self._accounts[address] = account
        self._changed[address] = None
        self.slots -= len(account)
        for slot in slots:
            account.add(slot)
        self.slots += len(account)
        return account

    def _bound(self) -> None:
        while self.slots > self._most_slots or len(self._accounts) > self._most_accounts:
            oldest = next(iter(self._accounts))
            self.slots -= len(self._accounts.pop(oldest))
            self._changed[oldest] = None

    def take_changes(self, most: int) -> tuple[dict[bytes, HotAccount], list[bytes]]:
        """Return some accounts that changed since the last call, and some that were removed."""
        some = list(islice(self._changed, most))
        for address in some:
            del self._changed[address]
        put = {each: self._kept(self._accounts[each]) for each in some if each in self._accounts}
        return put, [each for each in some if each not in self._accounts]

    def portions(self) -> Iterator[StateKeys]:
        """All keys in portions, in the best order of fetching.

        Contracts first: without one a call takes more than one round trip, and one proof has all
        its slots; each account besides is a proof of its own.
        """
        return self._portions(list(reversed(self._accounts)))

    def take_recent(self) -> Iterator[StateKeys]:
        """Return the keys that messages used since the last call, in the same order."""
        recent = [each for each in reversed(self._accounts) if self._accounts[each].recent]
        for address in recent:
            self._accounts[address].recent = False
        return self._portions(recent)

    def _portions(self, newest: Sequence[bytes]) -> Iterator[StateKeys]:
        ordered = sorted(newest, key=lambda address: not len(self._accounts[address]))
        accounts = [(each, self._accounts[each]) for each in ordered]
        return portions([(each, (*at.first, *reversed(at.later))) for each, at in accounts])

    @staticmethod
    def _kept(account: _Slots) -> HotAccount:
        return HotAccount(account.used, (*account.first, *account.later))


def portions(accounts: Sequence[tuple[bytes, Sequence[int]]]) -> Iterator[StateKeys]:
    """Accounts with their slots, in portions of a few requests.

    First each account with as many slots as one proof has, in their order, then the next slots of
    those that have more, and so on, so that the first slots of all accounts come before the last of
    one.
    """
    left = [(address, slots) for address, slots in accounts]
    for depth in count():
        some: dict[bytes, frozenset[int]] = {}
        slots = 0
        for address, keys in left:
            part = frozenset(keys[depth * OF_A_PROOF : (depth + 1) * OF_A_PROOF])
            if some and (len(some) == PORTION_ACCOUNTS or slots + len(part) > PORTION_SLOTS):
                yield _wanted(some, depth)
                some, slots = {}, 0
            some[address] = part
            slots += len(part)
        if some:
            yield _wanted(some, depth)
        left = [each for each in left if len(each[1]) > (depth + 1) * OF_A_PROOF]
        if not left:
            return


def _wanted(slots: Mapping[bytes, frozenset[int]], depth: int) -> StateKeys:
    accounts = frozenset(slots) if depth == 0 else frozenset[bytes]()
    return StateKeys(accounts, {address: keys for address, keys in slots.items() if keys})


KEEP_SECONDS: Final = 30.0  # between two times that the set is kept
KEEP_ACCOUNTS: Final = 256  # in one transaction
TRIES: Final = 4  # for one portion
PORTION_SECONDS: Final = 60.0  # that one try of a portion may take
WAITS: Final = Waits(0.5, 30.0)  # after a try that found nothing
BUSY_SECONDS: Final = 0.5  # between two checks of the capacity
AT_ONCE_SECONDS: Final = 2.0  # for keys that are fetched at once: then a block has arrived
AT_ONCE_SHARE: Final = 0.5  # of the units: the rest is for what is new


class Finder(Protocol):
    """Fetches keys."""

    async def find_in_time(
        self,
        wanted: StateKeys,
        executed: Callable[[], ExecutedBlocks],
        purpose: Purpose,
        seconds: float,
        *,
        is_used: bool = True,
    ) -> ProvenState:
        """Fetch keys, which need not be in use. Raises `EndpointError`."""


Keep = Callable[[Mapping[bytes, HotAccount], Sequence[bytes]], Awaitable[None]]
HasRoom = Callable[[], bool]


class WorkingSetRefresh:
    """The keys in use of one network."""

    def __init__(
        self, hot: WorkingSet, finder: Finder, state: KnownKeys, keep: Keep, *, has_room: HasRoom
    ) -> None:
        """`keep` stores changes of the set; nothing is fetched while the budget is spent."""
        self._hot: Final = hot
        self._finder: Final = finder
        self._state: Final = state
        self._keep: Final = keep
        self._has_room: Final = has_room
        self._begun: Final = asyncio.Event()
        self._units = 0.0  # for keys that are fetched at once
        self.wanted = 0  # keys that were to be known again
        self.known = 0  # of them, those that are
        self.is_fetching = False

    def begin(self, units: float = 0.0) -> None:
        """Fetch all unknown keys at a new base.

        Keys that messages used are fetched at once, for a part of these units.
        """
        self._units = units
        self._begun.set()

    async def fetch(self) -> None:
        """Fetch after each start, until cancelled."""
        while True:
            await self._begun.wait()
            self._begun.clear()
            recent = list(self._hot.take_recent())
            await self._fetch_at_once(recent, self._units * AT_ONCE_SHARE)
            for portion in recent:
                await self._fetch(portion)
            await self._fetch_all(list(self._hot.portions()))

    async def _fetch_at_once(self, portions: Sequence[StateKeys], units: float) -> None:
        """Fetch the portions that these units pay for; the rest comes later."""
        most = int(units / price("eth_getProof")) // PORTION_ACCOUNTS
        if units:
            await asyncio.gather(*map(self._find_at_once, portions[: max(1, most)]))

    async def _find_at_once(self, portion: StateKeys) -> None:
        if left := self._state.unknown(portion):
            with suppress(EndpointError):
                await self._finder.find_in_time(
                    left, self._state.executed, Purpose.FLASHBLOCK, AT_ONCE_SECONDS, is_used=False
                )

    async def _fetch_all(self, portions: Sequence[StateKeys]) -> None:
        self.wanted, self.known = sum(len(each) for each in portions), 0
        self.is_fetching = True
        for portion in portions:
            left = await self._fetch(portion)
            if self._begun.is_set():
                return
            self.known += len(portion) - len(left)
            await asyncio.sleep(0)  # if all is known, other tasks have their turn
        self.is_fetching = False

    async def _fetch(self, portion: StateKeys) -> StateKeys:
        """Fetch a portion; return the keys that could not be fetched."""
        backoff = Backoff(WAITS)
        left = self._state.unknown(portion)
        for _ in range(TRIES):
            if not left or self._begun.is_set():
                break
            while not self._has_room():  # noqa: ASYNC110, the budget has no event
                await asyncio.sleep(BUSY_SECONDS)
            try:
                await self._finder.find_in_time(
                    left, self._state.executed, Purpose.WARM_UP, PORTION_SECONDS, is_used=False
                )
            except EndpointError:
                await asyncio.sleep(backoff.after())
            left = self._state.unknown(portion)
        return left

    async def keep(self) -> None:
        """Store the set now and then, until cancelled."""
        while True:
            await asyncio.sleep(KEEP_SECONDS)
            await self.keep_now()

    async def keep_now(self) -> None:
        """Store the changes, a little at a time."""
        while True:
            put, gone = self._hot.take_changes(KEEP_ACCOUNTS)
            if not put and not gone:
                return
            await self._keep(put, gone)

    def status(self) -> WorkingSetStatus:
        return WorkingSetStatus(
            len(self._hot), self._hot.slots, self.wanted, self.known, self.is_fetching
        )
