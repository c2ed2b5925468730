"""Wait for the next commit of a network: one watch for all requests and subscribers of a worker.

While a request waits, the watch reads the number of the last commit when a commit is announced, and
at intervals, because a hint may be missed and other writers give none. As long as the last commit
was announced it polls less often. A waiting request holds no view and no thread.

`AwaitedCommits` are the requests with `Foreblock-Min-Commit` or `-Min-Place`; their conditions
are in `scheduling/reply.py`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from typing import Final

from foreblock.errors import ForeblockError
from foreblock.ledger.reading.view import LedgerView
from foreblock.scheduling.admission import Lease, WorkerBudget
from foreblock.scheduling.reply import Minimum, Missing, Reached, is_met, missing
from foreblock.scheduling.thresholds import THRESHOLDS

# Calls a function soon after each commit, until the context is left.
FollowCommits = Callable[[Callable[[], None]], AbstractContextManager[None]]


def no_hints(_: Callable[[], None]) -> AbstractContextManager[None]:
    """Never call."""
    return nullcontext()


class CommitWatch:
    """Watches for commits of one network, in one loop."""

    def __init__(self, read: Callable[[], int | None], follow: FollowCommits = no_hints) -> None:
        """`read` returns the number of the last commit, or None if the store cannot be read."""
        self._read: Final = read
        self._follow: Final = follow
        self._hints: Final = ExitStack()
        self._users = 0
        self._waiting: dict[asyncio.Future[None], int | None] = {}  # with the commits they know
        self._last: int | None = None  # at the last poll
        self._is_announced = False  # a commit was announced since the last poll
        self._is_hinted = False  # commits are announced
        self._timer: asyncio.Handle | None = None
        self._is_due = False  # the timer is a poll in the next turn of the loop

    @contextmanager
    def following(self) -> Iterator[None]:
        """Watch for commits inside this context; `changed` needs it."""
        self._users += 1
        if self._users == 1:
            self._last = None
            self._hints.enter_context(self._follow(self._announce))
        try:
            yield
        finally:
            self._users -= 1
            if not self._users:
                self._hints.close()
                self._waiting.clear()
                self._cancel_poll()

    def changed(self, commit: int | None) -> asyncio.Future[None]:
        """Return a future that is done when the last commit is another than `commit`."""
        future = asyncio.get_running_loop().create_future()
        self._waiting[future] = commit
        if self._last is None or commit not in (None, self._last):
            self._poll_soon()
        return future

    def _announce(self) -> None:
        self._is_announced = self._is_hinted = True
        self._poll_soon()

    def _poll_soon(self) -> None:
        if not self._is_due:
            self._schedule(0.0)
            self._is_due = True

    def _schedule(self, seconds: float) -> None:
        self._cancel_poll()
        self._timer = asyncio.get_running_loop().call_later(seconds, self._poll)

    def _cancel_poll(self) -> None:
        self._is_due = False
        if self._timer is not None:
            self._timer.cancel()

    def _poll(self) -> None:
        commit = self._read()
        if commit is not None and commit != self._last:
            if self._last is not None:  # an unannounced commit may be followed by others
                self._is_hinted = self._is_announced
            self._last = commit
        self._is_announced = False
        seconds = (
            THRESHOLDS.hinted_poll_seconds if self._is_hinted else THRESHOLDS.commit_poll_seconds
        )
        if commit is not None and self._wake(commit):
            seconds = 0.0
        self._schedule(seconds)

    def _wake(self, commit: int) -> bool:
        """Wake waiters that know another commit; return whether some are left for the next turn."""
        self._waiting = {
            future: known for future, known in self._waiting.items() if not future.done()
        }
        due = [future for future, known in self._waiting.items() if known != commit]
        for future in due[: THRESHOLDS.woken_requests]:
            del self._waiting[future]
            future.set_result(None)
        return len(due) > THRESHOLDS.woken_requests


class AwaitedCommits:
    """The requests of one network that demand a minimum commit."""

    def __init__(
        self,
        read: Callable[[], Reached | None],
        commits: CommitWatch,
        budget: WorkerBudget,
        longest_seconds: float,
    ) -> None:
        """`read` returns the heads of the last commit, or None if the store cannot be read."""
        self._read: Final = read
        self._commits: Final = commits
        self._budget: Final = budget
        self._longest: Final = longest_seconds

    def check(self, minimum: Minimum) -> Missing | Awaitable[Missing | None] | None:
        """Return None if the minimum is met, else the missing commit: at once, or after a wait."""
        reached = self._read()
        if reached is not None and is_met(minimum, reached):
            return None
        seconds = self._longest
        if minimum.wait_ms is not None:
            seconds = min(seconds, minimum.wait_ms / 1000)
        lease = self._budget.commit_waits.lease() if seconds > 0 else None
        if lease is None:
            return missing(minimum, reached)
        return self._wait(minimum, seconds, lease)

    async def _wait(self, minimum: Minimum, seconds: float, _lease: Lease) -> Missing | None:
        reached = self._read()
        with self._commits.following(), suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while reached is None or not is_met(minimum, reached):
                    await self._commits.changed(None if reached is None else reached.commit)
                    reached = self._read()
        if reached is not None and is_met(minimum, reached):
            return None
        return missing(minimum, reached)


def last_commit(open_view: Callable[[], LedgerView]) -> int | None:
    """Return the number of the last commit, or None if the store cannot be read."""
    reached = reached_by(open_view)
    return None if reached is None else reached.commit


def reached_by(open_view: Callable[[], LedgerView]) -> Reached | None:
    """Return the heads of the last commit, or None if the store cannot be read."""
    try:
        view = open_view()
    except ForeblockError:
        return None
    try:
        pending = view.pending
        place = None if pending is None else (pending.number, pending.index)
        return Reached(view.commit, view.latest.number, place)
    finally:
        view.close()
