"""A feed with faults on purpose, between a sequencer and the server of its feed."""

import asyncio
from typing import Final, Protocol

from foreblock.clock import SECOND_NS, Clock
from foreblock.sequencer.chaos.faults import Faults
from foreblock.sequencer.chaos.feed_faults import FeedFaults, Sending
from foreblock.types import Flashblock


class Publisher(Protocol):
    """The server of a feed."""

    def publish(self, flashblock: Flashblock) -> None:
        """Send a flashblock."""

    def publish_bytes(self, content: bytes, /) -> None:
        """Send a message that need not be a flashblock."""


class FaultyFeed:
    """Publishes what is left of a chain's flashblocks; on one loop."""

    def __init__(
        self, server: Publisher, faults: Faults, clock: Clock, *, subblocks: bool = False
    ) -> None:
        """`subblocks` is the form of messages, which a fault may switch."""
        self._server: Final = server
        self._subblocks: Final = subblocks
        self._faults = FeedFaults(faults, subblocks=subblocks)
        self._clock: Final = clock
        self._waiting: list[Sending] = []  # in the order in which they go out
        self._other: Flashblock | None = None  # for the place that is published next

    def strike(self, faults: Faults) -> None:
        """Let these faults happen from now on; what was held back goes out first."""
        for flashblock in self._faults.release():
            self._server.publish(flashblock)
        self._faults = FeedFaults(faults, subblocks=self._subblocks)

    def contradict(self, other: Flashblock) -> None:
        """Publish this one, too, with the next flashblock, whose place it has."""
        self._other = other

    def publish(self, flashblock: Flashblock) -> None:
        """Send what is to be sent for this one, now or later."""
        now_ns = self._clock.monotonic_ns()
        other, self._other = self._other, None
        for sending in self._faults.send(flashblock, now_ns, other):
            if sending.at_ns > now_ns:
                self._waiting.append(sending)
                wait = (sending.at_ns - now_ns) / SECOND_NS
                asyncio.get_running_loop().call_later(wait, self._send_through, sending.at_ns)
            else:
                self._send(sending)

    def _send_through(self, at_ns: int) -> None:
        """Send all that is due by this time, the earliest first.

        The timer decides and not the clock, by which timers may be early: else a message
        would wait for the timer of the next one.
        """
        due = [each for each in self._waiting if each.at_ns <= at_ns]
        self._waiting = [each for each in self._waiting if each.at_ns > at_ns]
        for sending in sorted(due, key=lambda each: each.at_ns):
            self._send(sending)

    def _send(self, sending: Sending) -> None:
        if isinstance(sending.content, bytes):
            self._server.publish_bytes(sending.content)
        else:
            self._server.publish(sending.content)
