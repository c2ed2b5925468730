"""Share a loop: slices in order, a budget for each round, slots for half-done work.

Long work runs in slices, one slice in each round of the loop (`FairQueue`). So an ordinary
request waits for one slice at most, however many requests take long. Work that is done
without waiting is charged to the round it is done in (`RoundBudget`).

Half-done work holds memory. A thousand simulations in turn would hold a thousand times as
much as one and end no sooner, so only some are started; the others wait for a place,
addresses in turn (`WorkSlots`).

What waits has a priority, which API keys decide: a lower one gets a slice or a place when no
higher one waits.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Hashable
from enum import IntEnum
from typing import Final


class Priority(IntEnum):
    """The order of what waits."""

    HIGH = 0
    NORMAL = 1
    LOW = 2


def priority_of(client: Hashable) -> Priority:
    """The priority of a client."""
    found: Priority = getattr(client, "priority", Priority.NORMAL)
    return found


class FairQueue:
    """First come, first served at each priority: one slice in each round of the loop."""

    def __init__(self) -> None:
        self._waiting: Final = tuple(deque[asyncio.Future[None]]() for _ in Priority)
        self._giving = False
        self.slices = 0  # that were given so far

    @property
    def length(self) -> int:
        """The number of waiting slices."""
        return sum(map(len, self._waiting))

    @property
    def is_busy(self) -> bool:
        """A slice is due in the next round of the loop."""
        return self._giving

    async def wait(self, priority: Priority = Priority.NORMAL) -> None:
        """Wait for a slice behind all that wait already. The caller ends the slice itself."""
        loop = asyncio.get_running_loop()
        turn = loop.create_future()
        self._waiting[priority].append(turn)
        if not self._giving:
            self._giving = True
            loop.call_soon(self._wake_next, loop)
        await turn

    def _wake_next(self, loop: asyncio.AbstractEventLoop) -> None:
        for waiting in self._waiting:
            while waiting:
                turn = waiting.popleft()
                if not turn.done():  # else its task was cancelled
                    self.slices += 1
                    turn.set_result(None)
                    loop.call_soon(self._wake_next, loop)
                    return
        self._giving = False


class RoundBudget:
    """Seconds that one kind of work has taken in the current round of the loop."""

    def __init__(self) -> None:
        self.spent = 0.0

    def add(self, seconds: float) -> None:
        """Charge the round; the next one starts at 0."""
        if not self.spent:
            try:
                asyncio.get_running_loop().call_soon(self._begin)
            except RuntimeError:
                return  # without a running loop nothing else waits
        self.spent += seconds

    def _begin(self) -> None:
        self.spent = 0.0


class WorkSlots:
    """A number of slots, given to waiting addresses in turn."""

    def __init__(self, count: int) -> None:
        self._free = count
        self._waiting: Final = tuple(
            OrderedDict[Hashable, deque[asyncio.Future[None]]]() for _ in Priority
        )

    def try_acquire(self) -> bool:
        """Take a slot if one is free."""
        if self._free <= 0:
            return False
        self._free -= 1
        return True

    async def wait(self, client: Hashable) -> None:
        """Wait for a slot, which the caller then has."""
        address = getattr(client, "address", None)
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting = self._waiting[priority_of(client)]
        waiting.setdefault(address, deque()).append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self.release()  # it was given just before
            raise

    def release(self) -> None:
        """Give the slot to the next address that waits, else free it."""
        for waiting in self._waiting:
            while waiting:
                address, places = waiting.popitem(last=False)
                place = places.popleft()
                if places:
                    waiting[address] = places
                if not place.done():  # else its task was cancelled
                    place.set_result(None)
                    return
        self._free += 1
