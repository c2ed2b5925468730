"""Results that are not there yet, and what it takes to let go of one that nobody waits for.

A coroutine that was never begun is closed, which undoes all, provided that it was not given
another one to wait for: that one would be left behind. Where a result follows from another,
a `Then` stands for both and begins neither before it is awaited.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, Final, Generic, TypeVar

T = TypeVar("T")
U = TypeVar("U")


class Then(Generic[T, U]):
    """What a function makes of a result, once that is there."""

    __slots__ = ("_first", "_function")

    def __init__(self, first: Awaitable[T], function: Callable[[T], U | Awaitable[U]]) -> None:
        self._first: Final = first
        self._function: Final = function

    def __await__(self) -> Generator[Any, None, U]:
        found = self._function((yield from self._first.__await__()))
        if isinstance(found, Awaitable):
            return (yield from found.__await__())
        return found

    def close(self) -> None:
        """It will not be awaited."""
        give_up(self._first)


def give_up(result: Awaitable[object]) -> None:
    """Let go of a result that nobody has begun to wait for."""
    if isinstance(result, asyncio.Future):
        result.cancel()
    elif isinstance(result, Coroutine | Then):
        result.close()
