"""eth_subscribe on a chain that grows index by index: events, their forms, and starting
positions.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from foreblock.ledger.reading.view import Ledger
from foreblock.scheduling.reply import Reply
from foreblock.service.network_views import Service, make_scheduler
from support.chains.preconfirming import COUNTER, PreconfirmingChain
from support.servers.asking import asker, error, request, settings_with
from support.servers.in_loop import run, turns, until
from support.servers.long_work import thresholds
from support.servers.sessions import Connection

Json = Any
ADDED = "0x" + COUNTER.hex()


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[PreconfirmingChain]:
    chain = PreconfirmingChain(tmp_path / "store")
    chain.begin()
    yield chain
    chain.close()


class Served:
    """A service on a chain, like that of one worker."""

    def __init__(self, chain: PreconfirmingChain, subscriptions: int = 256) -> None:
        options = settings_with("ethereum", subscriptions=subscriptions)
        self.ledger = Ledger(chain.store, clock=chain.clock)
        self.scheduler = make_scheduler(options)
        self.service = Service(self.ledger, options, self.scheduler)

    def connect(self) -> Connection:
        return Connection(self.service.open_session)


def serving(
    chain: PreconfirmingChain, test: Callable[[Served], Awaitable[None]], **options: int
) -> None:
    served = Served(chain, **options)

    async def bounded() -> None:
        await test(served)

    run(bounded)
    served.scheduler.close()


def count(chain: PreconfirmingChain, *values: int) -> None:
    """Add the next index, with a log for each value."""
    chain.extend([chain.pay(COUNTER, value) for value in values])


def test_heads_are_notified_as_blocks_are_sealed(chain: PreconfirmingChain) -> None:
    async def test(served: Served) -> None:
        client = served.connect()
        name = await client.ask("eth_subscribe", "newHeads")
        assert int(name, 16) < 1 << 128
        assert name == hex(int(name, 16)), "ids are quantities"
        chain.extend()
        chain.begin()
        chain.begin()
        first, second = await client.notifications(2)
        assert first["subscription"] == second["subscription"] == name
        for notice, number in ((first, "0x1"), (second, "0x2")):
            block = await client.ask("eth_getBlockByNumber", number, False)
            left_out = {"size", "transactions", "uncles", "withdrawals"}
            assert notice["result"] == {k: v for k, v in block.items() if k not in left_out}

    serving(chain, test)


def test_logs_of_sealed_blocks_and_of_flashblocks(chain: PreconfirmingChain) -> None:
    async def test(served: Served) -> None:
        client = served.connect()
        sealed = await client.ask("eth_subscribe", "logs", {"address": ADDED})
        await client.ask("eth_subscribe", "logs", {"address": "0x" + "11" * 20})
        pending = await client.ask("eth_subscribe", "pendingLogs", {"address": [ADDED]})
        await turns()
        count(chain, 5, 7)
        notices = await client.notifications(2)
        assert [each["subscription"] for each in notices] == [pending] * 2
        block = await client.ask("eth_getBlockReceipts", "pending")
        logs = [log for receipt in block for log in receipt["logs"]]
        assert [each["result"] for each in notices] == logs
        chain.begin()
        notices = await client.notifications(2)
        assert [each["subscription"] for each in notices] == [sealed] * 2
        block = await client.ask("eth_getBlockReceipts", "0x1")
        logs = [log for receipt in block for log in receipt["logs"]]
        assert [each["result"] for each in notices] == logs
        assert {each["result"]["removed"] for each in notices} == {False}

    serving(chain, test)


def test_flashblocks_and_their_transactions(chain: PreconfirmingChain) -> None:
    async def test(served: Served) -> None:
        client = served.connect()
        blocks = await client.ask("eth_subscribe", "newFlashblocks")
        await turns()
        for values in ((1,), (2, 3)):
            count(chain, *values)
            (notice,) = await client.notifications(1)
            assert notice["subscription"] == blocks
            assert notice["result"] == await client.ask("eth_getBlockByNumber", "pending", True)
        await client.ask("eth_unsubscribe", blocks)
        hashes = await client.ask("eth_subscribe", "newFlashblockTransactions")
        full = await client.ask("eth_subscribe", "newFlashblockTransactions", True)
        pooled = await client.ask("eth_subscribe", "newPendingTransactions")
        pooled_full = await client.ask("eth_subscribe", "newPendingTransactions", True)
        await turns()
        count(chain, 4, 5)
        notices = await client.notifications(8)
        found = {
            name: [each["result"] for each in notices if each["subscription"] == name]
            for name in (hashes, full, pooled, pooled_full)
        }
        block = await client.ask("eth_getBlockByNumber", "pending", True)
        receipts = await client.ask("eth_getBlockReceipts", "pending")
        added = block["transactions"][-2:]
        assert found[hashes] == found[pooled] == [each["hash"] for each in added]
        assert found[full] == [
            each | {"logs": receipt["logs"]}
            for each, receipt in zip(added, receipts[-2:], strict=True)
        ]
        nowhere = {"blockHash": None, "blockNumber": None, "blockTimestamp": None}
        assert found[pooled_full] == [
            each | nowhere | {"transactionIndex": None, "gasPrice": each["maxFeePerGas"]}
            for each in added
        ]

    serving(chain, test)


def test_flashblocks_with_their_newest_transactions(chain: PreconfirmingChain) -> None:
    left_out = {"size", "uncles", "withdrawals"}

    async def test(served: Served) -> None:
        client = served.connect()
        names = {
            await client.ask("eth_subscribe", "newFlashblocks", {"newest": most}): most
            for most in (0, 2, 10**30)
        }
        whole = await client.ask("eth_subscribe", "newFlashblocks")
        await turns()

        async def expect(index: int, added: int) -> None:
            notices = {
                each["subscription"]: each["result"] for each in await client.notifications(4)
            }
            block = await client.ask("eth_getBlockByNumber", "pending", True)
            assert notices.pop(whole) == block
            transactions = block["transactions"]
            shown = {key: value for key, value in block.items() if key not in left_out}
            shown |= {"flashblockIndex": hex(index), "transactionCount": hex(len(transactions))}
            for name, most in names.items():
                newest = transactions[len(transactions) - min(most, added) :]
                assert notices[name] == shown | {"transactions": newest}, most

        count(chain, 1)
        await expect(1, 1)
        count(chain, 2, 3, 4)
        await expect(2, 3)
        chain.writer.extend(chain.block, quietly=True)
        await expect(3, 0)
        chain.begin()
        await expect(0, 1)
        with thresholds(rendered_transactions=2):
            count(chain, *range(1, 6))
            await expect(1, 5)

    serving(chain, test)


def test_deposits_are_transactions_of_flashblocks_but_of_no_pool(
    chain: PreconfirmingChain,
) -> None:
    async def test(served: Served) -> None:
        client = served.connect()
        every = await client.ask("eth_subscribe", "newFlashblockTransactions", False)
        await client.ask("eth_subscribe", "newPendingTransactions", {"includeTransactions": False})
        await turns()
        chain.begin()
        count(chain, 1)
        notices = await client.notifications(3)
        assert [each["subscription"] == every for each in notices].count(True) == 2

    serving(chain, test)


def test_a_client_resumes_inside_a_block_without_gap_or_repeat(chain: PreconfirmingChain) -> None:
    async def test(served: Served) -> None:
        client = served.connect()
        await client.ask("eth_subscribe", "logs")
        await turns()
        count(chain, 1, 2, 3)
        chain.begin()
        count(chain, 4)
        chain.begin()
        every = await client.notifications(4)
        workers = [Served(chain) for _ in range(4)]  # or consecutive processes
        for seen, another in enumerate(workers):
            again = another.connect()
            cursor = {"cursor": every[seen]["cursor"]}
            await again.ask("eth_subscribe", "logs", {"address": ADDED}, cursor)
            rest = await again.notifications(3 - seen)
            assert [each["result"] for each in rest] == [
                each["result"] for each in every[seen + 1 :]
            ]
            assert [each["cursor"] for each in rest] == [
                each["cursor"] for each in every[seen + 1 :]
            ]
            another.scheduler.close()

    serving(chain, test)


def test_a_slow_client_is_ended_and_the_others_go_on(chain: PreconfirmingChain) -> None:
    async def test(served: Served) -> None:
        slow, other = served.connect(), served.connect()
        await slow.ask("eth_subscribe", "newHeads")
        await other.ask("eth_subscribe", "newHeads")
        await turns()
        slow.channel.budget = 0
        chain.begin()
        chain.begin()
        assert len(await other.notifications(2)) == 2
        assert slow.channel.sent == []
        with pytest.raises(KeyError):
            (await slow.ask("eth_subscribe", "newHeads"))["result"]

    serving(chain, test)


def test_what_cannot_be_subscribed_to_is_refused_as_geth_does(chain: PreconfirmingChain) -> None:
    async def test(served: Served) -> None:
        client = served.connect()
        for params, expected in (
            (("newBeads",), error(-32601, 'no "newBeads" subscription in eth namespace')),
            ((), error(-32602, "expected subscription name as first argument")),
            ((7,), error(-32602, "expected subscription name as first argument")),
            (("newHeads", True), error(-32602, "too many arguments, want at most 1")),
            *(
                (
                    ("newFlashblocks", wrong),
                    error(-32602, 'invalid argument 1: expected {"newest": NUMBER}'),
                )
                for wrong in (True, {}, {"newest": -1}, {"newest": "0x1"}, {"newest": 1, "all": 1})
            ),
            (
                ("newFlashblocks", {"newest": 1}, {}),
                error(-32602, "too many arguments, want at most 2"),
            ),
            (
                ("logs", {"topics": [None] * 5}),
                error(-32602, "invalid argument 1: exceed max topics"),
            ),
            (
                ("logs", {"fromBlock": "pending"}),
                error(-32602, "pending logs are not supported"),
            ),
            (
                ("logs", {"fromBlock": "0x2", "toBlock": "0x1"}),
                error(-32602, "invalid block range params"),
            ),
            (
                ("newHeads", {"cursor": "h1"}),
                error(-32602, "invalid argument 1: $.cursor: not a cursor of this service"),
            ),
            (
                ("newHeads", {"cursor": f"l1.{'00' * 32}"}),
                error(
                    -32602,
                    "invalid argument 1: $.cursor: the cursor is of another kind of subscription",
                ),
            ),
            (
                ("newHeads", {"cursor": f"h1.{'00' * 32}"}),
                error(
                    -32000,
                    "the events after this cursor are no longer kept; subscribe without it",
                ),
            ),
        ):
            assert await client.ask("eth_subscribe", *params) == expected, params
        assert await client.ask("eth_unsubscribe", "0x1") == error(-32000, "subscription not found")

    serving(chain, test)


def test_plain_http_has_no_notifications(chain: PreconfirmingChain) -> None:
    with asker(Ledger(chain.store, clock=chain.clock), "ethereum") as client:
        expected = error(-32601, "notifications not supported")
        assert client.ask("eth_subscribe", "newHeads") == expected
        assert client.ask("eth_unsubscribe", "0x1") == expected


def test_a_connection_has_so_many_subscriptions(chain: PreconfirmingChain) -> None:
    async def test(served: Served) -> None:
        client = served.connect()
        names = [await client.ask("eth_subscribe", "newHeads") for _ in range(2)]
        refused = error(-32005, "too many subscriptions, at most 2")
        assert await client.ask("eth_subscribe", "newHeads") == refused
        assert await client.ask("eth_unsubscribe", names[0]) is True
        assert isinstance(await client.ask("eth_subscribe", "newHeads"), str)
        other = served.connect()
        assert isinstance(await other.ask("eth_subscribe", "newHeads"), str)
        with thresholds(worker_subscriptions=3):
            refused = error(-32005, "too many subscriptions, at most 3")
            assert await other.ask("eth_subscribe", "newHeads") == refused

    serving(chain, test, subscriptions=2)


def test_the_filters_of_subscriptions_are_bounded_in_bytes(chain: PreconfirmingChain) -> None:
    def named(first: int) -> Json:
        return {"address": [f"0x{number:040x}" for number in range(first, first + 10)]}

    def refused(where: str, most: int) -> Json:
        why = f"the log filters of this {where} are too large, at most {most} bytes"
        return error(-32005, why)

    async def test(served: Served) -> None:
        client, other = served.connect(), served.connect()
        names = [await client.ask("eth_subscribe", "logs", named(n)) for n in (10, 20)]
        assert await client.ask("eth_subscribe", "pendingLogs", named(30)) == refused(
            "connection", 5_000
        )
        assert isinstance(await client.ask("eth_subscribe", "newHeads"), str)
        for _ in range(3):
            assert await client.ask("eth_unsubscribe", names.pop()) is True
            names.append(await client.ask("eth_subscribe", "pendingLogs", named(40)))
        assert isinstance(await other.ask("eth_subscribe", "logs", named(30)), str)
        assert await other.ask("eth_subscribe", "logs", named(50)) == refused("worker", 7_000)
        client.session.ended()
        assert isinstance(await other.ask("eth_subscribe", "logs", named(50)), str)

    with thresholds(connection_filters_bytes=5_000, worker_filters_bytes=7_000):
        serving(chain, test)


def test_nothing_comes_before_the_reply_with_its_id(chain: PreconfirmingChain) -> None:
    """Also if the reply waits: in a batch with another, slow request."""

    async def test(served: Served) -> None:
        client, other = served.connect(), served.connect()
        await other.ask("eth_subscribe", "newHeads")
        items = [request("eth_subscribe", "newHeads"), request("eth_getBlockReceipts", "latest")]
        with thresholds(read_round_seconds=0.0):  # reads wait for their turn
            reply = client.session.receive(b"[%b]" % b",".join(items))
            assert not isinstance(reply, Reply)
            chain.begin()
            await other.notifications(1)
            assert client.channel.sent == []
            answers = json.loads((await reply).body)
        (notice,) = await client.notifications(1)
        assert notice["subscription"] == answers[0]["result"]
        assert notice["result"]["number"] == "0x1"

    serving(chain, test)


def test_syncing_says_once_that_there_is_nothing_to_catch_up_with(
    chain: PreconfirmingChain,
) -> None:
    async def test(served: Served) -> None:
        client = served.connect()
        name = await client.ask("eth_subscribe", "syncing")
        assert await client.notifications(1) == [{"subscription": name, "result": False}]

    serving(chain, test)


def test_nobody_looks_for_commits_without_subscribers(chain: PreconfirmingChain) -> None:
    async def test(served: Served) -> None:
        before = len(asyncio.all_tasks())
        client = served.connect()
        await client.ask("eth_subscribe", "newHeads")
        await turns()
        assert len(asyncio.all_tasks()) == before + 1
        client.session.ended()
        await until(lambda: len(asyncio.all_tasks()) == before)

    serving(chain, test)
