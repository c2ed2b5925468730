"""Combined requests: one at a time, rate-limited, and never served by an older response."""

import asyncio

import pytest

from foreblock.errors import PoolUnavailable
from foreblock.service.remote_sequencing import BatchedQuery
from support.servers.in_loop import in_loop
from support.servers.waiting import PATIENCE


class Writer:
    """Responds to a request on command."""

    def __init__(self) -> None:
        self.asked: list[tuple[bytes, ...]] = []
        self.may_answer = asyncio.Event()
        self.under_way = self.most_under_way = 0

    async def ask(self, keys: tuple[bytes, ...]) -> int:
        self.asked.append(keys)
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        await self.may_answer.wait()
        self.under_way -= 1
        return len(self.asked)


def rounds(writer: Writer, most: int = 3, patience_seconds: float = PATIENCE) -> BatchedQuery[int]:
    return BatchedQuery(writer.ask, most=most, gap_seconds=0.0, patience_seconds=patience_seconds)


async def run_callbacks() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


@in_loop
async def test_what_comes_while_a_round_is_under_way_joins_the_next() -> None:
    writer = Writer()
    asking = rounds(writer)
    first = asyncio.create_task(asking.result(b"a"))
    await run_callbacks()
    others = [asyncio.create_task(asking.result(key)) for key in (b"a", b"b", b"b")]
    await run_callbacks()
    assert writer.asked == [(b"a",)], "a pending response may be too old"
    writer.may_answer.set()
    assert await first == 1
    assert [await each for each in others] == [2, 2, 2]
    assert writer.asked == [(b"a",), (b"a", b"b")]


@in_loop
async def test_full_round_is_followed_by_another() -> None:
    writer = Writer()
    writer.may_answer.set()
    asking = rounds(writer)
    keys = [bytes([each]) for each in range(8)]
    await asyncio.gather(*map(asking.result, keys))
    assert writer.asked == [tuple(keys[:3]), tuple(keys[3:6]), tuple(keys[6:])]
    assert writer.most_under_way == 1


@in_loop
async def test_rounds_keep_their_distance() -> None:
    writer, loop = Writer(), asyncio.get_running_loop()
    writer.may_answer.set()
    asking = BatchedQuery(writer.ask, most=1, gap_seconds=0.02, patience_seconds=PATIENCE)
    began = loop.time()
    for _ in range(3):
        await asking.result(b"a")
    assert loop.time() - began >= 0.04


@in_loop
async def test_failure_is_told_to_all_of_its_round_and_to_no_other() -> None:
    failures = [PoolUnavailable(), None]

    async def ask(_: tuple[bytes, ...]) -> int:
        failure = failures.pop(0)
        if failure is not None:
            raise failure
        return 1

    asking = BatchedQuery(ask, most=2, gap_seconds=0.0, patience_seconds=PATIENCE)
    found = await asyncio.gather(*map(asking.result, (b"a", b"b", b"c")), return_exceptions=True)
    assert [type(each) for each in found] == [PoolUnavailable, PoolUnavailable, int]


@in_loop
async def test_who_waits_too_long_or_goes_away_stops_nobody() -> None:
    writer = Writer()
    hasty = rounds(writer, patience_seconds=0.001)
    with pytest.raises(PoolUnavailable):
        await hasty.result(b"a")
    writer.may_answer.set()
    await run_callbacks()
    patient = rounds(writer)
    gone, there = (asyncio.create_task(patient.result(key)) for key in (b"a", b"b"))
    await asyncio.sleep(0)
    gone.cancel()
    assert await there
