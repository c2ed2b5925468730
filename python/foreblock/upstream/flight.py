"""One fetch of many keys: gathered first, then on its way, and waited for by many."""

import asyncio
from typing import Final

from foreblock.upstream.attempt import AttemptOutcome, Errand


class Flight:
    """Keys that are gathered, or on their way, and those who wait for them."""

    def __init__(self, epoch: int, errand: Errand) -> None:
        self.epoch: Final = epoch
        self.errand = errand
        self.has_left = False
        self.landed: Final[asyncio.Future[AttemptOutcome]] = (
            asyncio.get_running_loop().create_future()
        )

    def board(self, errand: Errand) -> None:
        """Take more keys along, or lend urgency to the same."""
        mine = self.errand
        mine.urgency.raise_to(errand.urgency.purpose)
        self.errand = mine._replace(
            wanted=mine.wanted if self.has_left else mine.wanted.also(errand.wanted),
            until=max(mine.until, errand.until),
        )
