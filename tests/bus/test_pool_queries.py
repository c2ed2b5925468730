"""Requests to a pool, over a real socket and part by part."""

import asyncio
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreblock.bus.bus_client import BusClient
from foreblock.bus.bus_server import BusServer
from foreblock.bus.messages import (
    MOST_POOL_BYTES,
    POOL_PART_BYTES,
    BusCall,
    BusRequest,
    PoolNumbers,
    PoolQuery,
    WaitingTransaction,
    pool_parts,
)
from foreblock.errors import PoolUnavailable
from support.servers.in_loop import closed, listening, run
from support.servers.waiting import PATIENCE

ALICE = b"\1" * 20


class Encoded(NamedTuple):
    """A transaction with the fields that a response needs."""

    hash: bytes
    raw: bytes
    sender: bytes = ALICE


def encoded(*sizes: int) -> list[tuple[Encoded, bool]]:
    return [
        (Encoded(bytes([number % 256]) * 32, bytes(size)), number % 2 == 0)
        for number, size in enumerate(sizes)
    ]


@given(st.lists(st.integers(1, 128 << 10), max_size=40))
def test_parts_make_up_the_whole(sizes: list[int]) -> None:
    found = encoded(*sizes)
    total = sum(sizes)

    parts = list(pool_parts(found, total))
    for part in parts:
        held = [len(each.raw) for each in part]
        assert sum(held) <= POOL_PART_BYTES or len(held) == 1
    assert [each for part in parts for each in part] == [
        WaitingTransaction(each.hash, each.raw, each.sender, can_run)
        for each, can_run in (found if total <= MOST_POOL_BYTES else ())
    ]


class Pool:
    """Scripted replies."""

    def __init__(self) -> None:
        self.calls: list[BusCall] = []
        self.replies = True
        self.refuses = False
        self.server = BusServer(self.on_call, lambda: ())

    def on_call(self, request: BusRequest) -> None:
        self.calls.append(request.call)
        if self.refuses:
            request.refuse()
        elif self.replies:
            for part in pool_parts(encoded(10, 100_000, 20), 100_030):
                request.part(part)
            request.finish(PoolNumbers(2, 1))


def connected(path: Path, pool_seconds: float = PATIENCE) -> tuple[Pool, BusClient, str]:
    name = str(path / "bus")
    return Pool(), BusClient(name, pool_seconds=pool_seconds), name


def test_question_is_answered_over_the_socket(tmp_path: Path) -> None:
    async def scene() -> None:
        pool, link, path = connected(tmp_path)
        await pool.server.listen(listening(path))
        link.start()
        await link.tried()
        content = await link.query_pool("main", "found", (b"\1" * 32,))
        assert [len(each.raw) for each in content.transactions] == [10, 100_000, 20]
        assert [each.can_run for each in content.transactions] == [True, False, True]
        assert content.numbers == (2, 1, 0)
        (call,) = pool.calls
        assert (call.network, call.body) == ("main", PoolQuery("found", (b"\1" * 32,)))
        pool.refuses = True
        with pytest.raises(PoolUnavailable):
            await link.query_pool("main", "numbers")
        link.close()
        pool.server.close()
        await closed()

    run(scene)


def test_no_answer_is_an_error_in_time(tmp_path: Path) -> None:
    async def scene() -> None:
        pool, link, path = connected(tmp_path, pool_seconds=0.001)
        pool.replies = False
        with pytest.raises(PoolUnavailable):
            await link.query_pool("main", "all")
        await pool.server.listen(listening(path))
        link.start()
        await link.tried()
        with pytest.raises(PoolUnavailable):
            await link.query_pool("main", "all")
        link.close()
        pool.server.close()
        await closed()

    run(scene)


def test_writer_that_goes_away_ends_the_question(tmp_path: Path) -> None:
    async def scene() -> None:
        pool, link, path = connected(tmp_path)
        pool.replies = False
        await pool.server.listen(listening(path))
        link.start()
        await link.tried()
        asking = asyncio.create_task(link.query_pool("main", "all"))
        while not pool.calls:  # noqa: ASYNC110, there is nothing to be woken by
            await asyncio.sleep(0)
        pool.server.close()
        with pytest.raises(PoolUnavailable):
            await asking
        link.close()
        await closed()

    run(scene)
