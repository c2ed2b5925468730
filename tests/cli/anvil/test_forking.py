"""A fork as a process, beside a fork of anvil of the same chain; and what ends its start."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from foreblock import DevChain
from support.servers.dev_processes import package_environment
from support.servers.like_anvil import Running, anvil, like_anvil, running
from support.servers.waiting import PATIENCE, until
from support.upstreams.relay import Relay, relayed

TOKEN = Path(__file__).parents[2] / "clients" / "token.json"
BOB = "0x" + "b0" * 20
NOBODY = "0x" + "cc" * 20
FIRST = "0xf39Fd6e51aad88F6F4ce6aB8827279cfffB92266"
SECOND = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
# Blocks, receipts and logs have other members and hashes in anvil.
COMPARED = ("status", "gasUsed", "to", "from", "contractAddress", "type")


def transfer(to: str, value: int) -> str:
    return f"0xa9059cbb{to[2:].rjust(64, '0')}{value:064x}"


def balance_of(owner: str) -> str:
    return f"0x70a08231{owner[2:].rjust(64, '0')}"


class Forkable:
    """A chain with a token, behind a relay."""

    def __init__(self, chain: DevChain, relay: Relay) -> None:
        code = json.loads(TOKEN.read_bytes())["initCode"]
        self.token = f"0x{chain.deploy(code).address.hex()}"
        chain.send(BOB, value=5)
        chain.send(self.token, data=transfer(BOB, 7))
        self.chain, self.relay = chain, relay

    def options(self, *more: str) -> list[str]:
        return ["--fork-url", self.relay.url, "--no-storage-caching", *more]


@pytest.fixture(scope="module")
def forkable() -> Iterator[Forkable]:
    with (
        DevChain(rules="ethereum") as chain,
        chain.serve() as server,
        relayed(server.url) as relay,
    ):
        yield Forkable(chain, relay)


def flow(chain: Running, token: str, url: str) -> list[object]:
    """What a test does with a fork, and what it sees."""
    said: list[object] = []

    def ask(method: str, *params: object) -> Any:  # noqa: ANN401, it is JSON
        said.append(answer := chain.ask(method, *params))
        return answer

    def send(**fields: object) -> None:
        sent = chain.ask("eth_sendTransaction", {"from": FIRST, "gas": "0x30000", **fields})
        receipt: Any = until(lambda: chain.ask("eth_getTransactionReceipt", sent), "it is sealed")
        said.append([receipt.get(name) for name in COMPARED])
        said.append([[each["topics"], each["data"]] for each in receipt["logs"]])

    number = ask("eth_blockNumber")
    ask("eth_chainId")
    for block in ("0x1", number, "latest"):
        ask("eth_getBalance", BOB, block)
        ask("eth_getStorageAt", token, "0x0", block)
        ask("eth_getCode", token, block)
        ask("eth_getTransactionCount", FIRST, block)
    ask("eth_call", {"to": token, "data": balance_of(BOB)}, "latest")
    snapshot = chain.ask("evm_snapshot")
    send(to=token, data=transfer(NOBODY, 3))
    send(to=token, data=transfer(NOBODY, 10**6))
    send(to=NOBODY, value="0x9")
    ask("eth_call", {"to": token, "data": balance_of(NOBODY)}, "latest")
    chain.ask("anvil_setBalance", BOB, hex(10**18))
    chain.ask("anvil_impersonateAccount", BOB)
    send(**{"from": BOB, "to": token, "data": transfer(NOBODY, 1)})
    chain.ask("anvil_mine", "0x5")
    ask("eth_blockNumber")
    ask("eth_getBalance", NOBODY, "latest")
    ask("evm_revert", snapshot)
    ask("eth_blockNumber")
    ask("eth_getBalance", BOB, "latest")
    ask("eth_getBalance", NOBODY, "latest")
    chain.ask("anvil_reset", {"forking": {"jsonRpcUrl": url, "blockNumber": 1}})
    ask("eth_blockNumber")
    ask("eth_getBalance", BOB, "latest")
    return said


@pytest.mark.parametrize("workers", ["1", pytest.param("2", marks=pytest.mark.heavy)])
def test_it_does_what_anvil_does(forkable: Forkable, workers: str) -> None:
    ours = like_anvil(*forkable.options("--workers", workers))
    found = []
    for command in (ours, anvil(*forkable.options())):
        with running(command) as chain:
            found.append(flow(chain, forkable.token, forkable.relay.url))
    assert found[0] == found[1]


def after_transaction(chain: Running, token: str, hashes: list[str]) -> list[object]:
    """The state after a transaction of the fork, with which anvil runs those of the chain.

    It has another sender: anvil does not mine one whose nonce those of the chain have.
    """
    sent = chain.ask("eth_sendTransaction", {"from": SECOND, "to": NOBODY, "value": "0x9"})
    until(lambda: chain.ask("eth_getTransactionReceipt", sent), "it is sealed")
    said: list[object] = []
    for each in hashes:
        receipt: Any = chain.ask("eth_getTransactionReceipt", each)
        said.append(receipt and [receipt.get(name) for name in (*COMPARED, "blockNumber")])
    for owner in (BOB, NOBODY, FIRST):
        said.append(chain.ask("eth_call", {"to": token, "data": balance_of(owner)}, "latest"))
        said.append(chain.ask("eth_getTransactionCount", owner, "latest"))
    return said


def test_after_a_transaction_it_has_the_state_of_anvil(forkable: Forkable) -> None:
    chain = forkable.chain
    chain.rpc("evm_setAutomine", False)
    sent = [
        chain.rpc("eth_sendTransaction", {"from": FIRST, "to": forkable.token, "data": data})
        for data in (transfer(BOB, 1), transfer(NOBODY, 2), transfer(BOB, 4))
    ]
    chain.rpc("evm_mine")
    chain.rpc("evm_setAutomine", True)
    options = forkable.options("--fork-transaction-hash", sent[1])
    found = []
    for command in (like_anvil(*options), anvil(*options)):
        with running(command) as fork:
            found.append(after_transaction(fork, forkable.token, sent))
    assert found[0] == found[1]
    assert [each is None for each in found[0][:3]] == [False, False, True]


def test_it_shows_its_block_and_its_trust(forkable: Forkable) -> None:
    latest = forkable.chain.block()
    with running(like_anvil(*forkable.options())) as chain:
        text = "\n".join(chain.output)
    assert f"Endpoint:       {forkable.relay.url}\n" in text
    assert f"Block number:   {latest.number}\n" in text
    assert "State:          proven\n" in text


def ended(*options: str) -> str:
    """The error of a start that fails at once."""
    done = subprocess.run(
        like_anvil(*options),
        env=package_environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode, done.stdout
    return done.stderr.strip().splitlines()[-1]


def test_a_start_without_its_block_ends_in_one_line(forkable: Forkable) -> None:
    url = forkable.relay.url
    unknown = ("--fork-transaction-hash", "0x" + "77" * 32)
    assert "no block with transaction 0x7777" in ended(*forkable.options(*unknown))
    assert "no block 99" in ended(*forkable.options("--fork-block-number", "99"))
    assert "http://127.0.0.1:1" in ended("--fork-url", "http://127.0.0.1:1", "--timeout", "5000")
    assert "only a part" in ended("--fork-url", url, "--dump-state", "state.json")
    assert "only a part" in ended("--fork-url", url, "--state", "state.json")
    assert "alloc" in ended("--fork-url", url, "--load-state", str(TOKEN))
