"""How urgent a request is while it waits: it can become more urgent, and never less."""

import asyncio
from contextlib import suppress

from foreblock.upstream.budget import Purpose


class Urgency:
    """The purpose of what is on its way, for everybody who waits for it."""

    __slots__ = ("_raised", "purpose")

    def __init__(self, purpose: Purpose) -> None:
        self.purpose = purpose
        self._raised = asyncio.Event()

    def raise_to(self, purpose: Purpose) -> None:
        """Somebody else wants the same for this purpose."""
        if purpose < self.purpose:
            self.purpose = purpose
            self._raised.set()
            self._raised = asyncio.Event()

    async def wait(self, seconds: float) -> None:
        """Wait for some seconds, or until it is more urgent."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._raised.wait()
