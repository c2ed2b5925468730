"""Turns: one slice in each round of the loop."""

import asyncio
from itertools import pairwise

from foreblock.scheduling.turns import Turns


async def take(turns: Turns, name: str, count: int, log: list[str]) -> None:
    for _ in range(count):
        await turns.wait()
        log.append(name)


async def count_rounds(log: list[str], until: asyncio.Future[None]) -> None:
    """An ordinary request in every round of the loop."""
    while not until.done():
        log.append("other")
        await asyncio.sleep(0)


async def share(counts: dict[str, int]) -> list[str]:
    turns, log = Turns(), list[str]()
    tasks = asyncio.gather(*(take(turns, name, count, log) for name, count in counts.items()))
    await count_rounds(log, asyncio.ensure_future(_nothing(tasks)))
    return log


async def _nothing(tasks: asyncio.Future[list[None]]) -> None:
    await tasks


def test_others_come_between_any_two_slices() -> None:
    log = asyncio.run(share({"a": 5, "b": 5, "c": 5, "d": 5}))
    assert sum(name != "other" for name in log) == 20
    assert all("other" in pair for pair in pairwise(log))


def test_all_who_wait_have_their_turn_in_order() -> None:
    log = [name for name in asyncio.run(share({"a": 3, "b": 3})) if name != "other"]
    assert log == ["a", "b"] * 3


def test_who_has_gone_away_does_not_hold_up_the_rest() -> None:
    async def leave() -> list[str]:
        turns, log = Turns(), list[str]()
        gone = [asyncio.ensure_future(take(turns, "gone", 1, log)) for _ in range(3)]
        stays = asyncio.ensure_future(take(turns, "stays", 2, log))
        await asyncio.sleep(0)
        for task in gone:
            task.cancel()
        await stays
        return log

    assert asyncio.run(leave()) == ["stays", "stays"]


def test_it_is_known_whether_somebody_waits() -> None:
    async def look() -> tuple[bool, bool, bool]:
        turns, log = Turns(), list[str]()
        before = turns.are_awaited
        task = asyncio.ensure_future(take(turns, "a", 1, log))
        await asyncio.sleep(0)
        during = turns.are_awaited
        await task
        await asyncio.sleep(0)
        return before, during, turns.are_awaited

    assert asyncio.run(look()) == (False, True, False)
