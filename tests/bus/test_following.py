"""Hints of commits: to the workers that follow them, and to no others."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from foreblock.bus.bus_client import BusClient
from foreblock.bus.bus_server import BusServer
from foreblock.bus.messages import Committed, NextNonce
from support.servers.in_loop import closed, listening
from support.servers.waiting import PATIENCE

ALICE = b"\1" * 20


def exchange() -> BusServer:
    return BusServer(lambda *_: None, list)


@asynccontextmanager
async def connected(
    path: str, writer: BusServer, workers: int = 2
) -> AsyncIterator[list[BusClient]]:
    await writer.listen(listening(path))
    links = [BusClient(path) for _ in range(workers)]
    try:
        async with asyncio.timeout(PATIENCE):
            for link in links:
                link.start()
                await link.tried()
            yield links
    finally:
        for link in links:
            link.close()
        writer.close()
        await closed()


async def until(is_so: Callable[[], bool]) -> None:
    while not is_so():  # noqa: ASYNC110, it has no event
        await asyncio.sleep(0)


async def heard(writer: BusServer, links: list[BusClient]) -> None:
    """Return when all workers have read everything sent so far; `nonce` is sent to all of them."""
    nonce = links[0].next_nonce("main", ALICE) + 1
    writer.broadcast(NextNonce("main", ALICE, nonce))
    await until(lambda: all(link.next_nonce("main", ALICE) == nonce for link in links))


def test_who_follows_a_network_hears_of_its_commits_until_it_ends(tmp_path: Path) -> None:
    async def scene() -> None:
        writer, calls = exchange(), list[str]()
        async with connected(str(tmp_path / "bus"), writer) as links:
            one, other = links
            with (
                one.following("main", lambda: calls.append("main")),
                one.following("test", lambda: calls.append("test")),
            ):
                await until(lambda: writer.sends_commits)
                writer.broadcast(Committed("main", 7))
                writer.broadcast(Committed("test", 3))
                writer.broadcast(Committed("main", 8))
                await heard(writer, links)
                assert calls == ["main", "test", "main"]
            await until(lambda: not writer.sends_commits)
            writer.broadcast(Committed("main", 9))
            await heard(writer, [one, other])
            assert len(calls) == 3

    asyncio.run(scene())


def test_the_next_writer_is_asked_for_commits_as_well(tmp_path: Path) -> None:
    async def scene() -> None:
        first, calls = exchange(), list[int]()
        path = tmp_path / "bus"
        async with connected(str(path), first, 1) as (link,):
            with link.following("main", lambda: calls.append(1)):
                await until(lambda: first.sends_commits)
                first.close()
                await until(lambda: not first.sends_commits)
                path.unlink()
                second = exchange()
                await second.listen(listening(str(path)))
                await until(lambda: second.sends_commits)
                second.broadcast(Committed("main", 1))
                await until(lambda: bool(calls))
                second.close()

    asyncio.run(scene())


def test_a_worker_in_the_process_of_the_writer_hears_at_once() -> None:
    async def scene() -> None:
        writer, calls = exchange(), list[int]()
        link = BusClient("")
        link.connect_directly(writer)
        await link.tried()
        with link.following("main", lambda: calls.append(1)):
            writer.broadcast(Committed("main", 1))
            writer.broadcast(NextNonce("main", ALICE, 5))
            await writer.announce_change("test")
            assert (calls, link.next_nonce("main", ALICE)) == ([1], 5)
        await writer.announce_change("main")
        assert link.next_nonce("main", ALICE) == 0

    asyncio.run(scene())


def test_nothing_is_encoded_for_a_worker_in_the_process_of_the_writer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scene() -> None:
        writer, calls, framed = exchange(), list[int](), list[object]()
        link = BusClient("")
        link.connect_directly(writer)
        link.follow("main", lambda: calls.append(1))
        monkeypatch.setattr("foreblock.bus.bus_server.frame", framed.append)
        writer.broadcast(Committed("main", 1))
        writer.broadcast(NextNonce("main", ALICE, 5))
        assert (calls, link.next_nonce("main", ALICE), framed) == ([1], 5, [])

    asyncio.run(scene())
