"""State in use is fetched again at another anchor: all of it, with low priority, and once."""

import asyncio
from collections.abc import Callable, Mapping, Sequence

import pytest

from foreblock.backoff import Waits
from foreblock.errors import NoUpstream
from foreblock.follow import working_set as hot_fetching
from foreblock.follow.fetch_result import FetchResult
from foreblock.follow.state_fetcher import ExecutedBlocks, ProvenState
from foreblock.follow.working_set import PORTION_ACCOUNTS, HotAccount, WorkingSet, WorkingSetRefresh
from foreblock.ledger.storage.state_keys import StateKeys
from foreblock.status.network_status import WorkingSetStatus
from foreblock.upstream.budget import Purpose, price

A, B = b"\xaa" * 20, b"\xbb" * 20
ALL = StateKeys(frozenset({A, B}), {A: frozenset({1, 2})})
MESSAGES = StateKeys(frozenset(at.to_bytes(20) for at in range(3 * PORTION_ACCOUNTS - 1)))


class World:
    """Records fetched keys, of one epoch; finds everything or nothing."""

    def __init__(self) -> None:
        self.known = StateKeys()
        self.asked: list[StateKeys] = []
        self.urgent: list[bool] = []  # of each of them, whether it had the priority of a message
        self.failures = 0
        self.room = True
        self.kept: dict[bytes, HotAccount] = {}
        self.restart: Callable[[], None] = lambda: None
        self.on_ask: Callable[[], None] = lambda: None

    def executed(self) -> ExecutedBlocks:
        return ExecutedBlocks(1, [], keeps_hashes=True)

    def unknown(self, wanted: StateKeys) -> StateKeys:
        return wanted.without(self.known)

    async def find_in_time(
        self,
        wanted: StateKeys,
        _: Callable[[], ExecutedBlocks],
        purpose: Purpose,
        seconds: float,
        *,
        is_used: bool = True,
    ) -> ProvenState:
        assert not is_used, "it is not in use because it is fetched again"
        assert seconds > 0
        assert self.room, "there is no room for it"
        self.asked.append(wanted)
        self.urgent.append(purpose is Purpose.FLASHBLOCK)
        self.on_ask()
        if self.failures:
            self.failures -= 1
            raise NoUpstream("it rains", 1)
        self.known = self.known.also(wanted)
        return ProvenState(FetchResult(), {})

    async def keep(self, put: Mapping[bytes, HotAccount], gone: Sequence[bytes]) -> None:
        self.kept.update(put)
        for each in gone:
            self.kept.pop(each, None)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hot_fetching, "WAITS", Waits(0.001, 0.001))
    for name in ("BUSY_SECONDS", "KEEP_SECONDS"):
        monkeypatch.setattr(hot_fetching, name, 0.001)


def fetched(
    world: World, *, until: Callable[[WorkingSetRefresh], bool], begin: bool = True
) -> WorkingSetStatus:
    """Fetch until a condition holds; return the status then."""

    async def body() -> WorkingSetStatus:
        hot = WorkingSet()
        hot.note(ALL)
        fetching = WorkingSetRefresh(hot, world, world, world.keep, has_room=lambda: world.room)
        tasks = [asyncio.create_task(each) for each in (fetching.fetch(), fetching.keep())]
        if begin:
            fetching.begin()
        async with asyncio.timeout(60):
            while not until(fetching):  # noqa: ASYNC110, it says it to nobody
                await asyncio.sleep(0.001)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return fetching.status()

    return asyncio.run(body())


def is_known(fetching: WorkingSetRefresh) -> bool:
    return fetching.known == len(ALL) and not fetching.is_fetching


def test_all_that_is_not_known_is_fetched_once() -> None:
    world = World()
    world.known = StateKeys(frozenset({B}))
    said = fetched(world, until=is_known)
    assert world.asked == [ALL.without(StateKeys(frozenset({B})))]
    assert said == WorkingSetStatus(accounts=2, slots=2, wanted=4, known=4)


