"""Commits of a writer: nothing is durable or announced before the log has it."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from foreblock._engine import Heads, LogRow, Store
from foreblock.errors import Deposed, LogUnreachable, RefusedCommit
from foreblock.log.parts import OutgoingCommit, outgoing
from foreblock.log.position import LogPosition
from foreblock.replication.logged_commits import LoggedCommits

Append = Callable[[LogPosition, OutgoingCommit], Awaitable[LogPosition | None]]


class Bench:
    """A store and commits to it, with a log played by a test."""

    def __init__(self, store: Store, append: Append) -> None:
        self.store = store
        self.announced: list[LogPosition] = []
        self.appended: list[OutgoingCommit] = []
        self._append = append
        appender = SimpleNamespace(
            prepare=lambda at, message: outgoing(message, at.end, 1 << 20),
            append=self.append,
        )
        session: Any = SimpleNamespace(appender=appender)
        with store.view() as view:
            at = LogPosition(commit=view.heads.commit, log_id=view.heads.store_id)
        self.commits = LoggedCommits(session, at, 1, b"i" * 16, self.announced.append)
        self._thread = ThreadPoolExecutor(1)

    async def append(self, position: LogPosition, commit: OutgoingCommit) -> LogPosition:
        moved = await self._append(position, commit)
        self.appended.append(commit)
        return moved or position

    async def commit(self, **rows: bytes) -> Heads:
        def make() -> Heads:
            batch = self.store.batch()
            for key, row in rows.items():
                batch.put(key.encode(), row)
            return self.commits.commit(self.store, batch)

        return await asyncio.get_running_loop().run_in_executor(self._thread, make)

    def row(self) -> tuple[int, LogRow | None]:
        with self.store.view() as view:
            return view.heads.commit, view.log_row


def on(tmp_path: Path, append: Append, test: Callable[[Bench], Awaitable[None]]) -> None:
    async def run() -> None:
        with Store(str(tmp_path / "store"), write=True) as store:
            bench = Bench(store, append)
            try:
                await test(bench)
            finally:
                bench.commits.stop()

    asyncio.run(run())


def test_nothing_is_there_until_the_log_has_it(tmp_path: Path) -> None:
    asked, answer = asyncio.Event(), asyncio.Event()

    async def append(_: LogPosition, __: OutgoingCommit) -> LogPosition | None:
        asked.set()
        await answer.wait()
        return None

    async def test(bench: Bench) -> None:
        committing = asyncio.create_task(bench.commit(one=b"1"))
        await asked.wait()
        assert bench.row() == (0, None)
        assert not bench.announced
        answer.set()
        heads = await committing
        assert heads.commit == 1
        (appended,) = bench.appended
        assert bench.row() == (1, LogRow(1, appended.link, 1))
        await asyncio.sleep(0)
        assert bench.announced == [bench.commits.position]
        await bench.commit(two=b"2")
        assert bench.appended[1].expected_last == 1
        assert bench.commits.position.commit == 2

    on(tmp_path, append, test)


def test_a_commit_goes_after_messages_that_the_log_skips(tmp_path: Path) -> None:
    async def append(position: LogPosition, _: OutgoingCommit) -> LogPosition | None:
        return position.skipping_to(3) if position.skipped < 3 else None

    async def test(bench: Bench) -> None:
        heads = await bench.commit(one=b"1")
        refused, appended = bench.appended
        assert (refused.last, appended.last, refused.link) == (1, 4, appended.link)
        assert bench.row() == (heads.commit, LogRow(1, appended.link, 4))
        assert (bench.commits.position.sequence, bench.commits.position.skipped) == (4, 0)
        with bench.store.view() as view:
            assert view.row(b"one") == b"1"

    on(tmp_path, append, test)


def test_a_deposed_writer_stores_nothing_and_writes_no_more(tmp_path: Path) -> None:
    async def append(_: LogPosition, __: OutgoingCommit) -> LogPosition | None:
        raise Deposed(2, 1)

    async def test(bench: Bench) -> None:
        for _ in range(2):
            with pytest.raises(Deposed):
                await bench.commit(one=b"1")
        assert bench.row() == (0, None)
        assert bench.commits.is_deposed
        assert not bench.announced
        with pytest.raises(Deposed):
            await bench.commits.wait_until_lost()

    on(tmp_path, append, test)


def test_what_does_not_fit_never_reaches_the_log(tmp_path: Path) -> None:
    async def append(_: LogPosition, __: OutgoingCommit) -> LogPosition | None:
        raise AssertionError("it was not to be appended")

    async def test(bench: Bench) -> None:
        batch = bench.store.batch()
        batch.rewind(7)
        with pytest.raises(RefusedCommit):
            bench.commits.commit(bench.store, batch)
        assert not bench.appended

    on(tmp_path, append, test)


def test_a_commit_that_waits_ends_with_the_node(tmp_path: Path) -> None:
    asked = asyncio.Event()

    async def append(_: LogPosition, __: OutgoingCommit) -> LogPosition | None:
        asked.set()
        await asyncio.Event().wait()
        return None

    async def test(bench: Bench) -> None:
        committing = asyncio.create_task(bench.commit(one=b"1"))
        await asked.wait()
        bench.commits.stop()
        with pytest.raises(LogUnreachable, match="stops"):
            await committing
        assert bench.row() == (0, None)

    on(tmp_path, append, test)
