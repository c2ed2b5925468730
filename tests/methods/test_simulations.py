"""The driver of simulations, with work and a clock of our own."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from foreblock.errors import DeadlineExceeded, InvalidMessage, PoolFull, TimedOut
from foreblock.ledger.simulation.steps import Steps, Work, finish
from foreblock.methods.simulations import IN_PLACE_US, SLICE_SECONDS, Simulations


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def taking(clock: Clock, seconds: float, log: list[int | None]) -> Work:
    """Work that takes so long, stopped where it may not."""

    def work(*, timeout_us: int | None = None, **_limits: int | None) -> None:
        log.append(timeout_us)
        if timeout_us is not None and seconds * 1e6 > timeout_us:
            clock.now += timeout_us / 1e6
            raise DeadlineExceeded
        clock.now += seconds

    return work


def steps(*works: Work | None) -> Steps[str]:
    yield from works
    return "done"


def settle(found: str | Awaitable[str]) -> str:
    """The result, waited for if it must be."""

    async def later(waiting: Awaitable[str]) -> str:
        return await waiting

    return found if isinstance(found, str) else asyncio.run(later(found))


def simulations(clock: Clock) -> Simulations:
    return Simulations(1_000, clock=clock)


def test_what_fits_into_a_slice_is_answered_at_once() -> None:
    clock, log = Clock(), list[int | None]()
    work = taking(clock, SLICE_SECONDS / 4, log)
    assert simulations(clock).run(steps(work, None, work)) == "done"
    assert log == [IN_PLACE_US, IN_PLACE_US]


def test_what_takes_longer_goes_on_later() -> None:
    clock, log = Clock(), list[int | None]()
    found = simulations(clock).run(steps(*[taking(clock, SLICE_SECONDS / 3, log)] * 10))
    assert not isinstance(found, str)
    assert len(log) < 10
    assert settle(found) == "done"
    assert len(log) == 10


def test_heavy_work_is_begun_anew_with_the_time_that_is_left() -> None:
    clock, log = Clock(), list[int | None]()
    found = simulations(clock).run(steps(taking(clock, 0.5, log), None))
    assert settle(found) == "done"
    first, second = log
    assert first == IN_PLACE_US
    assert second is not None
    assert 900_000 < second <= 1_000_000


def test_work_beyond_the_deadline_times_out() -> None:
    clock, log = Clock(), list[int | None]()
    with pytest.raises(TimedOut, match=r"timeout = 1s"):
        settle(simulations(clock).run(steps(taking(clock, 2, log))))


def test_many_short_portions_time_out_together() -> None:
    clock, log = Clock(), list[int | None]()
    with pytest.raises(TimedOut):
        settle(simulations(clock).run(steps(*[taking(clock, 0.0009, log)] * 2_000)))
    assert len(log) < 1_500


def judging(work: Work) -> Steps[str]:
    try:
        yield work
    except InvalidMessage as refused:
        return refused.why
    return "ran"


def failing(**_limits: int | None) -> None:
    raise InvalidMessage("no")


@pytest.mark.parametrize("drive", [finish, lambda it: Simulations(1_000).run(it)])
def test_failures_of_work_are_the_simulations_to_judge(
    drive: Callable[[Steps[str]], str],
) -> None:
    assert drive(judging(failing)) == "no"


def test_too_much_heavy_work_is_refused() -> None:
    clock, log = Clock(), list[int | None]()
    crowded = Simulations(1_000, threads=1, waiting=0, clock=clock)

    async def both() -> list[object]:
        runs: list[Any] = [crowded.run(steps(taking(clock, 0.2, log))) for _ in range(2)]
        return list(await asyncio.gather(*runs, return_exceptions=True))

    first, second = asyncio.run(both())
    assert first == "done"
    assert isinstance(second, PoolFull)


def test_the_plain_driver_runs_everything() -> None:
    clock, log = Clock(), list[int | None]()
    assert finish(steps(taking(clock, 5, log), None, taking(clock, 5, log))) == "done"
    assert log == [None, None]
