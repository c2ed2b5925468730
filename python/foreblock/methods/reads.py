"""Reads that grow with a block or with history: in place while there is time, else in turns.

A read that is short costs less than to put it off. But two hundred clients that each ask for
something short hold the loop for all of it, and a balance would wait for them. So in one
round of the loop reads run in place for a millisecond at most, all of them together, and
what it takes to write long answers counts as well; those that come later in the round wait
for their turn, as the rest of a long one does, which goes on for a millisecond each time.

What many ask for at the same time is made once (`share`). It is made by one of those who
wait, on that one's own view. If that one goes away, or runs out of time, the next goes on,
on its own view, with what is kept by then: nothing is read from a view that was closed, and
nobody's leaving harms another. A few at a time go on, in the order in which they came: all at
once would hold as many half-made answers, and none would end before its deadline.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Final, TypeVar

from foreblock.errors import TimedOut
from foreblock.methods.simulations import Simulations
from foreblock.scheduling.fair_queue import Round
from foreblock.scheduling.reply import Text
from foreblock.scheduling.steps import Steps

T = TypeVar("T")

ROUND_SECONDS: Final = 0.001  # of reads in place, in one round of the loop
SLICE_SECONDS: Final = 0.001  # of one read when it has its turn
MOST_AT_ONCE: Final = 4  # shared reads that are half made
LONG: Final = 262_144  # bytes of an answer that takes time to write
WRITING_SECONDS: Final = 0.5e-9  # a byte: it is copied some times on its way to a socket


class ReadBudget:
    """What the reads of all networks in one loop have together."""

    def __init__(self) -> None:
        self.round: Final = Round()
        self.half_made: Final = asyncio.Semaphore(MOST_AT_ONCE)


class Reads:
    """The reads of one network: a partial block's number means another block on another one."""

    def __init__(
        self,
        simulations: Simulations,
        clock: Callable[[], float] = time.monotonic,
        budget: ReadBudget | None = None,
    ) -> None:
        """`budget` is that of all reads in the same loop."""
        self._simulations: Final = simulations
        self._clock: Final = clock
        self._budget: Final = budget or ReadBudget()
        self._under_way: Final[dict[Hashable, _UnderWay]] = {}

    def run(self, steps: Steps[T]) -> T | Awaitable[T]:
        """What the steps come to, at once if there is time for it.

        Raises what they do, and `TimedOut`.
        """
        found = self._begin(steps)
        return self._in_turn(steps) if found is None else found[0]

    def give(self, text: Text) -> bytes | Awaitable[Text]:
        """A text that is there already; where it is long, when it is its turn."""
        if isinstance(text, bytes) and len(text) < LONG:
            return text
        return _at_once_or_later(self.run(_given(text)))

    def share(self, key: Hashable, begin: Callable[[], Steps[Text]]) -> bytes | Awaitable[Text]:
        """A text that is made once for all who ask for this key meanwhile.

        `begin` looks first for what is kept of it. Equal keys mean equal outcomes, whichever
        view they are made on.
        """
        if key in self._under_way:
            return self._await(key, begin)
        steps = begin()
        found = self._begin(steps)
        if found is None:
            return self._await(key, lambda: steps)
        return _at_once_or_later(found[0])

    async def _await(self, key: Hashable, begin: Callable[[], Steps[Text]]) -> Text:
        """Wait for another who makes it; else make it for all who come meanwhile."""
        deadline = self._simulations.deadline()
        while (other := self._under_way.get(key)) is not None:
            await self._simulations.wait_for(other.ended.wait(), deadline)
            if other.failure is not None:
                raise other.failure
            if other.result is not None:
                return other.result
        leading = self._under_way[key] = _UnderWay()
        try:
            await self._simulations.wait_for(self._budget.half_made.acquire(), deadline)
            try:
                result = await self._in_turn(begin())
            finally:
                self._budget.half_made.release()
        except TimedOut:
            raise  # the others have time left, and what is kept by now is theirs
        except Exception as failure:
            leading.failure = failure
            raise
        else:
            leading.result = result
            return result
        finally:
            del self._under_way[key]
            leading.ended.set()

    def _begin(self, steps: Steps[T]) -> tuple[T] | None:
        """What the steps come to, if there is time for it in this round."""
        if self._budget.round.spent >= ROUND_SECONDS:
            return None
        begun, length = self._clock(), 0
        until = begun + SLICE_SECONDS
        try:
            while self._clock() < until:
                next(steps)
        except StopIteration as done:
            length = length_of(done.value) if isinstance(done.value, bytes | list) else 0
            return (done.value,)
        finally:
            self._budget.round.add(self._clock() - begun + length * WRITING_SECONDS)
        return None

    def _in_turn(self, steps: Steps[T]) -> Awaitable[T]:
        return self._simulations.run_on(self._sliced(steps))

    def _sliced(self, steps: Steps[T]) -> Steps[T]:
        """The same steps, which know no pace and run nothing elsewhere, a slice at a time."""
        while True:
            until = self._clock() + SLICE_SECONDS
            over = False
            while not over:
                try:
                    next(steps)
                except StopIteration as done:
                    result: T = done.value
                    return result
                over = self._clock() >= until
            yield None


class _UnderWay:
    """Something that is being made, for those who wait for it."""

    def __init__(self) -> None:
        self.ended: Final = asyncio.Event()
        self.result: Text | None = None
        self.failure: Exception | None = None


def in_pieces(pieces: list[bytes]) -> Text:
    """A text that is left in pieces where it is long."""
    return pieces if sum(map(len, pieces)) >= LONG else b"".join(pieces)


def length_of(text: Text) -> int:
    """How many bytes a text has."""
    return len(text) if isinstance(text, bytes) else sum(map(len, text))


def _at_once_or_later(text: Text | Awaitable[Text]) -> bytes | Awaitable[Text]:
    """Pieces are written while others have their turn, so they are never given at once."""
    return _later(text) if isinstance(text, list) else text


async def _later(text: Text) -> Text:
    return text


def _given(text: Text) -> Steps[Text]:
    yield from ()
    return text
