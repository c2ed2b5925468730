"""One fetch of many keys: gathered first, then on its way, and waited for by many."""

import asyncio
from typing import Final

from foreblock.upstream.attempt import AttemptOutcome, Errand
from foreblock.upstream.wanted import all_of

MOST_KEYS: Final = 20_000  # as many as a run may want; who comes later takes the next
LARGE: Final = 256  # keys of one want; one with more flies alone, and nobody has to wait for it


class Flight:
    """Keys that are gathered, or on their way, and those who wait for them."""

    def __init__(self, epoch: int, errand: Errand) -> None:
        self.epoch: Final = epoch
        self.errand = errand
        self.has_left = False
        self.landed: Final[asyncio.Future[AttemptOutcome]] = (
            asyncio.get_running_loop().create_future()
        )
        self._gathered: Final = [errand.wanted]
        self._keys = errand.wanted.keys

    def has_room(self, errand: Errand) -> bool:
        """Return True if the keys of an errand can be taken along."""
        largest = max(self._gathered[0].keys, errand.wanted.keys) if self._gathered else 0
        return not self.has_left and largest <= LARGE and self._keys < MOST_KEYS

    def board(self, errand: Errand) -> None:
        """Take more keys along while it has room, or lend urgency to those that are out."""
        if not self.has_left:
            self._gathered.append(errand.wanted)
            self._keys += errand.wanted.keys
        self.errand.urgency.raise_to(errand.urgency.purpose)
        self.errand = self.errand._replace(until=max(self.errand.until, errand.until))

    def leave(self) -> None:
        """Take no more keys."""
        self.has_left = True
        if len(self._gathered) > 1:
            self.errand = self.errand._replace(wanted=all_of(self._gathered))
        self._gathered.clear()
