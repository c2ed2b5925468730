"""Commits of a writer: into the log, then into its store, then announced.

The store applies all steps of a batch, and calls the append before it makes them durable. The
append waits for the log for as long as it takes. So a batch that does not fit is refused before it
is published, and a commit that is not in the log is in no store. Commits are made on the network's
thread and NATS runs on the loop: the call crosses to the loop and back.

After any failure no further commit is made here: later work is discarded, and reading the log shows
whether it has the last commit.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from functools import partial
from typing import Final

from foreblock.errors import CommitDeclined, Deposed, LogUnreachable
from foreblock.ledger.storage.commits import Batch, Heads, LogRow, Store
from foreblock.log.message import LogMessage
from foreblock.log.parts import OutgoingCommit
from foreblock.log.position import LogPosition
from foreblock.replication.log_session import LogSession


class LoggedCommits:
    """The commits of one epoch; made on the loop, called on one thread."""

    def __init__(
        self,
        session: LogSession,
        position: LogPosition,
        epoch: int,
        log_id: bytes,
        committed: Callable[[LogPosition], None],
    ) -> None:
        """`committed` is called on the loop after each commit."""
        self.position = position  # after the last commit
        self.store: Store | None = None  # of the last commit
        self.epoch: Final = epoch
        self._session: Final = session
        self._log_id: Final = log_id
        self._committed: Final = committed
        self._loop: Final = asyncio.get_running_loop()
        self._failure: BaseException | None = None
        self._lost: Final = asyncio.Event()  # a commit failed
        self._waiting: Future[LogPosition] | None = None
        self._is_stopped = False

    def commit(self, store: Store, batch: Batch) -> Heads:
        """Append a batch to the log and make it durable.

        Raises `Deposed`, `ForkedLog`, `LogLostCommits`, `NewerLogFormat`, `LogMessageTooLarge`,
        `LogUnreachable` if it is stopped, and as `Store.commit`.
        """
        if self._failure is not None:
            raise self._failure
        self.store = store
        at = self.position
        message = LogMessage(
            self.epoch, batch.before, batch.after, self._log_id, at.link, batch.encode()
        )
        try:
            while (heads := self._commit_at(self.position, message, store, batch)) is None:
                pass
        except BaseException as why:
            self._failure = why
            self._loop.call_soon_threadsafe(self._lost.set)
            raise
        self._loop.call_soon_threadsafe(self._committed, self.position)
        return heads

    def _commit_at(
        self, at: LogPosition, message: LogMessage, store: Store, batch: Batch
    ) -> Heads | None:
        """Commit after a position; None if the log has moved it."""
        outgoing = self._session.appender.prepare(at, message)
        row = LogRow(self.epoch, message.link, outgoing.last)
        try:
            heads = store.commit(batch, row, partial(self._append, at, outgoing))
        except CommitDeclined:
            return None
        self.position = at.after(message, outgoing.last)
        return heads

    @property
    def is_deposed(self) -> bool:
        """Return true if another node writes the log now."""
        return isinstance(self._failure, Deposed)

    async def wait_until_lost(self) -> None:
        """Raise the failure of a commit, even if the source handles it."""
        await self._lost.wait()
        assert self._failure is not None, "a commit has failed"
        raise self._failure

    def stop(self) -> None:
        """Stop waiting for the log. A waiting commit may be in the log."""
        self._is_stopped = True
        if self._waiting is not None:
            self._waiting.cancel()

    def _append(self, position: LogPosition, outgoing: OutgoingCommit) -> bool:
        """On the thread: true if the log has the commit; else the position has moved."""
        appending = self._session.appender.append(position, outgoing)
        self._waiting = asyncio.run_coroutine_threadsafe(appending, self._loop)
        if self._is_stopped:
            self._waiting.cancel()
        try:
            self.position = self._waiting.result()
        except CancelledError:
            raise LogUnreachable("this node stops while a commit waits") from None
        finally:
            self._waiting = None
        return self.position == position
