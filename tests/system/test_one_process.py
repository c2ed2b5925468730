"""`foreblock dev --one-process`: the chain is written by the process that serves it."""

import http.client
import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from foreblock.sequencer.mnemonic import TEST_MNEMONIC, dev_accounts
from support.servers.dev_processes import Dev, Network, RpcError, dev_chain, refused
from support.servers.waiting import PATIENCE, until

ALICE = "0x" + dev_accounts(TEST_MNEMONIC, 1)[0].address.hex()
BOB = "0x" + "b0" * 20
OPTIONS = (
    "--one-process",
    "--workers=1",
    "--mining=automine",
    "--rules=ethereum",
    "--test-listen=",
)


def pay(network: Network) -> int:
    """Pay Bob one wei; return the number of its block, which is then sealed."""
    sent = network.ask("eth_sendTransaction", {"from": ALICE, "to": BOB, "value": "0x1"})
    receipt = network.ask("eth_getTransactionReceipt", sent)
    assert receipt is not None, "it is there when the hash is"
    return int(receipt["blockNumber"], 16)


def balance(network: Network) -> int:
    return int(network.ask("eth_getBalance", BOB, "latest"), 16)


def kill(dev: Dev) -> None:
    """Kill the process of a chain and wait for the next one."""
    (killed,) = dev.pids("one_process")
    os.kill(killed, signal.SIGKILL)
    until(lambda: dev.pids("one_process") not in ([], [killed]), "another one")


@pytest.fixture(scope="module")
def running() -> Iterator[Dev]:
    with dev_chain(*OPTIONS) as found:
        yield found


@pytest.fixture
def dev(running: Dev) -> Dev:
    """A chain at its first block, with temporary data."""
    running.main.ask("anvil_reset")
    return running


def test_what_was_answered_is_there_for_the_next_request_and_after_a_kill(tmp_path: Path) -> None:
    """With a data folder, a command is committed when it is answered."""
    with dev_chain(*OPTIONS, f"--data={tmp_path}") as dev:
        main = dev.main.node
        assert (dev.pids("writer"), dev.pids("worker")) == ([], [])
        assert [pay(main), pay(main), balance(main)] == [1, 2, 2]
        snapshot = main.ask("evm_snapshot")
        main.ask("anvil_setBalance", BOB, "0x64")
        main.ask("anvil_mine", "0x14")
        assert (balance(main), main.latest()) == (100, 22)
        for number in range(1, 20):
            main.ask("anvil_setBalance", BOB, hex(number))
        later = main.ask("evm_snapshot")
        main.ask("anvil_addBalance", BOB, "0x5")
        kill(dev)
        assert (balance(main), main.latest(), pay(main)) == (24, 22, 23)
        assert main.ask("evm_revert", later) is True
        assert (balance(main), main.latest()) == (19, 22)
        assert main.ask("evm_revert", snapshot) is True
        assert (balance(main), main.latest()) == (2, 2)
        assert main.ask("evm_revert", snapshot) is False
        assert pay(main) == 3
        dev.process.send_signal(signal.SIGINT)
        assert dev.process.wait(PATIENCE) == 0
    with dev_chain(*OPTIONS, f"--data={tmp_path}") as dev:
        assert (balance(dev.main.node), dev.main.latest()) == (3, 3)


def test_commands_are_committed_soon_although_nobody_reads(dev: Dev) -> None:
    with single(dev.main) as client:
        client.ask("anvil_setBalance", BOB, "0x7")
        time.sleep(1)  # ten times the bound
        kill(dev)
        assert balance(dev.main.node) == 7


def test_commands_of_a_batch_are_carried_out_in_order(dev: Dev) -> None:
    main = dev.main.node
    slots = [("anvil_setStorageAt", (BOB, hex(n % 7), f"0x{n:064x}")) for n in range(200)]
    main.batch(*slots, ("evm_mine", ()), ("anvil_setNonce", (BOB, "0x5")), ("evm_mine", ()))
    assert main.latest() == 2
    assert int(main.ask("eth_getStorageAt", BOB, "0x3", "latest"), 16) == 199
    assert main.ask("eth_getTransactionCount", BOB, "0x1") == "0x0"
    assert main.ask("eth_getTransactionCount", BOB, "0x2") == "0x5"
    with pytest.raises(RpcError, match="New nonce"):
        main.ask("anvil_setNonce", BOB, "0x1")
    following = hex(int(main.ask("evm_snapshot"), 16) + 1)
    main.batch(
        ("anvil_setBalance", (BOB, "0x3")),
        ("anvil_setNonce", (BOB, "0x6")),
        ("anvil_addBalance", (BOB, "0x4")),
        ("evm_snapshot", ()),
        ("anvil_setBalance", (BOB, "0x9")),
        ("evm_revert", (following,)),
    )
    assert balance(main) == 7
    assert main.ask("eth_getTransactionCount", BOB, "latest") == "0x6"


def test_every_read_sees_the_commands_before_it_and_what_was_read_survives_a_kill(dev: Dev) -> None:
    main = dev.main.node
    for number in range(1, 20):  # the fast path answers the second read
        main.ask("anvil_setBalance", BOB, hex(number))
        assert balance(main) == number
        assert balance(main) == number
    ids = []
    for number in range(3):
        ids.append(main.ask("evm_snapshot"))
        main.ask("anvil_addBalance", BOB, hex(number + 1))
    first = int(ids[0], 16)
    assert ids == [hex(first), hex(first + 1), hex(first + 2)]
    assert balance(main) == 25, "which commits them"
    kill(dev)
    assert balance(main) == 25
    assert [main.ask("evm_revert", each) for each in (ids[2], ids[2], ids[1])] == [
        True,
        False,
        True,
    ]
    assert balance(main) == 20
    assert pay(main) == 1
    assert main.ask("evm_revert", ids[0]) is True
    assert (balance(main), main.latest()) == (19, 0)
    assert pay(main) == 1, "nothing remembers the nonce that was taken back"


class Single:
    """One connection with sequential requests, as in contract tests."""

    def __init__(self, connection: http.client.HTTPConnection) -> None:
        self._connection = connection
        self.headers: list[str] = []  # names of the last response's headers

    def ask(self, method: str, *params: object) -> Any:  # noqa: ANN401, JSON
        """The result of a request."""
        asked = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        self._connection.request(
            "POST", "/", json.dumps(asked), {"Content-Type": "application/json"}
        )
        response = self._connection.getresponse()
        self.headers = list(response.headers)
        answer = json.loads(response.read())
        assert "result" in answer, answer
        return answer["result"]


@contextmanager
def single(network: Network) -> Iterator[Single]:
    netloc = urlsplit(network.url).netloc
    with closing(http.client.HTTPConnection(netloc, timeout=PATIENCE)) as connection:
        yield Single(connection)


def test_many_commands_in_a_row_are_answered_alike_and_in_order(dev: Dev) -> None:
    with single(dev.main) as client:
        headers = set()
        for number in range(1, 50):
            client.ask("anvil_setBalance", BOB, hex(number))
            headers.add(tuple(client.headers))
            taken = client.ask("evm_snapshot")
            headers.add(tuple(client.headers))
            client.ask("hardhat_setBalance", BOB, hex(1000 + number))
            assert client.ask("evm_revert", taken) is True
            if number % 10 == 0:
                assert balance(dev.main) == number
                assert client.ask("evm_revert", taken) is False, "it is used up"
        assert len(headers) == 1, "whether they were carried out by then"


def test_one_process_has_one_network() -> None:
    assert "one_process" in refused("--one-process")
