"""The stream of a log from the outside: inspect it, or replace it by a new one.

Inspecting changes nothing: three requests to JetStream, one read for each listed commit, and one
request to the writer of the last epoch.

A new log deletes the stream, creates it again and appends a first commit, which changes nothing
of the chain. That commit follows the last commit of the store, has the store's id as log id, no
previous link, and an epoch above all that the store and the old stream knew. Every other store
therefore has a different history and takes a snapshot. As with every commit, the store makes it
durable after the stream has accepted it.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from foreblock.clock import SystemClock
from foreblock.errors import BadLogStream, CommitDeclined, LogError, StoreMissing
from foreblock.ledger.storage.commits import LogRow
from foreblock.ledger.storage.copy_store import heads_of
from foreblock.ledger.storage.open_store import Store
from foreblock.ledger.storage.store_watch import DATA_FILE
from foreblock.log.append import Appender
from foreblock.log.connection import LogConnection
from foreblock.log.held_messages import Journal
from foreblock.log.message import LogMessage
from foreblock.log.node_messages import ask_writer
from foreblock.log.parts import StoredCommit
from foreblock.log.position import LogPosition
from foreblock.log.stream_reader import StreamReader

_NS: Final = 10**9


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
    """Messages of the stream that are not a commit."""

    first: int
    last: int
    why: str


@dataclass(frozen=True, slots=True)
class ShownWriter:
    """The writer of the last epoch, as it describes itself."""

    epoch: int
    commit: int
    sequence: int
    boot_id: str
    seconds: float  # until its response


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
    wrong: str  # settings of the stream that a log must not have
    commits: list[ListedCommit]  # the newest first
    foreign: list[ListedMessage]  # between and after those
    writer: ShownWriter | None
    silence: str  # why no writer responds

    @property
    def head(self) -> ListedCommit | None:
        """The last commit that continues another."""
        return last_linked(self.commits)

    def as_object(self) -> dict[str, Any]:
        return asdict(self)


async def inspect_log(connection: LogConnection, most: int) -> ShownLog:
    """Return the log with its newest commits. Raises `BadLogStream`, `LogUnreachable`."""
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
        max_age_seconds=config.get("max_age", 0) // _NS,
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


INSPECTED: Final = 64  # entries of the old stream
HIGHEST_EPOCH: Final = 1 << 63  # of a log; above it is a foreign commit


@dataclass(frozen=True, slots=True)
class Before:
    """The store and the log before a new log is started."""

    commit: int  # of the store
    epoch: int  # the highest of store and log
    stream: str
    last: ListedCommit | None  # of the log; None if it is empty or missing
    messages: int | None  # None if the stream does not exist
    writer: str  # a description of the writer; empty if none responds


@dataclass(frozen=True, slots=True)
class Begun:
    """The first commit of a log."""

    epoch: int
    commit: int
    sequence: int
    log_id: str
    link: str


def open_store(folder: Path) -> Store:
    """Open the store of the new log. Raises `StoreMissing`, `StoreLocked`."""
    if not (folder / DATA_FILE).exists():
        raise StoreMissing(str(folder))  # opening it for writing would create one
    return Store(str(folder), write=True)


async def inspect_before(connection: LogConnection, store: Store) -> Before:
    """Inspect store and log. Raises `LogUnreachable`."""
    with store.view() as view:
        commit, row = view.heads.commit, view.log_row
    known = 0 if row is None else row.epoch
    stream = connection.subjects.stream
    try:
        state = await connection.state()
    except BadLogStream:
        return Before(commit, known, stream, None, None, "")
    commits, _ = await last_commits(connection, state.first, state.last, INSPECTED)
    last = last_linked(commits)
    epoch = max(known, last.epoch if last and last.epoch < HIGHEST_EPOCH else 0)
    epochs = {known, epoch, *(each.epoch for each in commits)}
    return Before(
        commit,
        epoch,
        stream,
        last,
        state.last - state.first + 1,
        await _answering_writer(connection, epochs),
    )


async def _answering_writer(connection: LogConnection, epochs: Iterable[int]) -> str:
    for epoch in epochs:
        with suppress(LogError):
            head = await ask_writer(connection, epoch)
            return f"the writer of epoch {head.epoch} is running, at commit {head.commit}"
    return ""


async def begin_log(
    connection: LogConnection, store: Store, before: Before, replicas: int
) -> Begun:
    """Delete the stream, create it again, and append its first commit."""
    if before.messages is not None:
        deleted = await connection.ask_jetstream(f"STREAM.DELETE.{before.stream}")
        if deleted.error:
            raise BadLogStream(before.stream, deleted.why)
    await connection.make_stream(replicas)
    reader = StreamReader(connection)
    await reader.open()
    appender = Appender(connection, reader, Journal(), SystemClock())
    return await _append_first(appender, store, before.epoch + 1)


async def _append_first(appender: Appender, store: Store, epoch: int) -> Begun:
    heads, batch = heads_of(store), store.batch()
    batch.draw()  # every commit of a log has a number
    log_id = heads.store_id
    position = LogPosition(commit=heads.commit, log_id=log_id)
    message = LogMessage(epoch, batch.before, batch.after, log_id, position.link, batch.encode())
    loop = asyncio.get_running_loop()
    while True:
        outgoing = appender.prepare(position, message)
        appending = partial(appender.append, position, outgoing)

        def ask(appending: Callable[[], Coroutine[None, None, LogPosition]] = appending) -> bool:
            nonlocal position
            before = position
            position = asyncio.run_coroutine_threadsafe(appending(), loop).result()
            return position == before

        row = LogRow(epoch, message.link, outgoing.last)
        with suppress(CommitDeclined):  # another message came first
            await asyncio.to_thread(store.commit, batch, row, ask)
            return Begun(epoch, message.after, outgoing.last, log_id.hex(), message.link.hex())
