"""cast and forge on a chain of `foreblock dev`: requests beyond balances and calls.

`make clients` installs both and runs this. They read nonces and state at `latest` after a receipt,
so they are used at the path /eth, as with an ordinary node; a subscription needs ws.
"""

import json
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any

import pytest

from foreblock.sequencer.mnemonic import TEST_MNEMONIC, dev_accounts
from support.servers.client_libraries import HERE, environment, program_of, run
from support.servers.dev_processes import Network, dev_chain
from support.servers.waiting import PATIENCE

TOKEN = json.loads((HERE / "token.json").read_text("utf-8"))
TRANSFER = "transfer(address,uint256)"
EVENT = "Transfer(address indexed,address indexed,uint256)"
TO = "0x" + "44" * 20
ACCOUNTS = 8


class Wallet:
    """An account, and its use by cast and forge at an endpoint."""

    def __init__(self, network: Network, number: int) -> None:
        account = dev_accounts(TEST_MNEMONIC, ACCOUNTS)[number]
        self.url = network.url + "/eth"
        self.address = "0x" + account.address.hex()
        self.key = "--private-key=0x" + account.secret.hex()

    def cast(self, *arguments: str) -> str:
        told = {"FOUNDRY_NETWORK": "optimism"}  # otherwise `run` fails on deposits
        return run("cast", *arguments, url=self.url, variables=told).strip()

    def ask(self, *arguments: str) -> Any:  # noqa: ANN401, it is JSON
        return json.loads(self.cast(*arguments))

    def send(self, *arguments: str) -> Any:  # noqa: ANN401, it is JSON
        """The receipt of a successful transaction."""
        receipt = self.ask("send", "--json", self.key, *arguments)
        assert receipt["status"] == "0x1"
        return receipt

    def deploy(self) -> str:
        """Deploy a token, whose deployer has a thousand units."""
        address: str = self.send("--create", TOKEN["initCode"])["contractAddress"]
        return address

    def transfer(self, token: str, value: int) -> Any:  # noqa: ANN401, it is JSON
        return self.send(token, TRANSFER, TO, str(value))

    def balance(self, token: str, account: str) -> int:
        """Units of the token, at `latest`."""
        said = self.cast("call", token, "balanceOf(address)(uint256)", account)
        return int(said.split()[0])


@pytest.fixture(scope="module")
def network() -> Iterator[Network]:
    with dev_chain("--test-listen=", "--block-time=1", f"--accounts={ACCOUNTS}") as dev:
        yield dev.main


@pytest.fixture(scope="module")
def numbers() -> Iterator[int]:
    return count()


@pytest.fixture
def wallet(network: Network, numbers: Iterator[int]) -> Wallet:
    """A wallet that no other test uses."""
    program_of("cast")
    return Wallet(network, next(numbers))


def slot_of(wallet: Wallet, account: str) -> str:
    return wallet.cast("index", "address", account, "0")


def values(logs: list[dict[str, str]]) -> list[int]:
    return [int(each["data"], 16) for each in logs]


def test_cast_sends_again_and_again_and_finds_the_logs(wallet: Wallet) -> None:
    token = wallet.deploy()
    receipts = [wallet.transfer(token, value) for value in (1, 2)]
    first = str(int(receipts[0]["blockNumber"], 16))
    assert wallet.balance(token, TO) == 3
    of_token = ("logs", "--json", "--from-block", first, "--address", token, EVENT)
    found = wallet.ask(*of_token)
    assert values(found) == [1, 2]
    assert [each["transactionHash"] for each in found] == [
        each["transactionHash"] for each in receipts
    ]
    assert values(wallet.ask(*of_token, wallet.address, TO)) == [1, 2]
    assert wallet.ask(*of_token, TO) == []


def test_cast_follows_logs(wallet: Wallet) -> None:
    token = wallet.deploy()
    command = [program_of("cast"), "logs", "--subscribe", "--address", token]
    url = wallet.url.replace("http", "ws", 1)
    hashes: Queue[str] = Queue()

    def read(lines: Iterable[str]) -> None:
        for line in lines:
            if "transactionHash:" in line:
                hashes.put(line.split()[1])

    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=environment(url), cwd=HERE
    ) as following:
        assert following.stdout is not None
        Thread(target=read, args=(following.stdout,), daemon=True).start()
        sent: list[str] = []
        while hashes.empty():  # it does not report when it has subscribed
            sent.append(wallet.transfer(token, 1)["transactionHash"])
        sent.append(wallet.transfer(token, 1)["transactionHash"])
        seen: list[str] = []
        while sent[-1] not in seen:
            seen.append(hashes.get(timeout=PATIENCE))
        following.terminate()
    assert seen == sent[-len(seen) :]  # each once, in order


