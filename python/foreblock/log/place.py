"""Find the place of a commit in a stream whose sequences are not those that a store knows.

A stream that was made anew, or restored, has the same commits at other sequences. Commit numbers
rise along the stream, so the place is found by halving; the link says whether it is the same
commit. Messages that are no commits, or of another log, are passed over. The stream comes in as
a function from a sequence to the entry that is there or next.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace

from foreblock.errors import ForeignLog, ForkedLog, LogBeginsLater
from foreblock.log.message import NO_LINK
from foreblock.log.parts import StoredCommit, StreamEntry
from foreblock.log.position import LogPosition

ReadEntry = Callable[[int], Awaitable[StreamEntry | None]]


def placed(position: LogPosition, found: StreamEntry | None) -> LogPosition | None:
    """Return the position, with the id of its log, if this entry of its sequence is its commit."""
    if not isinstance(found, StoredCommit) or found.last != position.sequence:
        return None
    is_same = found.message.link == position.link
    return replace(position, log_id=found.message.log_id) if is_same else None


async def find_place(
    position: LogPosition, first: int, last: int, read: ReadEntry
) -> LogPosition | None:
    """Return the position in a stream with these ends; None if it ends before the commit.

    Raises `ForkedLog` or `ForeignLog` if the stream has another history, `LogBeginsLater`
    if it begins after the commit.
    """
    await _check_log(position, first, last, read)
    lowest: StoredCommit | None = None  # of those after the commit
    highest: StoredCommit | None = None  # of those before it
    while first <= last:
        middle = (first + last) // 2
        commit = await _commit_from(position, middle, last, read)
        if commit is None:
            last = middle - 1
        elif commit.message.after == position.commit:
            return _same(position, commit)
        elif commit.message.after < position.commit:
            first, highest = commit.last + 1, commit
        else:
            last, lowest = middle - 1, commit
    if lowest is not None:
        return _before(position, lowest, has_more=highest is not None)
    if highest is not None and highest.message.epoch > position.epoch:
        raise ForkedLog(highest.last, "a newer writer has gone on before the end of this store")
    return None


async def _check_log(position: LogPosition, first: int, last: int, read: ReadEntry) -> None:
    """Raise `ForeignLog` if both ends of the stream are of another log."""
    if position.log_id is None:
        return
    ends = [await read(first), await read(last)]
    ids = {each.message.log_id for each in ends if isinstance(each, StoredCommit)}
    if ids and position.log_id not in ids:
        raise ForeignLog(ids.pop(), position.log_id)


async def _commit_from(
    position: LogPosition, first: int, last: int, read: ReadEntry
) -> StoredCommit | None:
    """Return the first commit of the log that has a part between these sequences."""
    while first <= last:
        found = await read(first)
        if found is None or found.first > last:
            return None
        if isinstance(found, StoredCommit) and position.log_id in {None, found.message.log_id}:
            return found
        first = found.last + 1
    return None


def _same(position: LogPosition, commit: StoredCommit) -> LogPosition:
    if commit.message.link != position.link:
        raise ForkedLog(commit.last, f"another commit {position.commit} is there")
    return position.at(commit.last)


def _before(position: LogPosition, commit: StoredCommit, *, has_more: bool) -> LogPosition:
    """Return the place before the first commit that is after the position's."""
    if commit.message.previous == position.link and commit.message.before == position.commit:
        return position.at(commit.first - 1)
    if NO_LINK == commit.message.previous != position.link:
        raise ForkedLog(commit.first, "it was begun anew from another store")
    if has_more or commit.message.before < position.commit:
        raise ForkedLog(commit.first, f"commit {position.commit} is not there")
    raise LogBeginsLater(position.commit, commit.message.before)
