"""What is in use is fetched again at another anchor: all of it, behind the others, and once."""

import asyncio
from collections.abc import Callable, Mapping, Sequence

import pytest

from foreblock.errors import NoUpstream
from foreblock.sources import hot_fetching
from foreblock.sources.hot_fetching import HotFetching
from foreblock.sources.state_learner import ExecutedBlocks, FoundState
from foreblock.upstream.budget import Purpose
from foreblock.upstream.hot_set import HotAccount, HotSet
from foreblock.upstream.wanted import Found, Wanted

A, B = b"\xaa" * 20, b"\xbb" * 20
ALL = Wanted(frozenset({A, B}), {A: frozenset({1, 2})})


class World:
    """Knows what was fetched, of one epoch; finds everything, if it finds anything."""

    def __init__(self) -> None:
        self.known = Wanted()
        self.asked: list[Wanted] = []
        self.failures = 0
        self.room = True
        self.kept: dict[bytes, HotAccount] = {}
        self.restart: Callable[[], None] = lambda: None
        self.on_ask: Callable[[], None] = lambda: None

    def executed(self) -> ExecutedBlocks:
        return ExecutedBlocks(1, [], keeps_hashes=True)

    def unknown(self, wanted: Wanted) -> Wanted:
        return wanted.without(self.known)

    async def find_in_time(
        self,
        wanted: Wanted,
        _: Callable[[], ExecutedBlocks],
        purpose: Purpose,
        seconds: float,
    ) -> FoundState:
        assert purpose is Purpose.WARM_UP
        assert seconds > 0
        assert self.room, "there is no room for it"
        self.asked.append(wanted)
        self.on_ask()
        if self.failures:
            self.failures -= 1
            raise NoUpstream("it rains", 1)
        self.known = self.known.also(wanted)
        return FoundState(Found(), (), {})

    async def keep(self, put: Mapping[bytes, HotAccount], gone: Sequence[bytes]) -> None:
        self.kept.update(put)
        for each in gone:
            self.kept.pop(each, None)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SHORTEST_WAIT", "LONGEST_WAIT", "BUSY_SECONDS", "KEEP_SECONDS"):
        monkeypatch.setattr(hot_fetching, name, 0.001)


def fetched(world: World, *, until: Callable[[HotFetching], bool], begin: bool = True) -> str:
    """Fetch until something holds; gives what it says of itself then."""

    async def body() -> str:
        hot = HotSet()
        hot.note(ALL)
        fetching = HotFetching(hot, world, world, world.keep, has_room=lambda: world.room)
        tasks = [asyncio.create_task(each) for each in (fetching.fetch(), fetching.keep())]
        if begin:
            fetching.begin()
        async with asyncio.timeout(60):
            while not until(fetching):  # noqa: ASYNC110, it says it to nobody
                await asyncio.sleep(0.001)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return fetching.fact()

    return asyncio.run(body())


def is_known(fetching: HotFetching) -> bool:
    return fetching.known == ALL.keys and not fetching.is_fetching


def test_all_that_is_not_known_is_fetched_once() -> None:
    world = World()
    world.known = Wanted(frozenset({B}))
    said = fetched(world, until=is_known)
    assert world.asked == [ALL.without(Wanted(frozenset({B})))]
    assert said == "hot set: 2 accounts with 2 slots; 4 of 4 keys known again"


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
    assert said.endswith("0 of 4 keys known again")


def test_another_anchor_begins_from_the_first() -> None:
    world = World()

    def another() -> None:
        if len(world.asked) == 1:
            world.failures = 1
            world.restart()

    async def body() -> None:
        hot = HotSet()
        hot.note(ALL)
        fetching = HotFetching(hot, world, world, world.keep, has_room=lambda: True)
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
    assert said == "hot set: 2 accounts with 2 slots"


def test_it_waits_until_there_is_room() -> None:
    world, looks = World(), 0
    world.room = False

    def look(fetching: HotFetching) -> bool:
        nonlocal looks
        looks += 1
        world.room = looks > 20
        return is_known(fetching)

    fetched(world, until=look)
    assert world.asked == [ALL]
