"""Requests that wait until a commit is here: those with `Foreblock-Min-Commit` or `-Min-Place`.

One for each network of a worker. While some wait, a task reads the heads when it hears of a
commit, and now and then because hints may be missed and other writers give none; without them
nothing runs. A request holds a place of the worker's room meanwhile, and no view.

What is demanded, and whether a commit has it, is in `scheduling/minimum.py`.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from foreblock.errors import ForeblockError
from foreblock.ledger.reading.availability import AbsentLedger
from foreblock.ledger.reading.view import Ledger
from foreblock.methods.events.delivery import FollowCommits
from foreblock.scheduling.minimum import Minimum, Missing, Reached, is_met, missing
from foreblock.scheduling.room import CommitPlace, Room
from foreblock.scheduling.thresholds import THRESHOLDS


class AwaitedCommits:
    """The requests of one network that wait for a commit."""

    def __init__(
        self,
        look: Callable[[], Reached | None],
        follow: FollowCommits,
        room: Room,
        longest_seconds: float,
    ) -> None:
        """`look` gives what the last commit has, or none while the store cannot be read."""
        self._look: Final = look
        self._follow: Final = follow
        self._room: Final = room
        self._longest: Final = longest_seconds
        self._awaited: Final[dict[asyncio.Future[None], Minimum]] = {}
        self._task: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._awaited)

    def check(self, minimum: Minimum) -> Missing | Awaitable[Missing | None] | None:
        """Nothing if the minimum is met, else what is missing: at once, or after a wait."""
        reached = self._look()
        if reached is not None and is_met(minimum, reached):
            return None
        seconds = self._longest
        if minimum.wait_ms is not None:
            seconds = min(seconds, minimum.wait_ms / 1000)
        place = self._room.commit_place() if seconds > 0 else None
        if place is None:
            return missing(minimum, reached)
        return self._wait(minimum, seconds, place)

    async def _wait(self, minimum: Minimum, seconds: float, place: CommitPlace) -> Missing | None:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self._awaited[future] = minimum
        timer = loop.call_later(seconds, _settle, future)
        if self._task is None:
            self._task = loop.create_task(self._watch())
        try:
            await future
        finally:
            timer.cancel()
            del self._awaited[future], place
        reached = self._look()
        if reached is not None and is_met(minimum, reached):
            return None
        return missing(minimum, reached)

    async def _watch(self) -> None:
        """Wake those whose minimum is met, while there are any."""
        loop, heard = asyncio.get_running_loop(), asyncio.Event()
        try:
            with self._follow(heard.set):
                while self._awaited:
                    heard.clear()
                    self._wake()
                    timer = loop.call_later(THRESHOLDS.commit_poll_seconds, heard.set)
                    try:
                        await heard.wait()
                    finally:
                        timer.cancel()
        finally:
            self._task = None

    def _wake(self) -> None:
        reached = self._look()
        if reached is None:
            return
        for future, minimum in self._awaited.items():
            if is_met(minimum, reached):
                _settle(future)


def reached_by(ledger: Ledger | AbsentLedger) -> Reached | None:
    """What the last commit of a ledger has; none while its store cannot be read."""
    try:
        view = ledger.view()
    except ForeblockError:
        return None
    try:
        pending = view.pending
        place = None if pending is None else (pending.number, pending.index)
        return Reached(view.commit, view.latest.number, place)
    finally:
        view.close()


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
