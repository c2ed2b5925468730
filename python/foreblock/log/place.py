"""Find the place of a commit in a stream whose sequences are not those that a store knows.

A stream that was made anew, or restored, has the same commits at other sequences. Commit numbers
rise along the stream, so the place is found by halving; the link says whether it is the same
commit. The stream comes in as a function from a sequence to the commit that covers it.
"""

from collections.abc import Awaitable, Callable

from foreblock.errors import ForeignLog, ForkedLog, LogBeginsLater
from foreblock.log.message import LogMessage
from foreblock.log.parts import StoredCommit
from foreblock.log.position import LogPosition

ReadCommit = Callable[[int], Awaitable[StoredCommit | None]]


async def find_place(
    position: LogPosition, first: int, last: int, read: ReadCommit
) -> LogPosition | None:
    """The position in a stream with these ends; none where it ends before the commit.

    Raises `ForkedLog` or `ForeignLog` where the stream has another history, `LogBeginsLater`
    where it begins after the commit.
    """
    lowest: StoredCommit | None = None  # of those after the commit
    highest: StoredCommit | None = None  # of those before it
    while first <= last:
        middle = (first + last) // 2
        commit = await read(middle)
        if commit is None:  # a part of it is gone already: only at the beginning
            first = middle + 1
            continue
        _check_log(position, commit.message)
        if commit.message.after == position.commit:
            return _same(position, commit)
        if commit.message.after < position.commit:
            first, highest = commit.last + 1, commit
        else:
            last, lowest = commit.first - 1, commit
    if lowest is not None:
        return _before(position, lowest, has_more=highest is not None)
    if highest is not None and highest.message.epoch > position.epoch:
        raise ForkedLog(highest.last, "a newer writer has gone on before the end of this store")
    return None


def _check_log(position: LogPosition, message: LogMessage) -> None:
    if position.log_id not in {None, message.log_id}:
        raise ForeignLog(message.log_id, position.log_id or b"")


def _same(position: LogPosition, commit: StoredCommit) -> LogPosition:
    if commit.message.link != position.link:
        raise ForkedLog(commit.last, f"another commit {position.commit} is there")
    return position.at(commit.last)


def _before(position: LogPosition, commit: StoredCommit, *, has_more: bool) -> LogPosition:
    """The place before the first commit that is after the position's."""
    if commit.message.previous == position.link and commit.message.before == position.commit:
        return position.at(commit.first - 1)
    if has_more or commit.message.before < position.commit:
        raise ForkedLog(commit.first, f"commit {position.commit} is not there")
    raise LogBeginsLater(position.commit, commit.message.before)
