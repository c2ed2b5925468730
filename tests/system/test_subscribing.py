"""Subscribers of a running dev chain with two workers, one of which is killed."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from support.servers.asking import request
from support.servers.dev_processes import Dev, dev_chain
from support.servers.waiting import PATIENCE

Json = Any


@pytest.fixture(scope="module")
def dev() -> Iterator[Dev]:
    with dev_chain("--workers=2", "--load=40", "--block-time=1", "--test-listen=") as running:
        yield running


async def subscribe(client: ClientConnection, *params: object) -> None:
    await client.send(request("eth_subscribe", *params).decode())
    answer = json.loads(await client.recv())
    assert answer["result"].startswith("0x"), answer


async def follow(dev: Dev, kind: list[object], count: int, kills: int) -> list[Json]:
    """Receive this many notifications, while workers are killed in between."""
    told: list[Json] = []
    resume: list[object] = []
    url = dev.main.url.replace("http:", "ws:")
    while len(told) < count:
        try:
            async with connect(url, max_size=None) as client:
                await subscribe(client, *kind, *resume)
                while len(told) < count:
                    told.append(json.loads(await client.recv())["params"])
                    resume = [{"cursor": told[-1]["cursor"]}]
                    if kills and len(told) >= count // 2:
                        kills -= 1
                        for _ in dev.pids("worker"):
                            dev.kill("worker")
        except (ConnectionClosed, OSError):
            await asyncio.sleep(0.05)
    return told


def test_filters_are_known_to_all_workers(dev: Dev) -> None:
    """Each request has a separate connection, so that both workers serve some."""
    name = dev.main.ask("eth_newBlockFilter")
    found: list[str] = []
    polls = 0
    while len(found) < 3:
        found += dev.main.ask("eth_getFilterChanges", name)
        polls += 1
    assert polls > 3, "most polls find nothing new"
    numbers = [int(dev.main.ask("eth_getBlockByHash", each, False)["number"], 16) for each in found]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def test_who_resumes_after_its_worker_was_killed_misses_nothing(dev: Dev) -> None:
    async def body() -> None:
        async with asyncio.timeout(PATIENCE):
            told = await asyncio.gather(
                follow(dev, ["newFlashblockTransactions"], 120, kills=1),
                follow(dev, ["logs"], 60, kills=0),
            )
        transactions = [each["result"] for each in told[0]]
        logs = [(each["result"]["blockNumber"], each["result"]["logIndex"]) for each in told[1]]
        first, last = (int(number, 16) for number, _ in (logs[0], logs[-1]))
        expected = []
        blocks: list[Json] = []
        for number in range(first, last + 1):
            receipts = dev.main.ask("eth_getBlockReceipts", hex(number))
            expected += [
                (log["blockNumber"], log["logIndex"]) for each in receipts for log in each["logs"]
            ]
        start = expected.index(logs[0])
        assert logs == expected[start : start + len(logs)]
        found = dev.main.ask("eth_getTransactionReceipt", transactions[0])
        number = int(found["blockNumber"], 16)
        while len(blocks) < len(transactions) + 1_000:
            block = dev.main.ask("eth_getBlockByNumber", hex(number), False)
            if block is None:
                block = dev.main.pending()
                blocks += block["transactions"]
                break
            blocks += block["transactions"]
            number += 1
        start = blocks.index(transactions[0])
        assert transactions == blocks[start : start + len(transactions)]

    asyncio.run(body())
