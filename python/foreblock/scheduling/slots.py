"""So many at once, and addresses in turn: who may go on with what takes memory.

Each simulation that is half done holds what its calls have returned. A thousand of them in
turns would hold a thousand times as much as one and end no sooner, so only some are begun;
the others wait here, each address behind its own.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Hashable
from typing import Final


class Slots:
    """Places, and who waits for one."""

    def __init__(self, count: int) -> None:
        self._free = count
        self._waiting: Final[OrderedDict[Hashable, deque[asyncio.Future[None]]]] = OrderedDict()

    def take(self) -> bool:
        """Take a place, if one is free."""
        if self._free <= 0:
            return False
        self._free -= 1
        return True

    async def wait(self, client: Hashable) -> None:
        """Wait for a place, which the caller then has."""
        address = getattr(client, "address", None)
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(address, deque()).append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self.give_back()  # it was given just before
            raise

    def give_back(self) -> None:
        """Give a place to the next address that waits, or let it be free."""
        while self._waiting:
            address, places = self._waiting.popitem(last=False)
            place = places.popleft()
            if places:
                self._waiting[address] = places
            if not place.done():  # a caller may have gone away
                place.set_result(None)
                return
        self._free += 1
