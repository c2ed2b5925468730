"""Reads that grow with a block or with history: in place while there is time, else in turns.

A read that is short costs less than to put it off. But two hundred clients that each ask for
something short hold the loop for all of it, and a balance would wait for them. So in one
round of the loop reads run in place for a millisecond at most, all of them together; those
that come later in the round wait for their turn, as the rest of a long one does.

What many ask for at the same time is made once (`share`). It is made by one of those who
wait, on that one's own view. If that one goes away, or runs out of time, the next goes on,
on its own view, with what is kept by then: nothing is read from a view that was closed, and
nobody's leaving harms another.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from functools import partial
from typing import Any, Final, TypeVar

from foreblock.errors import TimedOut
from foreblock.ledger.simulation.steps import Pace, Steps, paced
from foreblock.methods.placement import duration
from foreblock.methods.simulations import Simulations

T = TypeVar("T")

ROUND_SECONDS: Final = 0.001  # of reads in place, in one round of the loop


class Reads:
    """The reads of one service, in one loop."""

    def __init__(
        self,
        simulations: Simulations,
        timeout_ms: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`timeout_ms` is how long one waits for what another makes."""
        self._simulations: Final = simulations
        self._timeout_ms: Final = timeout_ms
        self._clock: Final = clock
        self._spent = 0.0  # seconds in this round
        self._under_way: Final[dict[Hashable, _UnderWay]] = {}

    def run(self, steps: Steps[T]) -> T | Awaitable[T]:
        """What the steps come to, at once if there is time for it.

        Raises what they do, and `TimedOut`.
        """
        if self._spent >= ROUND_SECONDS:
            return self._simulations.run(partial(_in_turn, steps))
        begun = self._clock()
        try:
            return self._simulations.run(partial(paced, steps))
        finally:
            self._note(self._clock() - begun)

    def share(self, key: Hashable, begin: Callable[[], Steps[T]]) -> T | Awaitable[T]:
        """The same, made once for all who ask for this key meanwhile.

        `begin` looks first for what is kept of it. Equal keys mean equal outcomes, whichever
        view they are made on.
        """
        if key in self._under_way or self._spent >= ROUND_SECONDS:
            return self._await(key, begin)
        outcome = self.run(begin())
        return self._lead(key, outcome) if isinstance(outcome, Awaitable) else outcome

    async def _await(self, key: Hashable, begin: Callable[[], Steps[T]]) -> T:
        until = self._clock() + self._timeout_ms / 1000
        while (other := self._under_way.get(key)) is not None:
            try:
                await asyncio.wait_for(other.ended.wait(), until - self._clock())
            except TimeoutError:
                raise TimedOut(duration(self._timeout_ms)) from None
            if other.failure is not None:
                raise other.failure
            if other.is_done:
                result: T = other.result
                return result
        outcome = self._simulations.run(partial(_in_turn, begin()))
        return await self._lead(key, outcome) if isinstance(outcome, Awaitable) else outcome

    async def _lead(self, key: Hashable, outcome: Awaitable[T]) -> T:
        """Await the outcome for all who want it. Another may have begun in the same round."""
        if key in self._under_way:
            return await outcome
        leading = self._under_way[key] = _UnderWay()
        try:
            result = await outcome
        except TimedOut:
            raise  # the others have time left, and what is kept by now is theirs
        except Exception as failure:
            leading.failure = failure
            raise
        else:
            leading.result, leading.is_done = result, True
            return result
        finally:
            del self._under_way[key]
            leading.ended.set()

    def _note(self, seconds: float) -> None:
        """Reads have held the loop for so long; the next round begins at 0 again."""
        if not self._spent:
            try:
                asyncio.get_running_loop().call_soon(self._begin_round)
            except RuntimeError:
                return  # nobody else wants anything of a loop that does not run
        self._spent += seconds

    def _begin_round(self) -> None:
        self._spent = 0.0


class _UnderWay:
    """Something that is being made, for those who wait for it."""

    def __init__(self) -> None:
        self.ended: Final = asyncio.Event()
        self.is_done = False
        self.result: Any = None
        self.failure: Exception | None = None


def _in_turn(steps: Steps[T], pace: Pace) -> Steps[T]:
    """Steps that begin when it is their turn."""
    yield None
    return (yield from paced(steps, pace))
