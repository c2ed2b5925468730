"""The pool over the bus: many requests in one message, and responses that are too large."""

import asyncio
from typing import cast

import pytest

from foreblock.bus.bus_client import BusClient, PoolContent
from foreblock.bus.messages import (
    MOST_ABOUT,
    MOST_POOL_BYTES,
    PoolNumbers,
    PoolSelection,
    WaitingTransaction,
)
from foreblock.errors import PoolTooLarge
from foreblock.service.remote_sequencing import WriterPool
from support.servers.in_loop import in_loop

ALICE, BOB = b"\1" * 20, b"\2" * 20


class Link:
    """Has all transactions with an even hash."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, PoolSelection, tuple[bytes, ...]]] = []
        self.left_out = 0

    async def query_pool(
        self, network: str, wanted: PoolSelection, about: tuple[bytes, ...] = ()
    ) -> PoolContent:
        self.asked.append((network, wanted, about))
        await asyncio.sleep(0)
        found = [each for each in about if each[-1] % 2 == 0] if wanted == "found" else []
        waiting = (WaitingTransaction(each, b"raw", ALICE, can_run=True) for each in found)
        return PoolContent(tuple(waiting), PoolNumbers(3, 4, self.left_out))


def pool(link: Link) -> WriterPool:
    return WriterPool(cast("BusClient", link), "main")


@in_loop
async def test_each_request_of_a_round_gets_its_own_transaction() -> None:
    link = Link()
    hashes = [bytes([number]) * 32 for number in range(MOST_ABOUT + 1)]
    found = await asyncio.gather(*map(pool(link).find, hashes))
    assert [each and each.hash for each in found] == [
        each if each[0] % 2 == 0 else None for each in hashes
    ]
    assert [len(about) for _, _, about in link.asked] == [MOST_ABOUT, 1]
    assert {network for network, _, _ in link.asked} == {"main"}


@in_loop
async def test_senders_are_asked_for_one_by_one() -> None:
    link = Link()
    asking = pool(link)
    await asyncio.gather(*map(asking.of_sender, (ALICE, BOB)))
    assert link.asked == [("main", "of_senders", (ALICE,)), ("main", "of_senders", (BOB,))]
    assert await asking.numbers() == (3, 4)
    assert await asking.all() == ()
    assert link.asked[2:] == [("main", "numbers", ()), ("main", "all", ())]


@in_loop
async def test_answer_that_was_left_out_is_an_error_with_its_size() -> None:
    link = Link()
    link.left_out = MOST_POOL_BYTES + 1
    for asking in (pool(link).all(), pool(link).of_sender(ALICE)):
        with pytest.raises(PoolTooLarge, match=str(MOST_POOL_BYTES + 1)):
            await asking
