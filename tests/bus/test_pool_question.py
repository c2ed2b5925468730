"""Questions about a pool, over a real socket and part by part."""

import asyncio
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreblock.bus.exchange import Exchange, Respond
from foreblock.bus.frames import AskPool, PoolNotRead, PoolPart, Submit, WaitingTransaction
from foreblock.bus.link import WriterLink
from foreblock.bus.pool_question import MOST_BYTES, PART_BYTES, PoolQuestion, in_parts
from foreblock.errors import PoolUnavailable
from support.servers.in_loop import closed, in_loop, listening, run
from support.servers.waiting import PATIENCE

ALICE = b"\1" * 20


class Encoded(NamedTuple):
    """A transaction, as far as an answer needs it."""

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

    @in_loop
    async def scene() -> None:
        question, parts = PoolQuestion(), list(in_parts(7, found, total, 3, 4))
        assert [part.is_last for part in parts] == [False] * (len(parts) - 1) + [True]
        for part in parts:
            held = [len(each.raw) for each in part.transactions]
            assert sum(held) <= PART_BYTES or len(held) == 1
            question.hear(part)
        content = await question.answer
        assert (content.pending, content.queued) == (3, 4)
        if total > MOST_BYTES:
            assert (content.transactions, content.left_out) == ((), total)
        else:
            assert content.transactions == tuple(
                WaitingTransaction(each.hash, each.raw, each.sender, can_run)
                for each, can_run in found
            )

    scene()


class Pool:
    """Answers as a test wants it."""

    def __init__(self) -> None:
        self.asked: list[AskPool] = []
        self.answer: list[PoolPart | PoolNotRead] | None = None
        self.exchange = Exchange(self.submitted, lambda: (), self.hear)

    def submitted(self, message: Submit, respond: Respond) -> None:
        raise AssertionError(message, respond)

    def hear(self, message: AskPool, respond: Respond) -> None:
        self.asked.append(message)
        if self.answer is None:
            for part in in_parts(message.id, encoded(10, 100_000, 20), 100_030, 2, 1):
                respond(part)
        for word in self.answer or ():
            respond(word)


def connected(path: Path, question_seconds: float = PATIENCE) -> tuple[Pool, WriterLink, str]:
    name = str(path / "bus")
    return Pool(), WriterLink(name, question_seconds=question_seconds), name


def test_question_is_answered_over_the_socket(tmp_path: Path) -> None:
    async def scene() -> None:
        pool, link, path = connected(tmp_path)
        await pool.exchange.listen(listening(path))
        link.start()
        await link.tried()
        content = await link.ask_pool("main", "found", (b"\1" * 32,))
        assert [len(each.raw) for each in content.transactions] == [10, 100_000, 20]
        assert [each.can_run for each in content.transactions] == [True, False, True]
        (asked,) = pool.asked
        assert (asked.network, asked.wanted, asked.about) == ("main", "found", (b"\1" * 32,))
        pool.answer = [PoolNotRead(asked.id + 1)]
        with pytest.raises(PoolUnavailable):
            await link.ask_pool("main", "numbers")
        link.close()
        pool.exchange.close()
        await closed()

    run(scene)


def test_no_answer_is_an_error_in_time(tmp_path: Path) -> None:
    async def scene() -> None:
        pool, link, path = connected(tmp_path, question_seconds=0.001)
        pool.answer = []
        with pytest.raises(PoolUnavailable):
            await link.ask_pool("main", "all")
        await pool.exchange.listen(listening(path))
        link.start()
        await link.tried()
        with pytest.raises(PoolUnavailable):
            await link.ask_pool("main", "all")
        link.close()
        pool.exchange.close()
        await closed()

    run(scene)


def test_writer_that_goes_away_ends_the_question(tmp_path: Path) -> None:
    async def scene() -> None:
        pool, link, path = connected(tmp_path)
        pool.answer = []
        await pool.exchange.listen(listening(path))
        link.start()
        await link.tried()
        asking = asyncio.create_task(link.ask_pool("main", "all"))
        while not pool.asked:  # noqa: ASYNC110, there is nothing to be woken by
            await asyncio.sleep(0)
        pool.exchange.close()
        with pytest.raises(PoolUnavailable):
            await asking
        link.close()
        await closed()

    run(scene)
