"""Running until the first of several things ends."""

import asyncio

import pytest

from foreblock.replication.first_of import end, first_of


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


def test_ending_nothing_is_nothing() -> None:
    asyncio.run(end([]))
