"""A chain in the process is served to other programs, while its process uses it."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from foreblock import Client, DevChain
from foreblock.errors import AddressInUse, Unreachable
from support.servers.waiting import until

BOB = b"\xb0" * 20


def test_both_see_one_chain() -> None:
    threads = threading.active_count()
    with DevChain() as chain:
        server = chain.serve()
        with Client(server.url) as client:
            chain.send(BOB, value=1)
            assert client.balance(BOB) == 1
            sender = f"0x{chain.accounts[0].hex()}"
            client.rpc(
                "eth_sendTransaction", {"from": sender, "to": f"0x{BOB.hex()}", "value": "0x2"}
            )
            assert chain.balance(BOB) == 3
            with pytest.raises(AddressInUse):
                chain.serve(int(server.address.rpartition(":")[2]))
    assert threading.active_count() == threads
    with Client(server.url) as client, pytest.raises(Unreachable):
        client.balance(BOB)


def test_its_responses_name_their_snapshot() -> None:
    with DevChain(mode="manual") as chain, chain.serve() as server, Client(server.url) as client:
        chain.send(BOB, value=1)
        flashblock = chain.flashblock()
        pinned = client.pin()
        assert pinned.block().hash == flashblock.hash
        chain.send(BOB, value=2)
        second = chain.flashblock()
        newest = client.at_least(flashblock=second.position).at("pending")
        assert (pinned.balance(BOB), newest.balance(BOB)) == (1, 3)


def test_they_take_turns() -> None:
    def pay(client: Client) -> None:
        for _ in range(20):
            client.rpc(
                "eth_sendTransaction", {"from": sender, "to": f"0x{BOB.hex()}", "value": "0x1"}
            )

    with DevChain() as chain, chain.serve() as server, ThreadPoolExecutor(2) as pool:
        sender = f"0x{chain.accounts[1].hex()}"
        with Client(server.url) as one, Client(server.url) as other:
            done = [pool.submit(pay, each) for each in (one, other)]
            for _ in range(20):
                chain.send(BOB, value=1)
            for each in done:
                each.result()
        assert (chain.balance(BOB), chain.block().number) == (60, 60)


def test_by_the_clock_time_passes_while_it_is_served() -> None:
    with DevChain(mode="clock", block_time=1) as chain, chain.serve():
        until(lambda: chain.block().number or None, "a block")


def test_a_server_ends_alone() -> None:
    with DevChain() as chain:
        with chain.serve() as server:
            pass
        server.close()
        chain.send(BOB, value=1)
        assert chain.balance(BOB) == 1