def _after_messages(units: float, failures: int = 0) -> World:
    """A hot set with many accounts of messages and one of readers, fetched again with these
    units.
    """
    world = World()
    world.failures = failures

    async def body() -> None:
        hot = WorkingSet()
        hot.note(MESSAGES, by_messages=True)
        hot.note(ALL)
        fetching = WorkingSetRefresh(hot, world, world, world.keep, has_room=lambda: True)
        task = asyncio.create_task(fetching.fetch())
        fetching.begin(units)
        async with asyncio.timeout(60):
            while world.unknown(MESSAGES.also(ALL)):  # noqa: ASYNC110, it says it to nobody
                await asyncio.sleep(0.001)
        first = len(world.asked)
        fetching.begin(units)
        for _ in range(100):  # turns of the loop, of which it needs a few
            await asyncio.sleep(0)
        assert not fetching.is_fetching
        assert len(world.asked) == first, "known state is not requested"
        task.cancel()

    asyncio.run(body())
    return world


def test_what_messages_wanted_comes_first() -> None:
    world = _after_messages(0.0)
    assert not any(world.urgent)
    count = -(-len(MESSAGES.accounts) // PORTION_ACCOUNTS)
    assert StateKeys.union(world.asked[:count]) == MESSAGES
    assert StateKeys.union(world.asked[count:]) == ALL


@pytest.mark.parametrize(("portions", "urgent"), [(1, 1), (2, 2), (100, 3)])
def test_where_only_the_tip_is_proven_it_comes_at_once_for_half_of_the_units(
    portions: int, urgent: int
) -> None:
    units = 2 * portions * PORTION_ACCOUNTS * price("eth_getProof")
    world = _after_messages(units)
    assert world.urgent[:urgent] == [True] * urgent
    assert not any(world.urgent[urgent:])
    assert StateKeys.union(world.asked[:urgent]).accounts <= MESSAGES.accounts


def test_what_was_not_found_at_once_is_fetched_as_the_rest() -> None:
    world = _after_messages(1.0, failures=1)
    assert world.urgent[0]
    assert world.asked[1] == world.asked[0]
    assert not any(world.urgent[1:])


def test_what_cannot_be_had_now_is_asked_for_again() -> None:
    world = World()
    world.failures = 2
    fetched(world, until=is_known)
    assert world.asked == [ALL] * 3


def test_nobody_is_asked_for_ever() -> None:
    world = World()
    world.failures = 1000
    said = fetched(world, until=lambda each: bool(each.wanted) and not each.is_fetching)
    assert world.asked == [ALL] * hot_fetching.TRIES
    assert (said.wanted, said.known) == (4, 0)


def test_another_anchor_begins_from_the_first() -> None:
    world = World()

    def another() -> None:
        if len(world.asked) == 1:
            world.failures = 1
            world.restart()

    async def body() -> None:
        hot = WorkingSet()
        hot.note(ALL)
        fetching = WorkingSetRefresh(hot, world, world, world.keep, has_room=lambda: True)
        world.restart = fetching.begin
        task = asyncio.create_task(fetching.fetch())
        fetching.begin()
        async with asyncio.timeout(60):
            while not is_known(fetching):  # noqa: ASYNC110, it says it to nobody
                await asyncio.sleep(0.001)
        task.cancel()

    world.on_ask = another
    asyncio.run(body())
    assert world.asked == [ALL, ALL]


def test_nothing_is_fetched_before_it_is_begun_and_the_set_is_kept() -> None:
    world = World()
    said = fetched(world, until=lambda _: len(world.kept) == 2, begin=False)
    assert world.asked == []
    assert world.kept[A].slots == (1, 2)
    assert said == WorkingSetStatus(accounts=2, slots=2)


def test_it_waits_until_there_is_room() -> None:
    world, looks = World(), 0
    world.room = False

    def look(fetching: WorkingSetRefresh) -> bool:
        nonlocal looks
        looks += 1
        world.room = looks > 20
        return is_known(fetching)

    fetched(world, until=look)
    assert world.asked == [ALL]
