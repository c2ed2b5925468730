"""Slices in order, one in each round of the loop, and places for addresses in turn."""

import asyncio
from itertools import pairwise

from foreblock.scheduling.fair_queue import FairQueue, WorkSlots
from foreblock.scheduling.reply import Client


async def take(queue: FairQueue, name: str, count: int, log: list[str]) -> None:
    for _ in range(count):
        await queue.wait()
        log.append(name)


async def count_rounds(log: list[str], until: asyncio.Future[None]) -> None:
    """An ordinary request in every round of the loop."""
    while not until.done():
        log.append("other")
        await asyncio.sleep(0)


async def share(counts: dict[str, int]) -> list[str]:
    queue, log = FairQueue(), list[str]()
    tasks = asyncio.gather(*(take(queue, name, count, log) for name, count in counts.items()))
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
        queue, log = FairQueue(), list[str]()
        gone = [asyncio.ensure_future(take(queue, "gone", 1, log)) for _ in range(3)]
        stays = asyncio.ensure_future(take(queue, "stays", 2, log))
        await asyncio.sleep(0)
        for task in gone:
            task.cancel()
        await stays
        return log

    assert asyncio.run(leave()) == ["stays", "stays"]


def test_it_is_known_whether_somebody_waits() -> None:
    async def look() -> tuple[bool, bool, bool]:
        queue, log = FairQueue(), list[str]()
        before = queue.is_busy
        task = asyncio.ensure_future(take(queue, "a", 1, log))
        await asyncio.sleep(0)
        during = queue.is_busy
        await task
        await asyncio.sleep(0)
        return before, during, queue.is_busy

    assert asyncio.run(look()) == (False, True, False)


def test_addresses_that_wait_get_places_in_turn() -> None:
    async def main() -> list[str]:
        slots, order = WorkSlots(1), list[str]()
        assert slots.try_acquire()
        assert not slots.try_acquire()

        async def wait(address: str, number: int) -> None:
            await slots.wait(Client(address, number))
            order.append(f"{address}{number}")
            slots.release()

        waiting = [("a", 1), ("a", 2), ("a", 3), ("b", 4), ("b", 5), ("c", 6)]
        tasks = [asyncio.ensure_future(wait(*each)) for each in waiting]
        await asyncio.sleep(0)
        slots.release()
        await asyncio.gather(*tasks)
        assert slots.try_acquire(), "the last one gave it back"
        return order

    assert asyncio.run(main()) == ["a1", "b4", "c6", "a2", "b5", "a3"]


def test_who_leaves_takes_no_place_with_him() -> None:
    async def main() -> None:
        slots = WorkSlots(1)
        assert slots.try_acquire()
        tasks = [asyncio.ensure_future(slots.wait(None)) for _ in range(3)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        slots.release()
        tasks[1].cancel()  # just after it got the place
        await asyncio.gather(*tasks, return_exceptions=True)
        assert not tasks[2].cancelled()
        slots.release()
        assert slots.try_acquire()

    asyncio.run(main())
