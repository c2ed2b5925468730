"""Delivery of events to subscribers, in order and each once.

Subscribers that stand at the same position of the same sequence of events are a cohort: their
next event is found once, rendered once for each kind and filter among them, and then the whole
cohort is at the next position. A subscriber that resumes from a cursor is a cohort of its own
until it reaches one that is further on. So events are never queued: only positions are kept, and
missed events are read from the store.

While there are subscribers, a task delivers each new commit (`commit_watch`). Long renderings and
long lists of subscribers take turns with other work of the loop.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Final, Protocol, TypeVar

import structlog

from foreblock.errors import CursorTooOld, NotHere, TimedOut
from foreblock.ledger.reading.events import Cursor, NextEvent
from foreblock.ledger.reading.view import LedgerView
from foreblock.methods.events.commit_watch import CommitWatch, last_commit
from foreblock.methods.events.kinds import (
    Kind,
    Notice,
    Track,
    Wanted,
    cursor_text,
    position_after,
)
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Steps
from foreblock.scheduling.thresholds import THRESHOLDS

T = TypeVar("T")
MISSED: Final = "events were missed, subscribe again"
FAILED: Final = "events could not be read, subscribe again"

log = structlog.get_logger()


class Subscriber(Protocol):
    """A recipient of notifications; hashed by identity."""

    def notify(self, rest: bytes) -> bool:
        """Send the end of a notification, from its result on; false once it has ended."""

    def fail(self, reason: str) -> None:
        """End it with a reason."""


class Cohort:
    """Subscribers at one position."""

    __slots__ = ("members", "position", "size", "track")

    def __init__(self, track: Track, position: Cursor) -> None:
        self.track: Final = track
        self.position = position
        self.members: dict[Kind, dict[Wanted, dict[Subscriber, None]]] = {}
        self.size = 0

    def add(self, subscriber: Subscriber, kind: Kind, wanted: Wanted) -> None:
        """Take a subscriber in."""
        self.members.setdefault(kind, {}).setdefault(wanted, {})[subscriber] = None
        self.size += 1

    def remove(self, subscriber: Subscriber, kind: Kind, wanted: Wanted) -> None:
        """Leave a subscriber out."""
        of_kind = self.members[kind]
        del of_kind[wanted][subscriber]
        self.size -= 1
        if not of_kind[wanted]:
            del of_kind[wanted]
        if not of_kind:
            del self.members[kind]

    def subscribers(self) -> list[Subscriber]:
        topics = (topic for of_kind in self.members.values() for topic in of_kind.values())
        return [subscriber for topic in topics for subscriber in topic]


class Delivery:
    """The subscribers of one service in one worker."""

    def __init__(
        self,
        open_view: Callable[[], LedgerView],
        scheduler: Scheduler,
        commits: CommitWatch,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._open_view: Final = open_view
        self._commits: Final = commits
        self._scheduler: Final = scheduler
        self._clock: Final = clock
        self._cohorts: Final[dict[tuple[Track, Cursor], Cohort]] = {}
        self._where: Final[dict[Subscriber, tuple[Cohort, Kind, Wanted]]] = {}
        self._outdated: Final[set[Kind]] = set()  # kinds that subscribers have joined or left
        self._is_due = False  # there is more to do than to wait for a commit
        self._is_joined = False  # since the last delivery began
        self._wait: asyncio.Future[None] | None = None
        self._task: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._where)

    def add(self, subscriber: Subscriber, kind: Kind, wanted: Wanted, position: Cursor) -> None:
        """Notify a subscriber of what comes after this position."""
        wanted = kind.join(wanted)
        self._outdated.add(kind)
        cohort = self._cohorts.get((kind.track, position))
        if cohort is None:
            cohort = self._cohorts[kind.track, position] = Cohort(kind.track, position)
        cohort.add(subscriber, kind, wanted)
        self._where[subscriber] = cohort, kind, wanted
        self._is_due = self._is_joined = True
        self._wake()
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())

    def remove(self, subscriber: Subscriber) -> None:
        """Notify a subscriber no more."""
        found = self._where.pop(subscriber, None)
        if found is None:
            return
        cohort, kind, wanted = found
        cohort.remove(subscriber, kind, wanted)
        kind.leave(wanted)
        self._outdated.add(kind)
        if not cohort.size and self._cohorts.get((cohort.track, cohort.position)) is cohort:
            del self._cohorts[cohort.track, cohort.position]
        self._wake()

    def _wake(self) -> None:
        if self._wait is not None:
            _resolve(self._wait)

    async def _run(self) -> None:
        """Deliver each commit while there are subscribers."""
        known: int | None = None
        with self._commits.following():
            while self._where or self._outdated:
                self._is_joined = False
                commit = last_commit(self._open_view)
                if commit is not None and (commit != known or self._is_due):
                    known, self._is_due = commit, False
                    await self.deliver()
                await self._update_kinds()
                if self._where and not self._outdated and not self._is_joined:
                    await self._wait_for(commit)

    async def _wait_for(self, commit: int | None) -> None:
        """Return at another commit, when subscribers change, or when it is time to retry."""
        self._wait = self._commits.changed(commit)
        loop, seconds = asyncio.get_running_loop(), THRESHOLDS.commit_poll_seconds
        retry = loop.call_later(seconds, _resolve, self._wait) if self._is_due else None
        try:
            await self._wait
        finally:
            if retry is not None:
                retry.cancel()

    async def _update_kinds(self) -> None:
        for kind in list(self._outdated):
            self._outdated.discard(kind)
            is_updated = False
            with suppress(TimedOut):
                is_updated = await self._read(kind.update())
            if not is_updated:
                self._outdated.add(kind)

    async def deliver(self) -> None:
        """Bring all cohorts to the end of the chain."""
        moved = True
        while moved:
            moved = False
            for cohort in list(self._cohorts.values()):
                moved |= await self._advance(cohort)

    async def _advance(self, cohort: Cohort) -> bool:
        """Deliver the next event of a cohort; false if there is none, or it failed."""
        key = (cohort.track, cohort.position)
        if self._cohorts.get(key) is not cohort:
            return False  # it went into another one, or all of it left
        del self._cohorts[key]  # later arrivals at its position have missed the event
        try:
            step, found = await self._take_step(cohort)
        except TimedOut:
            self._is_due = True  # the worker is busy: try again soon
            await self._keep(cohort)
            return False
        except Exception as why:  # noqa: BLE001, the others go on
            await self._fail(cohort, why)
            return False
        if step is None:
            await self._keep(cohort)
            return False
        await self._send(cohort, step, found)
        cohort.position = step.then
        await self._keep(cohort)
        return True

    async def _take_step(
        self, cohort: Cohort
    ) -> tuple[NextEvent | None, Mapping[Kind, Mapping[Wanted, list[Notice]]]]:
        """The next event of a cohort, as each of its kinds renders it."""
        view = self._open_view()
        try:
            step = cohort.track.next(view, cohort.position)
            found: dict[Kind, Mapping[Wanted, list[Notice]]] = {}
            if step is not None and step.event is not None:
                for kind, wanted in list(cohort.members.items()):
                    found[kind] = await self._read(kind.render(view, step.event, wanted))
            return step, found
        finally:
            view.close()

    async def _read(self, steps: Steps[T]) -> T:
        result = self._scheduler.read(steps)
        return await result if isinstance(result, Awaitable) else result

    async def _send(
        self, cohort: Cohort, step: NextEvent, found: Mapping[Kind, Mapping[Wanted, list[Notice]]]
    ) -> None:
        """Send all notices of an event to their subscribers."""
        turn = SendingSlice(self._scheduler, self._clock)
        for kind, by_wanted in found.items():
            for wanted, notices in by_wanted.items():
                messages = []
                for notice in notices:
                    place = position_after(cohort.position, step, notice.seen)
                    messages.append(_ending(notice.text, cursor_text(kind, place)))
                    if turn.is_over():
                        await turn.next()
                for subscriber in list(cohort.members.get(kind, {}).get(wanted, ())):
                    for message in messages:
                        if subscriber not in self._where or not subscriber.notify(message):
                            break
                        if turn.is_over():
                            await turn.next()
                    if turn.has_many():
                        await turn.next()

    async def _keep(self, cohort: Cohort) -> None:
        """Put a cohort back, together with the one that is at its position already."""
        if not cohort.size:
            return
        key = (cohort.track, cohort.position)
        other = self._cohorts.get(key, cohort)
        larger, smaller = (cohort, other) if cohort.size >= other.size else (other, cohort)
        self._cohorts[key] = larger
        if smaller is larger:
            return
        turn = SendingSlice(self._scheduler, self._clock)
        for subscriber in smaller.subscribers():
            found = self._where.get(subscriber)
            if found is not None:  # it may leave meanwhile
                _, kind, wanted = found
                smaller.remove(subscriber, kind, wanted)
                larger.add(subscriber, kind, wanted)
                self._where[subscriber] = larger, kind, wanted
            if turn.is_over():
                await turn.next()

    async def _fail(self, cohort: Cohort, why: Exception) -> None:
        """End the subscriptions of a cohort that cannot get its next event."""
        expected = isinstance(why, CursorTooOld | NotHere)
        if not expected:
            log.warning("subscriptions_failed", why=str(why), exc_info=why)
        turn = SendingSlice(self._scheduler, self._clock)
        for subscriber in cohort.subscribers():
            subscriber.fail(MISSED if expected else FAILED)
            self.remove(subscriber)
            if turn.has_many():
                await turn.next()


class SendingSlice:
    """A slice of the loop for sending."""

    def __init__(self, scheduler: Scheduler, clock: Callable[[], float]) -> None:
        self._scheduler: Final = scheduler
        self._clock: Final = clock
        self._left = THRESHOLDS.checked_notices
        self._subscribers = 0
        self._until = clock() + THRESHOLDS.notify_seconds

    def is_over(self) -> bool:
        """Count one more notice; whether the slice is used up."""
        self._left -= 1
        if self._left > 0:
            return False
        self._left = THRESHOLDS.checked_notices
        return self._clock() >= self._until

    def has_many(self) -> bool:
        """Count one more subscriber; true once there are enough for one slice."""
        self._subscribers += 1
        return self._subscribers >= THRESHOLDS.notified_subscribers

    async def next(self) -> None:
        """Let others have their turn."""
        await self._scheduler.queue.wait()
        self._subscribers = 0
        self._until = self._clock() + THRESHOLDS.notify_seconds


def _ending(text: bytes, cursor: str) -> bytes:
    return b"".join((text, b',"cursor":"', cursor.encode(), b'"}}'))


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
