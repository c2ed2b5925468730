"""Faults of a feed: the messages sent for each flashblock, and when.

`FeedFaults` decides, without I/O or a clock; `FaultyFeed` sends. The chain is not affected: its
commits are those of the flashblocks published here. A conflicting flashblock has the job and the
index of another one, is as valid as that, and is not stored.
"""

import asyncio
from collections.abc import Callable
from random import Random
from typing import Final, NamedTuple, Protocol

from foreblock.clock import SECOND_NS, Clock
from foreblock.ledger.building.block_in_progress import BlockInProgress
from foreblock.ledger.building.commit_builder import CommitBuilder
from foreblock.ledger.building.ledger_writer import LedgerWriter
from foreblock.ledger.storage.partials import transactions_in
from foreblock.sequencer.attributes import stray_deposit
from foreblock.sequencer.faults.plan import FaultKind, Faults
from foreblock.types import Flashblock, Transaction

LONGEST_DELAY_MS: Final = 1_500
LONGEST_STALL_MS: Final = 5_000
_MILLISECOND_NS: Final = 10**6

# Garbage that has been seen on feeds, or would be unpleasant there. The second is a brotli stream
# that ends too early.
_NOISE: Final = (
    b"",
    bytes.fromhex("1bff"),
    b"null",
    b'{"payload_id":"0x"}',
    b'{"index":1e400,"diff":{}}',
    b"[" * 10_000,
    b'{"payload_id":"0x0102030405060708","index":18446744073709551616,"diff":{},"metadata":{}}',
)


def _ignore(_: object) -> None:
    pass


class FeedSink(NamedTuple):
    """Sends flashblocks to the feed, and the faults that the feed has."""

    publish: Callable[[Flashblock], None]
    publish_conflicting: Callable[[Flashblock], None] = _ignore  # instead of the next one
    set_faults: Callable[[Faults], None] = _ignore


class Sending(NamedTuple):
    """A message and when it goes out, in monotonic time."""

    at_ns: int
    content: Flashblock | bytes


class FeedFaults:
    """One feed with faults."""

    def __init__(self, faults: Faults, *, subblocks: bool = False) -> None:
        """`subblocks` is the form of messages before any switch."""
        self._faults: Final = faults
        self._subblocks = subblocks
        self._held: list[Flashblock] = []  # messages that are sent after the next one
        self._stalled_until_ns = 0

    def send(
        self, flashblock: Flashblock, now_ns: int, other: Flashblock | None = None
    ) -> list[Sending]:
        """The messages for a flashblock that is published now, in this order.

        `other` is another one for the same place, which is as true by itself.
        """
        if self._happens(FaultKind.SWITCH_FORM, flashblock):
            self._subblocks = not self._subblocks
        if self._subblocks:
            flashblock = flashblock.as_subblock()
            other = None if other is None else other.as_subblock()
        if self._happens(FaultKind.STALL, flashblock):
            wait = self._draw(FaultKind.STALL, flashblock) * LONGEST_STALL_MS * _MILLISECOND_NS
            self._stalled_until_ns = max(self._stalled_until_ns, now_ns + int(wait))
        at_ns = max(now_ns, self._stalled_until_ns)
        sendings = [Sending(at_ns, noise) for noise in self._noise(flashblock)]
        held = self.release()
        if self._happens(FaultKind.DROP, flashblock):
            pass
        elif self._happens(FaultKind.REORDER, flashblock):
            self._held = [flashblock]
        else:
            sendings += self._copies(flashblock, at_ns, other)
        return sendings + [Sending(at_ns, each) for each in held]

    def release(self) -> list[Flashblock]:
        """Send the messages that were delayed until after the next one."""
        held, self._held = self._held, []
        return held

    def _copies(
        self, flashblock: Flashblock, at_ns: int, other: Flashblock | None
    ) -> list[Sending]:
        if self._happens(FaultKind.DELAY, flashblock):
            delay = self._draw(FaultKind.DELAY, flashblock) * LONGEST_DELAY_MS * _MILLISECOND_NS
            at_ns += int(delay)
        copies = [Sending(at_ns, flashblock)]
        if self._happens(FaultKind.DUPLICATE, flashblock):
            copies.append(copies[0])
        if other is not None:
            is_first = self._draw(FaultKind.EQUIVOCATE, flashblock) < 1 / 2
            copies.insert(0 if is_first else len(copies), Sending(at_ns, other))
        return copies

    def _noise(self, flashblock: Flashblock) -> list[bytes]:
        if not self._happens(FaultKind.GARBAGE, flashblock):
            return []
        chance = Random(self._draw(FaultKind.GARBAGE, flashblock))  # noqa: S311, it is to repeat
        if chance.random() < 1 / 2:
            return [chance.randbytes(chance.randrange(1, 5_000))]
        return [chance.choice(_NOISE)]

    def _happens(self, kind: FaultKind, flashblock: Flashblock) -> bool:
        return self._faults.happens(kind, flashblock.block_number, flashblock.index)

    def _draw(self, kind: FaultKind, flashblock: Flashblock) -> float:
        return self._faults.draw(kind, "how", flashblock.block_number, flashblock.index)


