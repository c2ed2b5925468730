"""Pending results: their continuations, and their cancellation."""

import asyncio
from collections.abc import Awaitable

import pytest

from foreblock.scheduling.steps import Mapped, discard


async def seven() -> int:
    return 7


async def fails() -> int:
    raise ValueError("no")


def awaited(result: Awaitable[object]) -> object:
    async def wait() -> object:
        return await result

    return asyncio.run(wait())


def test_what_follows_is_made_once_the_first_is_there() -> None:
    assert awaited(Mapped(seven(), str)) == "7"


def test_what_follows_may_take_its_time_as_well() -> None:
    async def half(number: int) -> float:
        return number / 2

    def half_of_odd(number: int) -> float | Awaitable[float]:
        return half(number) if number % 2 else number

    assert awaited(Mapped(Mapped(seven(), half_of_odd), str)) == "3.5"


def test_a_failure_is_that_of_the_first() -> None:
    with pytest.raises(ValueError, match="no"):
        awaited(Mapped(fails(), str))


@pytest.mark.filterwarnings("error")
def test_nothing_is_left_of_what_was_given_up() -> None:
    """A coroutine that is dropped without being closed would warn."""
    discard(seven())
    discard(Mapped(Mapped(seven(), str), len))


def test_a_future_that_is_given_up_is_cancelled() -> None:
    async def give_up_one() -> bool:
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        discard(Mapped(future, str))
        return future.cancelled()

    assert asyncio.run(give_up_one())
