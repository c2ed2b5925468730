"""What can be seen of a log from outside: its stream, its last commits, its writer.

Nothing is subscribed to and nothing is changed: three questions to JetStream, one read for each
commit that is shown, and one question to the writer of the last epoch.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from foreblock.clock import SECOND_NS
from foreblock.errors import BadLogStream, LogError
from foreblock.log.connection import LogConnection
from foreblock.log.node_messages import ask_writer
from foreblock.log.parts import StoredCommit
from foreblock.log.stream_reader import StreamReader


@dataclass(frozen=True, slots=True)
class ListedCommit:
    """One commit of the log."""

    sequence: int  # of its last part
    parts: int
    epoch: int
    before: int
    commit: int
    bytes: int  # in the stream
    unpacked: int  # of its body
    previous: str  # the link of the commit before
    link: str
    log_id: str
    writer: str  # a random name
    stored_at: str


@dataclass(frozen=True, slots=True)
class ListedMessage:
    """Messages of the stream that are no commit."""

    first: int
    last: int
    why: str


@dataclass(frozen=True, slots=True)
class ShownWriter:
    """Who answers as the writer of the last epoch."""

    epoch: int
    commit: int
    sequence: int
    boot_id: str
    seconds: float  # that its answer took


@dataclass(frozen=True, slots=True)
class ShownLog:
    """A log at one moment."""

    stream: str
    replicas: int
    leader: str
    followers: list[str]  # with those that are behind marked
    first: int
    last: int
    messages: int
    bytes: int
    last_at: str
    max_age_seconds: int
    max_bytes: int
    wrong: str  # settings with which it can be no log
    commits: list[ListedCommit]  # the newest first
    foreign: list[ListedMessage]  # between and after those
    writer: ShownWriter | None
    silence: str  # why nobody answers

    @property
    def head(self) -> ListedCommit | None:
        """The last commit that continues another."""
        return last_linked(self.commits)

    def as_object(self) -> dict[str, Any]:
        """All of it as JSON has it."""
        return asdict(self)


async def look(connection: LogConnection, most: int) -> ShownLog:
    """Look at a log. Raises `BadLogStream` where there is none, `LogUnreachable`."""
    stream = connection.subjects.stream
    answer = await connection.ask_jetstream(f"STREAM.INFO.{stream}")
    if answer.error:
        raise BadLogStream(stream, answer.why)
    config, state = answer.fields["config"], answer.fields["state"]
    cluster = answer.fields.get("cluster") or {}
    commits, foreign = await last_commits(connection, state["first_seq"], state["last_seq"], most)
    writer, silence = await _writer(connection, commits)
    return ShownLog(
        stream=stream,
        replicas=config.get("num_replicas", 1),
        leader=cluster.get("leader", ""),
        followers=[
            each["name"] + ("" if each.get("current") else " (behind)")
            for each in cluster.get("replicas") or ()
        ],
        first=state["first_seq"],
        last=state["last_seq"],
        messages=state["messages"],
        bytes=state["bytes"],
        last_at=state.get("last_ts", ""),
        max_age_seconds=config.get("max_age", 0) // SECOND_NS,
        max_bytes=config.get("max_bytes", -1),
        wrong=await _wrong(connection),
        commits=commits,
        foreign=foreign,
        writer=writer,
        silence=silence,
    )


async def last_commits(
    connection: LogConnection, first: int, last: int, most: int
) -> tuple[list[ListedCommit], list[ListedMessage]]:
    """Return the newest `most` entries between two sequences of a stream, newest first."""
    reader = StreamReader(connection)
    await reader.open()
    commits: list[ListedCommit] = []
    foreign: list[ListedMessage] = []
    try:
        while last >= max(1, first) and len(commits) + len(foreign) < most:
            entry = await reader.entry_from(last)
            if entry is None:
                break
            if isinstance(entry, StoredCommit):
                end = await reader.parts_from(entry.last, 1)
                commits.append(_listed(entry, end[0].headers if end else {}))
            else:
                foreign.append(ListedMessage(entry.first, entry.last, str(entry.why)))
            last = min(last, entry.first) - 1
    finally:
        await reader.close()
    return commits, foreign


def last_linked(commits: Sequence[ListedCommit]) -> ListedCommit | None:
    """Return the newest commit that continues another of these, newest first; else the oldest."""
    links = {each.link for each in commits}
    linked = (each for each in commits if each.previous in links)
    return next(linked, commits[-1] if commits else None)


def _listed(stored: StoredCommit, headers: Mapping[str, str]) -> ListedCommit:
    message = stored.message
    return ListedCommit(
        sequence=stored.last,
        parts=len(stored.parts),
        epoch=message.epoch,
        before=message.before,
        commit=message.after,
        bytes=sum(map(len, stored.parts)),
        unpacked=len(message.body),
        previous=message.previous.hex(),
        link=message.link.hex(),
        log_id=message.log_id.hex(),
        writer=stored.writer,
        stored_at=headers.get("Nats-Time-Stamp", ""),
    )


async def _wrong(connection: LogConnection) -> str:
    try:
        await connection.check_stream()
    except BadLogStream as why:
        return why.why
    return ""


async def _writer(
    connection: LogConnection, commits: list[ListedCommit]
) -> tuple[ShownWriter | None, str]:
    silence = "the log is empty"
    for epoch in dict.fromkeys(each.epoch for each in commits):
        begun = time.monotonic()
        try:
            head = await ask_writer(connection, epoch)
        except LogError as why:
            silence = str(why)
        else:
            took = time.monotonic() - begun
            found = ShownWriter(head.epoch, head.commit, head.sequence, head.boot_id.hex(), took)
            return found, ""
    return None, silence
