"""Slices, threads and places for simulations, with toy work and a driven clock."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import pairwise
from typing import Any

import pytest

from foreblock.errors import DeadlineExceeded, InvalidMessage, PoolFull, TimedOut
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import UNHURRIED, Pace, Steps, Work
from foreblock.scheduling.thresholds import THRESHOLDS
from support.servers.long_work import Clock, finish, scheduler, threads, thresholds

SLICE_SECONDS = THRESHOLDS.slice_seconds
FIRST_SECONDS = THRESHOLDS.first_slices_seconds
IN_PLACE_US = THRESHOLDS.work_us
MOST_BEGUN = THRESHOLDS.begun_simulations


def taking(clock: Clock, seconds: float, log: list[int | None]) -> Work:
    """Work of this duration, interrupted at the limit."""

    def work(*, timeout_us: int | None = None, **_limits: int | None) -> None:
        log.append(timeout_us)
        if timeout_us is not None and seconds * 1e6 > timeout_us:
            clock.now += timeout_us / 1e6
            raise DeadlineExceeded
        clock.now += seconds

    return work


def simulation(*works: Work) -> Callable[[Pace], Steps[str]]:
    """A simulation that runs these works in sequence."""

    def steps(pace: Pace) -> Steps[str]:
        for work in works:
            try:
                work(timeout_us=pace.timeout_us, step_us=pace.step_us)
            except DeadlineExceeded:
                yield work
            if pace.is_over():
                yield None
        return "done"

    return steps


def result_of(found: str | Awaitable[str]) -> str:
    """Return the result, awaited if necessary."""

    async def later(waiting: Awaitable[str]) -> str:
        return await waiting

    return found if isinstance(found, str) else asyncio.run(later(found))


def simulations(clock: Clock) -> Scheduler:
    return scheduler(1_000, clock)


def test_what_fits_into_a_slice_is_answered_at_once() -> None:
    clock, log = Clock(), list[int | None]()
    work = taking(clock, SLICE_SECONDS / 5, log)
    assert simulations(clock).run(simulation(work, work)) == "done"
    assert log == [IN_PLACE_US, IN_PLACE_US]


def test_what_takes_longer_goes_on_later() -> None:
    clock, log = Clock(), list[int | None]()
    found = simulations(clock).run(simulation(*[taking(clock, SLICE_SECONDS / 5, log)] * 10))
    assert not isinstance(found, str)
    assert len(log) < 10
    assert result_of(found) == "done"
    assert len(log) == 10


def test_others_have_their_turn_after_every_slice() -> None:
    clock, log, turns = Clock(), list[int | None](), []
    running = simulations(clock).run(simulation(*[taking(clock, SLICE_SECONDS / 5, log)] * 12))
    assert not isinstance(running, str)

    async def both() -> None:
        task = asyncio.ensure_future(running)
        while not task.done():
            turns.append(len(log))
            await asyncio.sleep(0)

    asyncio.run(both())
    assert len(turns) >= 3
    assert max(after - before for before, after in pairwise(turns)) <= 6


def test_simulations_of_one_round_are_begun_one_by_one() -> None:
    """A simulation that uses most of a slice is not cut short, and the next one waits for
    its turn.
    """
    clock, log = Clock(), list[int | None]()
    crowd = simulations(clock)
    most = simulation(*[taking(clock, FIRST_SECONDS / 2, log)] * 3)

    async def both() -> None:
        assert crowd.run(most) == "done"
        assert len(log) == 3
        running = crowd.run(most)
        assert not isinstance(running, str)
        assert len(log) == 3
        assert await running == "done"
        assert crowd.run(most) == "done", "another round"

    asyncio.run(both())


def test_heavy_work_is_begun_anew_with_the_time_that_is_left() -> None:
    clock, log = Clock(), list[int | None]()
    found = simulations(clock).run(simulation(taking(clock, 0.5, log)))
    assert result_of(found) == "done"
    first, second = log
    assert first == IN_PLACE_US
    assert second is not None
    assert 900_000 < second <= 1_000_000


def test_work_beyond_the_deadline_times_out() -> None:
    clock, log = Clock(), list[int | None]()
    with pytest.raises(TimedOut, match=r"timeout = 1s"):
        result_of(simulations(clock).run(simulation(taking(clock, 2, log))))


def test_many_short_portions_time_out_together() -> None:
    clock, log = Clock(), list[int | None]()
    with pytest.raises(TimedOut):
        result_of(simulations(clock).run(simulation(*[taking(clock, 0.0004, log)] * 4_000)))
    assert len(log) < 3_000


def judging(work: Work, _pace: Pace) -> Steps[str]:
    try:
        yield work
    except InvalidMessage as refused:
        return refused.why
    return "ran"


def failing(**_limits: int | None) -> None:
    raise InvalidMessage("no")


def test_failures_of_work_are_the_simulations_to_judge() -> None:
    begin = partial(judging, failing)
    assert result_of(scheduler(1_000).run(begin)) == "no"
    assert finish(begin(UNHURRIED)) == "no"


def test_too_much_heavy_work_is_refused() -> None:
    clock, log = Clock(), list[int | None]()
    crowded = Scheduler(threads(begun=1, capacity=0), 1_000, clock=clock)

    async def both() -> list[object]:
        runs: list[Any] = [crowded.run(simulation(taking(clock, 0.2, log))) for _ in range(2)]
        return list(await asyncio.gather(*runs, return_exceptions=True))

    first, second = asyncio.run(both())
    assert first == "done"
    assert isinstance(second, PoolFull)


def test_the_plain_driver_runs_everything_without_limits() -> None:
    clock, log = Clock(), list[int | None]()
    work = taking(clock, 5, log)
    assert finish(simulation(work, work)(UNHURRIED)) == "done"
    assert log == [None, None]


class Holding:
    """Simulations that take several slices and hold a resource from their first one on."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.held = 0
        self.most = 0
        self.begun = 0

    def __call__(self, slices: int, _pace: Pace) -> Steps[str]:
        self.begun += 1
        self.held += 1
        self.most = max(self.most, self.held)
        try:
            for _ in range(slices):
                self.clock.now += SLICE_SECONDS
                yield None
        finally:
            self.held -= 1
        return "done"


async def finished(runs: list[str | Awaitable[str]]) -> list[str]:
    async def one(run: str | Awaitable[str]) -> str:
        return run if isinstance(run, str) else await run

    return list(await asyncio.gather(*map(one, runs)))


def test_a_crowd_holds_no_more_than_some_of_it() -> None:
    """All simulations that arrive in one round share one first slice; later ones wait."""
    clock = Clock()
    holding, crowd = Holding(clock), scheduler(10**9, clock)

    async def main() -> list[str]:
        runs = [crowd.run(partial(holding, 5)) for _ in range(100)]
        assert holding.begun <= 2, "the first slice of the round is used up"
        return await finished(runs)

    assert asyncio.run(main()) == ["done"] * 100
    assert holding.most <= MOST_BEGUN
    assert holding.held == 0


def test_what_waits_for_a_place_ends_at_its_deadline() -> None:
    async def main() -> None:
        clock = Clock()
        holding = Holding(clock)
        with thresholds(begun_simulations=0):
            crowd = scheduler(50, clock)
        run = crowd.run(partial(holding, 3))
        assert not isinstance(run, str)
        with pytest.raises(TimedOut):
            await run
        assert holding.held == 0

    asyncio.run(main())
