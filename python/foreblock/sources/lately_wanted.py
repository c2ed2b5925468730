"""What messages wanted of the state since the anchor: after another anchor they want it again.

Asked for at once where there is little time for it: an endpoint that proves its latest block only
proves the state below a block until that is sealed. What readers used comes later (`hot_fetching`).
No I/O.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from foreblock.ledger.following.wanting import WantedState
from foreblock.upstream.budget import price

MOST: Final = 8192  # keys that are remembered
PART: Final = 64  # accounts that are asked for together


class LatelyWanted:
    """The keys of one network."""

    def __init__(self) -> None:
        self._wanted = WantedState()

    def note(self, wanted: WantedState) -> None:
        """Remember keys; too many are forgotten all at once."""
        self._wanted.merge(WantedState(set(wanted.accounts), dict(wanted.slots)))
        if len(self._wanted) > MOST:
            self._wanted = WantedState()

    def take(self, units: float) -> Iterator[WantedState]:
        """The keys in parts, for half of these units, and forget them: the rest is for new ones."""
        wanted, self._wanted = self._wanted, WantedState()
        most = int(units / price("eth_getProof") / 2)
        return islice(wanted.parts(PART), max(1, most // PART))
