"""Begin a log anew from a store: its stream is deleted, made again, and gets a first commit.

The first commit changes nothing of the chain. It follows the last commit of the store, has the
id of the store as that of the log, no link before it, and an epoch above all that the store and
the old stream knew; so every other store has another history than this log, and takes a
snapshot. The store makes it durable after the stream has taken it, as for each commit.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from foreblock.cli.log.looking import ListedCommit, last_commits, last_linked
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
from foreblock.log.position import LogPosition
from foreblock.log.stream_reader import StreamReader

LOOKED_AT: Final = 64  # entries of the old stream
HIGHEST_EPOCH: Final = 1 << 63  # of a log; above it is a foreign commit


@dataclass(frozen=True, slots=True)
class Before:
    """What is there before a log is begun anew."""

    commit: int  # of the store
    epoch: int  # the highest of store and log
    stream: str
    last: ListedCommit | None  # of the log; none if it is empty or not there
    messages: int | None  # none: there is no stream
    writer: str  # who answers as the writer, empty if nobody does


@dataclass(frozen=True, slots=True)
class Begun:
    """The first commit of a log."""

    epoch: int
    commit: int
    sequence: int
    log_id: str
    link: str


def open_store(folder: Path) -> Store:
    """The store that a log is to begin from. Raises `StoreMissing`, `StoreLocked`."""
    if not (folder / DATA_FILE).exists():
        raise StoreMissing(str(folder))  # opening it for writing would make a new one
    return Store(str(folder), write=True)


async def look_before(connection: LogConnection, store: Store) -> Before:
    """What is there. Raises `LogUnreachable`."""
    with store.view() as view:
        commit, row = view.heads.commit, view.log_row
    known = 0 if row is None else row.epoch
    stream = connection.subjects.stream
    try:
        state = await connection.state()
    except BadLogStream:
        return Before(commit, known, stream, None, None, "")
    commits, _ = await last_commits(connection, state.first, state.last, LOOKED_AT)
    last = last_linked(commits)
    epoch = max(known, last.epoch if last and last.epoch < HIGHEST_EPOCH else 0)
    epochs = {known, epoch, *(each.epoch for each in commits)}
    return Before(
        commit, epoch, stream, last, state.last - state.first + 1, await _writer(connection, epochs)
    )


async def _writer(connection: LogConnection, epochs: Iterable[int]) -> str:
    for epoch in epochs:
        with suppress(LogError):
            head = await ask_writer(connection, epoch)
            return f"the writer of epoch {head.epoch} answers, at commit {head.commit}"
    return ""


async def begin_log(
    connection: LogConnection, store: Store, before: Before, replicas: int
) -> Begun:
    """Delete the stream, make it again, and append its first commit."""
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
        with suppress(CommitDeclined):  # a message of somebody else is before it
            await asyncio.to_thread(store.commit, batch, row, ask)
            return Begun(epoch, message.after, outgoing.last, log_id.hex(), message.link.hex())
