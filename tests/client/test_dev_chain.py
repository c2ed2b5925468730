"""Clients of a running dev chain, compared with plain requests; the examples of docs/client.md."""

import asyncio
import contextlib
import io
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from conftest import CHECKOUT
from foreblock import AsyncClient, Client
from foreblock.client import FlashblockData, call_data
from foreblock.errors import ErrorAnswer, NoSuchBlock, Reverted
from support.chains.dev_chain import ACCOUNTS, ETHER, send
from support.each_case import each_case
from support.servers.dev_processes import Dev, dev_chain
from support.servers.waiting import PATIENCE

PAGE = (CHECKOUT / "docs" / "client.md").read_text("utf-8")
EXAMPLES = re.findall(
    r"<!-- run -->\n```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, flags=re.DOTALL
)
TOKEN = "0x7E57000000000000000000000000000000000020"  # noqa: S105, an address
ALICE, CAROL = ACCOUNTS[3], ACCOUNTS[4]
TRANSFER = "transfer(address,uint256)(bool)"
OPTIONS = ("--test-listen=", "--workers=2", "--load=20", "--block-time=1", "--min-commit-wait=10")


@pytest.fixture(scope="module")
def dev() -> Iterator[Dev]:
    with dev_chain(*OPTIONS) as running:
        yield running


@pytest.fixture
def client(dev: Dev) -> Iterator[Client]:
    with Client(dev.main.url, timeout=PATIENCE) as opened:
        yield opened


def test_reads_at_a_pin_are_what_plain_requests_say(dev: Dev, client: Client) -> None:
    pinned = client.pin()
    block = pinned.block(full=True)
    at = {"blockHash": str(block.hash)}
    assert block.json == dev.main.ask("eth_getBlockByHash", str(block.hash), True)
    assert f"{block.number:#x}" == block.json["number"]
    sender = ACCOUNTS[0].address
    shown = f"0x{sender.hex()}"
    assert pinned.balance(sender) == int(dev.main.ask("eth_getBalance", shown, at), 16)
    assert pinned.nonce(sender) == int(dev.main.ask("eth_getTransactionCount", shown, at), 16)
    assert str(pinned.code(TOKEN)) == dev.main.ask("eth_getCode", TOKEN, at)
    assert pinned.storage(TOKEN, 0) == int(dev.main.ask("eth_getStorageAt", TOKEN, "0x0", at), 16)
    receipts = dev.main.ask("eth_getBlockReceipts", at)
    found = pinned.receipts()
    assert [each.json for each in found] == receipts
    assert [each.transaction_hash for each in found] == [
        each if isinstance(each, bytes) else each.hash for each in block.transactions
    ]
    logs = [log for each in receipts for log in each["logs"]]
    assert [each.json for each in client.logs(block=block.hash)] == logs


def test_a_batch_names_the_commit_that_it_is_of(client: Client) -> None:
    with client.batch() as batch:
        named = batch.rpc("foreblock_snapshot")
        pending, latest = batch.block("pending"), batch.block("latest")
    assert batch.snapshot is not None
    assert f"{batch.snapshot.commit:#x}" == named.value["commit"]
    assert batch.snapshot.latest.hash == latest.value.hash
    assert batch.snapshot.pending is None or batch.snapshot.pending.hash == pending.value.hash
    assert client.commit == batch.snapshot.commit


def test_a_pin_does_not_move_and_another_hash_is_no_block(client: Client) -> None:
    pinned, pending = client.pin(), client.at("pending")
    recipient = b"\x51" * 20
    payment = send(ALICE, pending.nonce(ALICE.address), recipient, 7)
    receipt = client.send_raw_sync(payment.raw, PATIENCE)
    assert (receipt.succeeded, receipt.transaction_hash) == (True, payment.hash)
    assert (pinned.balance(recipient), pending.balance(recipient)) == (0, 7)
    assert client.wait_for_receipt(payment.hash).block_number == receipt.block_number
    for read in (
        client.at(b"\x09" * 32).block,
        lambda: client.balance(recipient, b"\x09" * 32),
        lambda: client.logs(block=b"\x09" * 32),
    ):
        with pytest.raises(NoSuchBlock, match="0909"):
            read()


def test_a_pin_at_the_view_of_an_ordinary_node_is_a_position(dev: Dev, client: Client) -> None:
    with client.batch() as batch:
        batch.chain_id()
    assert batch.snapshot is not None
    head = batch.snapshot.pending or batch.snapshot.latest
    named = (head.number, head.index) if head.index is not None else head.number
    with Client(f"{dev.main.url}/eth") as sealed:
        assert sealed.at(named).block().hash == head.hash


