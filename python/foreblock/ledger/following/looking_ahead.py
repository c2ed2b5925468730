"""State that messages will want which come after one that waits for its own. No network.

Where the state is known in part, a message that waits for a round trip holds up all after it, and
each of those would wait for its own round trips in turn. So they are tried at once, on the state
as it is before them, and what they miss is asked for meanwhile. It is a guess: nothing of it is
served, and what they miss in the end is wanted when their turn comes.
"""

from collections.abc import Sequence
from typing import Final

from foreblock.ledger.following.buffer import Buffered, Received
from foreblock.ledger.following.served_chain import ServedChain

MOST_AHEAD: Final = 3  # messages after one that waits, which are tried again with it


class LookingAhead:
    """Tries the messages that wait for others."""

    def __init__(self, chain: ServedChain, buffered: Buffered, *, is_on: bool = True) -> None:
        self.is_on = is_on
        self._chain: Final = chain
        self._buffered: Final = buffered

    def look(self, messages: Sequence[Received]) -> None:
        """Try messages on the newest block, if state is known in part."""
        if not self.is_on or not self._chain.is_partial or not messages:
            return
        served = self._chain.jobs.above(self._chain.latest.number)
        if served and served[-1].progress is not None:
            self._chain.runs.look_ahead(served[-1].progress, messages)

    def look_beyond(self, received: Received) -> None:
        """Try those after one that waits for state, which may have learned some of its own."""
        index = received.message.index
        after = [each for each in self._buffered if each.job == received.job]
        after = [each for each in after if index < each.message.index <= index + MOST_AHEAD]
        self.look(after)
