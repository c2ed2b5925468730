"""Reads inline, in turns, and shared: with toy steps and a driven clock."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from itertools import pairwise
from typing import Any, TypeVar

import pytest

from foreblock.errors import StoreDamaged, TimedOut
from foreblock.scheduling.reply import Text, in_pieces
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Steps
from foreblock.scheduling.thresholds import THRESHOLDS
from support.servers.long_work import Clock, scheduler

LONG = THRESHOLDS.pieces_bytes
MOST_AT_ONCE = THRESHOLDS.shared_reads
ROUND_SECONDS = THRESHOLDS.read_round_seconds
SLICE_SECONDS = THRESHOLDS.read_slice_seconds

T = TypeVar("T")
TIMEOUT_MS = 5_000


class Reading:
    """A read of several steps with this duration each."""

    def __init__(self, clock: Clock, steps: int, seconds: float, outcome: bytes = b"read") -> None:
        self.clock = clock
        self.left = steps
        self.seconds = seconds
        self.outcome = outcome
        self.begun = 0
        self.failure: Exception | None = None

    def __call__(self) -> Steps[bytes]:
        self.begun += 1
        while self.left:
            self.clock.now += self.seconds
            self.left -= 1
            if self.failure is not None:
                raise self.failure
            yield None
        return self.outcome


def made(clock: Clock) -> Scheduler:
    return scheduler(TIMEOUT_MS, clock)


def run(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    return asyncio.run(main())


async def awaited(outcome: bytes | Awaitable[Text]) -> bytes:
    text = await outcome if isinstance(outcome, Awaitable) else outcome
    assert isinstance(text, bytes)
    return text


async def rounds(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def test_short_reads_are_answered_in_place_until_the_round_is_used_up() -> None:
    clock = Clock()
    reads = made(clock)

    async def main() -> None:
        for _ in range(4):
            reading = Reading(clock, 1, ROUND_SECONDS / 4)
            assert reads.read(reading()) == b"read"
        late = Reading(clock, 1, ROUND_SECONDS / 4)
        outcome = reads.read(late())
        assert isinstance(outcome, Awaitable)
        assert late.left == 1, "nothing of it is done in this round"
        await rounds(1)
        assert reads.read(Reading(clock, 1, 1e-6)()) == b"read", "a new round begins"
        assert await outcome == b"read"

    run(main)


def test_a_long_read_has_a_slice_in_each_turn() -> None:
    clock = Clock()
    reads = made(clock)

    async def main() -> None:
        reading = Reading(clock, 20, SLICE_SECONDS / 4)
        outcome = reads.read(reading())
        assert reading.left == 16
        task = asyncio.ensure_future(awaited(outcome))
        seen = []
        while not task.done():
            seen.append(reading.left)
            await rounds(1)
        assert await task == b"read"
        assert {before - after for before, after in pairwise(seen)} <= {0, 4}

    run(main)


def test_long_texts_count_as_time_and_short_ones_do_not() -> None:
    reads = made(Clock())

    async def main() -> None:
        long, short = b"x" * 4_000_000, b"x" * (LONG - 1)
        assert reads.send_text(long) is long
        assert isinstance(reads.send_text(short), bytes)
        outcome = reads.send_text(long)
        assert isinstance(outcome, Awaitable), "another one was written in this round"
        assert await outcome is long

    run(main)


def test_pieces_are_never_given_at_once() -> None:
    reads = made(Clock())
    pieces = [b"x" * LONG, b"y"]
    assert in_pieces(pieces) is pieces
    assert in_pieces([b"x", b"y"]) == b"xy"

    async def main() -> None:
        for outcome in (reads.send_text(pieces), reads.coalesce("key", lambda: given(pieces))):
            assert isinstance(outcome, Awaitable)
            assert await outcome == pieces

    run(main)


def given(text: Text) -> Steps[Text]:
    yield None
    return text


def test_equal_reads_are_made_once() -> None:
    clock = Clock()
    reads = made(clock)
    reading = Reading(clock, 100, SLICE_SECONDS)

    async def main() -> list[bytes]:
        first = asyncio.ensure_future(awaited(reads.coalesce("key", reading)))
        await rounds(2)
        others = [asyncio.ensure_future(awaited(reads.coalesce("key", reading))) for _ in range(50)]
        return await asyncio.gather(first, *others)

    assert run(main) == [b"read"] * 51
    assert reading.begun == 1


def test_equal_reads_of_one_round_begin_no_more_than_the_round_has_time_for() -> None:
    clock = Clock()
    reads = made(clock)
    readings = [Reading(clock, 10, SLICE_SECONDS) for _ in range(50)]

    async def main() -> list[bytes]:
        return await asyncio.gather(
            *[asyncio.ensure_future(awaited(reads.coalesce("key", each))) for each in readings]
        )

    assert run(main) == [b"read"] * 50
    assert sum(10 - each.left for each in readings) == 10, "one of them is made"


def test_when_the_first_asker_goes_away_another_one_goes_on() -> None:
    clock = Clock()
    reads = made(clock)
    reading = Reading(clock, 100, SLICE_SECONDS)

    async def main() -> list[bytes]:
        first = asyncio.ensure_future(awaited(reads.coalesce("key", reading)))
        await rounds(5)
        others = [asyncio.ensure_future(awaited(reads.coalesce("key", reading))) for _ in range(5)]
        await rounds(5)
        others[0].cancel()
        first.cancel()
        await rounds(3)
        assert 0 < reading.left < 99
        return await asyncio.gather(*others[1:])

    assert run(main) == [b"read"] * 4
    assert reading.begun == 2, "on a separate view, with the earlier state"


def test_when_all_have_gone_the_next_one_is_not_kept_waiting() -> None:
    clock = Clock()
    reads = made(clock)
    reading = Reading(clock, 100, SLICE_SECONDS)

    async def main() -> bytes:
        tasks = [asyncio.ensure_future(awaited(reads.coalesce("key", reading))) for _ in range(3)]
        await rounds(5)
        for task in tasks:
            task.cancel()
        never_awaited = reads.coalesce("key", reading)
        assert isinstance(never_awaited, Coroutine)
        never_awaited.close()
        return await awaited(reads.coalesce("key", reading))

    assert run(main) == b"read"


def test_who_runs_out_of_time_leaves_what_is_made_to_the_others() -> None:
    clock = Clock()
    reads = made(clock)
    reading = Reading(clock, 4, 2.0)

    async def main() -> list[bytes | BaseException]:
        first = asyncio.ensure_future(awaited(reads.coalesce("key", reading)))
        await rounds(1)
        second = asyncio.ensure_future(awaited(reads.coalesce("key", reading)))
        return list(await asyncio.gather(first, second, return_exceptions=True))

    timed_out, found = run(main)
    assert isinstance(timed_out, TimedOut)
    assert found == b"read"


def test_a_failure_is_everybodys() -> None:
    clock = Clock()
    reads = made(clock)
    reading = Reading(clock, 10, SLICE_SECONDS)

    async def main() -> list[bytes | BaseException]:
        tasks = [asyncio.ensure_future(awaited(reads.coalesce("key", reading))) for _ in range(3)]
        await rounds(2)
        reading.failure = StoreDamaged("a row")
        found = await asyncio.gather(*tasks, return_exceptions=True)
        reading.failure = None
        assert await awaited(reads.coalesce("key", reading)) == b"read", "the next one tries again"
        return list(found)

    assert [type(each) for each in run(main)] == [StoreDamaged] * 3


def test_few_are_half_made_at_once_and_the_first_ones_end_first() -> None:
    clock = Clock()
    reads = made(clock)
    readings = [Reading(clock, 3, SLICE_SECONDS / 100) for _ in range(3 * MOST_AT_ONCE)]

    async def main() -> None:
        assert isinstance(reads.send_text(b"x" * 4_000_000), bytes)  # no time is left in this round
        tasks = [
            asyncio.ensure_future(awaited(reads.coalesce(place, each)))
            for place, each in enumerate(readings)
        ]
        most = 0
        while not all(task.done() for task in tasks):
            await rounds(1)
            most = max(most, sum(each.begun and bool(each.left) for each in readings))
            done = [task.done() for task in tasks]
            assert done == sorted(done, reverse=True)
        assert most <= MOST_AT_ONCE

    run(main)


def test_without_a_loop_everything_is_in_place() -> None:
    clock = Clock()
    reads = made(clock)
    for _ in range(3):
        assert reads.read(Reading(clock, 1, ROUND_SECONDS / 2)()) == b"read"


@pytest.mark.parametrize("seconds", [0.0, ROUND_SECONDS])
def test_what_a_read_raises_is_raised(seconds: float) -> None:
    clock = Clock()
    reads = made(clock)
    reading = Reading(clock, 1, seconds)
    reading.failure = StoreDamaged("a row")

    async def main() -> None:
        with pytest.raises(StoreDamaged):
            reads.read(reading())

    run(main)