class Publisher(Protocol):
    """The server of a feed."""

    def publish(self, flashblock: Flashblock) -> None:
        """Send a flashblock."""

    def publish_bytes(self, content: bytes, /) -> None:
        """Send a message that need not be a flashblock."""


class FaultyFeed:
    """Publishes the flashblocks of a chain, with faults; on one loop, or without one."""

    def __init__(
        self,
        server: Publisher,
        faults: Faults,
        clock: Clock,
        *,
        subblocks: bool = False,
        has_timers: bool = True,
    ) -> None:
        """`subblocks` is the form of messages, which a fault may switch.

        Delayed messages go out by timers of the running loop, or else by `send_through`.
        """
        self._server: Final = server
        self._has_timers: Final = has_timers
        self._subblocks: Final = subblocks
        self._faults = FeedFaults(faults, subblocks=subblocks)
        self._clock: Final = clock
        self._waiting: list[Sending] = []  # in the order in which they go out
        self._other: Flashblock | None = None  # for the place that is published next

    def set_faults(self, faults: Faults) -> None:
        """Inject these faults from now on; delayed messages are sent first."""
        for flashblock in self._faults.release():
            self._server.publish(flashblock)
        self._faults = FeedFaults(faults, subblocks=self._subblocks)

    def contradict(self, other: Flashblock) -> None:
        """Publish this one, too, with the next flashblock, whose place it has."""
        self._other = other

    def publish(self, flashblock: Flashblock) -> None:
        """Send the messages for a flashblock, now or later."""
        now_ns = self._clock.monotonic_ns()
        other, self._other = self._other, None
        for sending in self._faults.send(flashblock, now_ns, other):
            if sending.at_ns > now_ns:
                self._waiting.append(sending)
                if self._has_timers:
                    wait = (sending.at_ns - now_ns) / SECOND_NS
                    asyncio.get_running_loop().call_later(wait, self.send_through, sending.at_ns)
            else:
                self._send(sending)

    def send_through(self, at_ns: int) -> None:
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


def conflicting_flashblock(writer: LedgerWriter, block: BlockInProgress, seed: int) -> Flashblock:
    """The last flashblock of a block with one transaction less, or one more."""
    # On a chain without deposits nothing runs that is not signed.
    stray = [] if block.rules.optimism is None else [stray_deposit(block.base, seed)]
    if block.empty_indexes:
        return _instead_of_last(writer, block, block.partials, stray)
    before, newest = block.partials[:-1], block.partials[-1:]
    with writer.store.view() as view:
        last = transactions_in(view, block.number, newest)
    others = last[:-1] if before and last else [*last, *stray]
    return _instead_of_last(writer, block, before, others)


def _instead_of_last(
    writer: LedgerWriter,
    block: BlockInProgress,
    before: tuple[int, ...],
    transactions: list[Transaction],
) -> Flashblock:
    """The last index after these partials, with these transactions."""
    if before:
        other = writer.resume(before[-1])
    else:
        parent_state = writer.on_sealed(block.number - 1)
        other = writer.begin_on(parent_state, block.base, block.payload_id)
    try:
        other.index = block.index - 1
        other.run(transactions)
        return other.close_index(CommitBuilder(writer.store).next).flashblock()
    finally:
        other.close()
