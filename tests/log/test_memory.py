"""The memory of a node, and its search for a position, compared with plain models."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreblock.errors import ForeignLog, ForkedLog, LogBeginsLater
from foreblock.log.held_messages import FARTHEST, Journal, LiveMessages
from foreblock.log.message import NO_LINK, LogMessage
from foreblock.log.parts import OutgoingCommit, StoredCommit
from foreblock.log.position import HeadAnnouncement, LogPosition
from foreblock.log.stream_reader import find_position

LOG = b"l" * 16


def chain(length: int, salt: bytes = b"") -> list[LogMessage]:
    messages: list[LogMessage] = []
    for number in range(length):
        link = messages[-1].link if messages else NO_LINK
        messages.append(LogMessage(1, number, number + 1, LOG, link, b"%d" % number + salt))
    return messages


def head(message: LogMessage, sequence: int) -> HeadAnnouncement:
    return HeadAnnouncement(1, message.after, sequence, message.link, bytes(16), 0)


@given(
    st.integers(1, 20),
    st.integers(0, 19),
    st.lists(st.tuples(st.integers(0, 19), st.booleans()), max_size=60),
)
def test_live_messages_are_given_in_order_or_not_at_all(
    length: int, done: int, heard: list[tuple[int, bool]]
) -> None:
    """Received in any order, twice, with those of another writer at the same positions."""
    ours, theirs = chain(20), chain(20, b"other")
    position = LogPosition().after(ours[done], done + 1)
    live, model = LiveMessages(), set()
    for number, is_ours in heard:
        message = (ours if is_ours else theirs)[number]
        live.add(position, message, number + 1, b"")
        if is_ours and number > done:
            model.add(number)
    end = min(length - 1, 19)
    found = live.up_to(position, head(ours[end], end + 1))
    wanted = list(range(done + 1, end + 1))
    expected = [ours[number] for number in wanted] if set(wanted) <= model else []
    assert [commit.message for commit in found] == expected
    live.forget(position.sequence + 1)
    again = live.up_to(position, head(ours[end], end + 1))
    assert not again


def test_live_messages_are_bounded() -> None:
    live = LiveMessages()
    messages = chain(200)
    for number, message in enumerate(messages):
        live.add(LogPosition(), message, number + 1, b"")
    assert len(live.commits) == FARTHEST
    live.forget(200)
    assert (live.size, live.commits) == (0, {})
    body = bytes(20 << 20)
    for number in range(10):
        live.add(LogPosition(), LogMessage(1, 0, 1, LOG, NO_LINK, body + bytes([number])), 1, b"")
    assert len(live.commits) == 3


COMMITS = st.lists(st.tuples(st.integers(1, 3), st.integers(1, 5)), max_size=30)


@given(COMMITS, st.integers(0, 60), st.integers(0, 60), st.integers(1, 12), st.integers(1, 40))
def test_a_journal_has_the_last_commits_whole(
    commits: list[tuple[int, int]], after: int, until: int, most: int, most_bytes: int
) -> None:
    journal, kept, last = Journal(most, most_bytes), [], 0
    for parts, size in commits:
        commit = OutgoingCommit(b"", (bytes(size),) * parts, last)
        journal.add(commit)
        kept.append(commit)
        last = commit.last
        while len(kept) > most or sum(each.size for each in kept) > most_bytes:
            kept.pop(0)
    ends = {each.expected_last for each in kept} & {after}, {e.last for e in kept} & {until}
    wanted = [each for each in kept if after < each.last <= until]
    assert journal.after(after, until) == (wanted if all(ends) and after < until else None)


def test_a_journal_begins_anew_after_a_gap() -> None:
    journal = Journal()
    journal.add(OutgoingCommit(b"", (b"a",), 4))
    journal.add(OutgoingCommit(b"", (b"b",), 9))
    assert journal.after(4, 10) is None
    assert journal.after(9, 10) is not None


def laid_out(messages: list[LogMessage], parts: list[int], first: int) -> list[StoredCommit]:
    stored, at = [], first
    for message, count in zip(messages, parts, strict=True):
        stored.append(StoredCommit(message, at, at + count - 1, (b"",) * count))
        at += count
    return stored


def reader(stored: list[StoredCommit]) -> Callable[[int], Awaitable[StoredCommit | None]]:
    async def read(sequence: int) -> StoredCommit | None:
        return next((each for each in stored if each.first <= sequence <= each.last), None)

    return read


LAYOUTS = st.integers(1, 25).flatmap(
    lambda length: st.lists(st.integers(1, 3), min_size=length, max_size=length)
)


@given(LAYOUTS, st.integers(1, 1000), st.integers(0, 30), st.integers(0, 24))
def test_a_place_is_found_by_commit_number(
    parts: list[int], first: int, at: int, gone: int
) -> None:
    """A stream without its first commits; a store before it, in it, or after it."""
    everything = chain(31)
    stored = laid_out(everything[: len(parts)], parts, first)
    end = stored[-1].last
    kept = stored[min(gone, len(stored) - 1) :]
    position = LogPosition().after(everything[at], 7)
    begin = kept[0].message.before
    work = find_position(position, kept[0].first, end, reader(kept))
    if position.commit > len(parts):
        assert asyncio.run(work) is None
    elif position.commit < begin:
        with pytest.raises(LogBeginsLater) as later:
            asyncio.run(work)
        assert later.value.first == begin
    else:
        place = next(each.last for each in stored if each.message.after == position.commit)
        assert asyncio.run(work) == position.at(place)


@given(LAYOUTS, st.integers(0, 24))
def test_another_history_has_no_place(parts: list[int], at: int) -> None:
    stored = laid_out(chain(len(parts), b"other"), parts, 1)
    at = min(at, len(parts) - 1)
    position = LogPosition().after(chain(25)[at], 7)
    with pytest.raises(ForkedLog):
        asyncio.run(find_position(position, 1, stored[-1].last, reader(stored)))


def test_another_log_has_no_place() -> None:
    stored = laid_out(chain(5), [1] * 5, 1)
    position = LogPosition(1, b"x" * 32, 3, 3, b"f" * 16)
    with pytest.raises(ForeignLog):
        asyncio.run(find_position(position, 1, 5, reader(stored)))


def test_a_newer_writer_before_the_end_of_a_store_is_a_fork() -> None:
    ours = chain(5)
    position = LogPosition().after(ours[4], 5)
    newer = LogMessage(2, 3, 4, LOG, ours[2].link, b"")
    stored = laid_out([*ours[:3], newer], [1] * 4, 1)
    with pytest.raises(ForkedLog):
        asyncio.run(find_position(position, 1, 4, reader(stored)))


def test_an_empty_stream_has_no_place() -> None:
    assert asyncio.run(find_position(LogPosition(commit=3), 1, 0, reader([]))) is None
