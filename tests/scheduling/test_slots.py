"""Who may go on with what takes memory: so many at once, and addresses in turn."""

import asyncio
from collections.abc import Awaitable
from functools import partial

import pytest

from foreblock.errors import TimedOut
from foreblock.methods.simulations import MOST_BEGUN, SLICE_SECONDS, Simulations
from foreblock.scheduling.steps import Pace, Steps
from support.servers.long_work import threads


class Clock:
    """Moves when it is told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


class Holding:
    """Simulations that take several slices and hold something from their first on."""

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
    """All that come in one round have one first slice together, the others none."""
    clock = Clock()
    holding, crowd = Holding(clock), Simulations(threads(), 10**9, clock)

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
        holding, crowd = Holding(clock), Simulations(threads(), 50, clock)
        for _ in range(MOST_BEGUN):
            assert crowd._slots.take()
        run = crowd.run(partial(holding, 3))
        assert not isinstance(run, str)
        with pytest.raises(TimedOut):
            await run
        assert holding.held == 0

    asyncio.run(main())