def test_a_refused_transaction_has_the_words_of_the_pool(client: Client) -> None:
    with pytest.raises(ErrorAnswer, match="insufficient funds"):
        client.send_raw_sync(send(CAROL, 0, value=10**6 * ETHER).raw)


def test_reads_wait_for_the_commit_and_the_flashblock_that_are_demanded(client: Client) -> None:
    client.chain_id()
    wanted = client.commit + 2
    assert client.at_least(commit=wanted).chain_id() == 31337
    assert client.commit >= wanted
    number = client.block_number() + 2
    assert client.at_least(flashblock=(number, 0)).block("pending").number >= number  # type: ignore[operator]


def test_calls_and_simulations(client: Client) -> None:
    owner, too_many = ACCOUNTS[0].address, 10**40
    balance = client.call(TOKEN, "balanceOf(address)(uint256)", owner)
    assert client.call(TOKEN, TRANSFER, b"\x07" * 20, 1, fields={"from": owner}) is True
    with pytest.raises(Reverted) as caught:
        client.call(TOKEN, TRANSFER, b"\x07" * 20, too_many)
    transfers = [
        {"from": owner, "to": TOKEN, "data": call_data(TRANSFER, b"\x07" * 20, amount)}
        for amount in (3, too_many)
    ]
    question = {"to": TOKEN, "data": call_data("balanceOf(address)", owner)}
    first, second = client.at("latest").simulate(transfers, [question])
    assert [each.succeeded for each in first.calls] == [True, False]
    assert first.calls[1].output[:4] == caught.value.output[:4] != b""
    assert second.parent_hash == first.hash
    assert second.calls[0].decode("f()(uint256)") <= balance - 3
    assert client.estimate_gas({"from": owner, "to": b"\x07" * 20, "value": 1}) >= 21_000


def test_flashblocks_go_on_when_their_server_is_killed(dev: Dev) -> None:
    """Together they have each transaction of their blocks once."""

    async def body() -> list[FlashblockData]:
        found: list[FlashblockData] = []
        async with AsyncClient(dev.main.url, timeout=PATIENCE) as client:
            async for each in client.flashblocks(PATIENCE):
                found.append(each)
                if len(found) == 4:
                    for _ in dev.pids("worker"):
                        dev.kill("worker")
                if len({one.number for one in found}) == 4:
                    return found
        return found

    found = asyncio.run(asyncio.wait_for(body(), PATIENCE))
    assert not any(each.gap or each.dropped for each in found)
    first, *numbers, _ = sorted({each.number for each in found})
    assert first
    for number in numbers:
        flashblocks = [each for each in found if each.number == number]
        block = dev.main.ask("eth_getBlockByNumber", hex(number), True)
        assert [each.index for each in flashblocks] == list(range(len(flashblocks)))
        sent = [one.hash for each in flashblocks for one in each.transactions]
        assert list(map(str, sent)) == [each["hash"] for each in block["transactions"]]
        assert flashblocks[-1].transaction_count == len(sent)


def test_a_lost_tail_is_reported(dev: Dev) -> None:
    async def body() -> FlashblockData:
        async with AsyncClient(dev.main.url, timeout=PATIENCE) as client:
            async for each in client.flashblocks(PATIENCE):
                if each.index == 2:
                    await client.rpc("foreblock_dropTail")
                if each.dropped:
                    return each
        raise AssertionError

    found = asyncio.run(asyncio.wait_for(body(), PATIENCE))
    assert not found.gap
    number, first = found.dropped[0]
    assert (found.number, found.index) == (number + 1, 0)
    sealed = dev.main.ask("eth_getBlockByNumber", hex(number), False)
    last = dev.main.ask(
        "eth_getBlockByNumber",
        {"blockNumber": hex(number), "flashblockIndex": hex(first - 1)},
        False,
    )
    assert sealed["transactions"] == last["transactions"]


def test_requests_at_once(dev: Dev) -> None:
    async def body() -> list[int]:
        async with AsyncClient(dev.main.url, timeout=PATIENCE, block="earliest") as client:
            return await asyncio.gather(*(client.balance(each.address) for each in ACCOUNTS * 5))

    assert asyncio.run(body()) == [10_000 * ETHER] * 50


def test_a_blocking_client_in_a_loop_and_in_threads(client: Client) -> None:
    async def body() -> int:
        return client.chain_id()

    assert asyncio.run(body()) == 31337
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: client.chain_id(), range(20))) == [31337] * 20


@each_case("program, shown", EXAMPLES)
def test_an_example_prints_what_the_page_shows(dev: Dev, program: str, shown: str) -> None:
    assert len(EXAMPLES) == 6
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(program.replace("http://127.0.0.1:8545", dev.main.url), {})  # noqa: S102, ours
    assert printed.getvalue() == shown
