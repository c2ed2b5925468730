"""Run until the first of several tasks ends."""

import asyncio
import gc

import pytest

from foreblock.log.connection import end, first_of


async def never() -> None:
    await asyncio.Event().wait()


async def stubborn(swallowed: list[int]) -> None:
    """Swallow the first cancellation, as `wait_for` may."""
    try:
        await never()
    except asyncio.CancelledError:
        swallowed.append(1)
    await never()


def test_the_others_are_ended_even_those_that_do_not_hear_at_once() -> None:
    swallowed: list[int] = []
    asyncio.run(first_of(asyncio.sleep(0.01), stubborn(swallowed), never()))
    assert swallowed == [1]


def test_what_one_raises_is_raised() -> None:
    async def fail() -> None:
        raise ValueError("why")

    with pytest.raises(ValueError, match="why"):
        asyncio.run(first_of(never(), fail()))


def test_of_two_that_fail_at_once_one_is_raised_and_no_other_is_complained_of() -> None:
    complaints: list[object] = []

    async def fail() -> None:
        raise ValueError("why")

    async def run() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, what: complaints.append(what))
        with pytest.raises(ValueError, match="why"):
            await first_of(fail(), fail())
        gc.collect()

    asyncio.run(run())
    assert not complaints


def test_ending_nothing_is_nothing() -> None:
    asyncio.run(end([]))