def test_cast_proves_what_the_state_root_says(wallet: Wallet) -> None:
    token = wallet.deploy()
    number = str(int(wallet.transfer(token, 1)["blockNumber"], 16))
    keys = [slot_of(wallet, each) for each in (wallet.address, TO, token)]
    found = wallet.ask("proof", "--block", number, token, *keys)
    assert [int(each["value"], 16) for each in found["storageProof"]] == [999, 1, 0]
    root = wallet.cast("block", number, "--field", "stateRoot")
    assert wallet.cast("keccak", found["accountProof"][0]) == root
    assert wallet.cast("storage-root", token) == found["storageHash"]
    code_hash = wallet.cast("keccak", TOKEN["code"])
    assert wallet.cast("codehash", token) == found["codeHash"] == code_hash


def test_cast_makes_an_access_list(wallet: Wallet) -> None:
    token = wallet.deploy()
    asked = ("access-list", "--json", "--from", wallet.address, token, TRANSFER, TO, "1")
    found = wallet.ask(*asked)
    (only,) = found["accessList"]
    assert only["address"] == token
    assert set(only["storageKeys"]) == {slot_of(wallet, each) for each in (wallet.address, TO)}


def test_cast_runs_a_transaction_again(wallet: Wallet) -> None:
    receipt = wallet.transfer(wallet.deploy(), 7)
    said = wallet.cast("run", receipt["transactionHash"])
    assert f"Gas used: {int(receipt['gasUsed'], 16)}" in said
    assert "Transaction successfully executed." in said


def test_cast_sees_the_pool(wallet: Wallet) -> None:
    before = wallet.ask("tx-pool", "status")
    nonce = int(wallet.cast("nonce", wallet.address)) + 5
    wallet.cast("send", "--async", wallet.key, "--nonce", str(nonce), "--gas-limit=21000", TO)
    status = wallet.ask("tx-pool", "status")
    assert int(status["queued"], 16) == int(before["queued"], 16) + 1
    queued = {
        sender.lower(): list(theirs)
        for sender, theirs in wallet.ask("tx-pool", "content")["queued"].items()
    }
    assert queued[wallet.address] == [str(nonce)]


def test_cast_sends_and_waits_in_one_request(wallet: Wallet) -> None:
    receipt = wallet.send("--sync", TO, "--value=1")
    block = wallet.ask("block", "--json", receipt["blockHash"])
    assert receipt["transactionHash"] in block["transactions"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of forge outside of the checkout, for its artifacts."""
    ours = HERE / "foundry"
    for folder, source in (("src", HERE / "Token.sol"), ("script", ours / "Deploy.s.sol")):
        (tmp_path / folder).mkdir()
        shutil.copy(source, tmp_path / folder)
    settings = (ours / "foundry.toml").read_text("utf-8")
    (tmp_path / "foundry.toml").write_text(f'{settings}solc = "{ours / "solc.mjs"}"\n', "utf-8")
    return tmp_path


def test_forge_deploys_again_and_again(wallet: Wallet, project: Path) -> None:
    def forge(*arguments: str) -> str:
        told = ("--broadcast", wallet.key, "--rpc-url", wallet.url)
        return run("forge", *arguments, *told, cwd=project)

    made = [json.loads(forge("create", "--json", "src/Token.sol:Token")) for _ in range(3)]
    assert len({each["deployedTo"] for each in made}) == 3
    assert [wallet.balance(each["deployedTo"], wallet.address) for each in made] == [1000] * 3

    tokens = []
    for _ in range(2):
        forge("script", "script/Deploy.s.sol", "--sig", "run(address)", TO)
        (saved,) = project.glob("broadcast/*/*/run-latest.json")
        run_ = json.loads(saved.read_text("utf-8"))
        assert [each["status"] for each in run_["receipts"]] == ["0x1"] * 4
        tokens += [each["contractAddress"] for each in run_["transactions"][::2]]
    assert [wallet.balance(each, TO) for each in tokens] == [1, 2, 1, 2]
