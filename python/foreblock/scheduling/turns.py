"""Turns in a loop: what takes long goes on in slices, one slice in each round of the loop.

However many requests take long, an ordinary one that comes in waits for one slice of one
of them. Whoever is not done with a slice queues again, behind the others.

What is done without waiting for a turn is counted by the round (`Round`).
"""

import asyncio
from collections import deque


class Turns:
    """A queue of those who wait to go on."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._giving = False

    @property
    def are_awaited(self) -> bool:
        """Whether somebody waits, or will have the loop in its next round."""
        return self._giving

    async def wait(self) -> None:
        """Let others go on first. The slice that begins with it is for the caller to end."""
        loop = asyncio.get_running_loop()
        turn = loop.create_future()
        self._waiting.append(turn)
        if not self._giving:
            self._giving = True
            loop.call_soon(self._give, loop)
        await turn

    def _give(self, loop: asyncio.AbstractEventLoop) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():  # a caller may have gone away
                turn.set_result(None)
                loop.call_soon(self._give, loop)
                return
        self._giving = False


class Round:
    """Seconds that some kind of work has taken in the round of the loop that is under way."""

    def __init__(self) -> None:
        self.spent = 0.0

    def add(self, seconds: float) -> None:
        """So much more; the next round begins at 0 again."""
        if not self.spent:
            try:
                asyncio.get_running_loop().call_soon(self._begin)
            except RuntimeError:
                return  # nobody else wants anything of a loop that does not run
        self.spent += seconds

    def _begin(self) -> None:
        self.spent = 0.0
