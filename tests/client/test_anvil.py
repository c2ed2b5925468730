"""A client at anvil: a node of others, where it is installed."""

import asyncio
from collections.abc import Iterator

import pytest

from foreblock import AsyncClient, Client
from foreblock.client import call_data
from foreblock.errors import EndpointError, NoSuchBlock, Reverted, StaleEndpoint
from support.chains.dev_chain import ACCOUNTS, ETHER, send
from support.servers.like_anvil import anvil, running

BOB = b"\x42" * 20
REVERTS = "0x60006000fd"  # for every call


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running(anvil()) as chain:
        yield f"http://{chain.addresses[0]}"


def test_reads_and_sends(url: str) -> None:
    with Client(url) as client:
        pinned = client.pin()
        payment = send(ACCOUNTS[0], client.nonce(ACCOUNTS[0].address), BOB, ETHER)
        receipt = client.send_raw_sync(payment.raw)
        again = send(ACCOUNTS[0], 1, BOB, ETHER)
        assert client.send_raw_sync(again.raw, 10.0).transaction_hash == again.hash
        assert (receipt.succeeded, receipt.transaction_hash) == (True, payment.hash)
        block = client.block(receipt.block_number, full=True)
        assert block.json["transactions"][0]["hash"] == str(receipt.transaction_hash)
        with client.batch() as batch:
            now, before = batch.balance(BOB), batch.balance(BOB, 0)
        assert (now.value, before.value, pinned.balance(BOB)) == (2 * ETHER, 0, 0)
        assert (batch.snapshot, client.commit) == (None, 0)
        with pytest.raises(NoSuchBlock):
            client.block(10**6)
        with pytest.raises(StaleEndpoint):
            client.at_least(commit=1).chain_id()


def test_calls_and_simulations(url: str) -> None:
    with Client(url) as client:
        client.rpc("anvil_setCode", BOB, REVERTS)
        with pytest.raises(Reverted):
            client.call(BOB, "f()")
        sender = ACCOUNTS[0].address
        calls = [
            {"from": sender, "to": BOB, "data": call_data("f()")},
            {"from": sender, "to": sender},
        ]
        (block,) = client.simulate(calls)
        assert [each.succeeded for each in block.calls] == [False, True]
        assert block.calls[0].reason


def test_there_are_no_flashblocks(url: str) -> None:
    async def body() -> None:
        async with AsyncClient(url) as client:
            with pytest.raises(EndpointError):
                await anext(client.flashblocks(patience=0.0))

    asyncio.run(body())
