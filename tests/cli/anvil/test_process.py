"""`foreblock dev --like anvil` as a process, with a client that sends the requests of tools."""

import json
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from foreblock.errors import ErrorAnswer
from foreblock.upstream.rpc_client import Endpoint
from support.servers.dev_processes import package_environment
from support.servers.like_anvil import Running, anvil, like_anvil, running
from support.servers.waiting import PATIENCE, until

FIRST = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
SECOND = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
ETHER = 10**18
STARTED = int(time.time())  # before the chain


@pytest.fixture(scope="module")
def chain() -> Iterator[Running]:
    with running(like_anvil("--host", "127.0.0.1", "--host", "127.0.0.2")) as found:
        yield found


def number(value: object) -> int:
    assert isinstance(value, str)
    return int(value, 16)


def test_a_transaction_of_an_unlocked_account_is_sealed_when_it_is_answered(
    chain: Running,
) -> None:
    before = number(chain.ask("eth_blockNumber"))
    balance = number(chain.ask("eth_getBalance", SECOND, "latest"))
    hash_ = chain.ask("eth_sendTransaction", {"from": FIRST, "to": SECOND, "value": hex(ETHER)})
    receipt = cast("dict[str, Any]", chain.ask("eth_getTransactionReceipt", hash_))
    assert (receipt["status"], number(receipt["blockNumber"])) == ("0x1", before + 1)
    assert receipt["transactionIndex"] == "0x0"
    assert number(chain.ask("eth_getBalance", SECOND, "latest")) == balance + ETHER


def test_what_waits_for_a_command_is_pending_at_once_and_can_be_replaced_and_dropped(
    chain: Running,
) -> None:
    nobody = "0x" + "44" * 20
    nonce = chain.ask("eth_getTransactionCount", FIRST, "latest")

    def send(value: int, fee: int) -> object:
        fees = {"maxFeePerGas": hex(fee), "maxPriorityFeePerGas": hex(fee)}
        wanted = {"from": FIRST, "to": nobody, "value": hex(value), "nonce": nonce, "gas": "0x5208"}
        return chain.ask("eth_sendTransaction", {**wanted, **fees})

    chain.ask("evm_setAutomine", False)
    try:
        send(1, 10**10)
        assert chain.ask("eth_getBalance", nobody, "pending") == "0x1"
        with pytest.raises(ErrorAnswer, match="replacement transaction underpriced"):
            send(2, 10**10)
        second = send(2, 2 * 10**10)
        assert chain.ask("eth_getBalance", nobody, "pending") == "0x2"
        assert chain.ask("anvil_dropTransaction", second) == second
        assert chain.ask("txpool_status") == {"pending": "0x0", "queued": "0x0"}
        assert chain.ask("eth_getBalance", nobody, "pending") == "0x0"
        with pytest.raises(ErrorAnswer, match="max fee per gas less than block base fee"):
            send(3, 1)
    finally:
        chain.ask("evm_mine")
        chain.ask("evm_setAutomine", True)


def test_it_is_who_tools_look_for(chain: Running) -> None:
    assert cast("str", chain.ask("web3_clientVersion")).startswith("anvil/v1.7.1")
    assert chain.ask("eth_chainId") == hex(31337)
    accounts = cast("list[str]", chain.ask("eth_accounts"))
    assert len(accounts) == 10
    assert accounts[0] == FIRST.lower()
    info = cast("dict[str, Any]", chain.ask("anvil_nodeInfo"))
    assert info["environment"]["gasLimit"] in (30_000_000, hex(30_000_000))
    block = cast("dict[str, Any]", chain.ask("eth_getBlockByNumber", "0x0", False))
    assert (block["gasLimit"], block["baseFeePerGas"]) == (hex(30_000_000), hex(10**9))


def test_time_is_that_of_the_clock_from_block_0_on(chain: Running) -> None:
    begun = number(_block(chain, "earliest")["timestamp"])
    assert STARTED <= begun <= time.time()
    assert f"{begun}" in chain.output
    now, next_time = int(time.time()), number(_block(chain, "latest")["timestamp"]) + 1
    chain.ask("evm_mine")
    mined = number(_block(chain, "latest")["timestamp"])
    assert now <= mined <= max(time.time() + 1, next_time)


@pytest.mark.heavy
def test_a_kept_chain_goes_on(tmp_path: Path) -> None:
    command = like_anvil("--data", str(tmp_path / "data"))
    blocks = []
    for _ in range(2):
        with running(command) as chain:
            chain.ask("evm_mine")
            blocks.append([_block(chain, "earliest")["hash"], chain.ask("eth_blockNumber")])
            assert chain.stop() == 0
    assert blocks == [[blocks[0][0], "0x1"], [blocks[0][0], "0x2"]]


def test_it_prints_what_anvil_prints(chain: Running) -> None:
    with running(anvil()) as theirs:
        wanted = [_without_figures(line) for line in theirs.output]
    begin = wanted.index("Available Accounts")
    found = [_without_figures(line) for line in chain.output]
    assert _words(found[found.index("Available Accounts") :]) == _words(wanted[begin:])


def _without_figures(line: str) -> str:
    """A line without the time and the address, which differ between runs."""
    return re.sub(r"^1\d{9}$", "TIME", re.sub(r"^(Listening on) .*", r"\1", line))


def _words(lines: list[str]) -> list[str]:
    return [line for line in lines if line]


def test_every_address_that_was_asked_for_answers(chain: Running) -> None:
    hosts = [address.rpartition(":")[0] for address in chain.addresses]
    assert hosts == ["127.0.0.1", "127.0.0.2"]
    for address in chain.addresses:
        host, _, port = address.rpartition(":")
        with socket.create_connection((host, int(port)), PATIENCE) as opened:
            opened.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert b"200" in opened.recv(100)


def test_other_machines_are_told_why_a_state_edit_is_not_answered() -> None:
    command = like_anvil("--host", "127.0.0.1", "--host", "0.0.0.0")  # noqa: S104
    with running(command, FOREBLOCK_DEV_METHODS="loopback") as chain:
        assert chain.ask("evm_mine") == "0x0"
        port = chain.addresses[1].rpartition(":")[2]
        with Endpoint(f"http://127.0.0.1:{port}", PATIENCE) as reached:
            assert reached.request("eth_blockNumber", ()) == "0x1"
            assert reached.request("eth_accounts", ()) == []
            for method in ("evm_mine", "eth_sendTransaction", "hardhat_setBalance"):
                with pytest.raises(ErrorAnswer, match="loopback addresses only") as refused:
                    reached.request(method, ())
                assert refused.value.code == -32601


def test_pages_of_all_origins_may_read_answers(chain: Running) -> None:
    host, _, port = chain.addresses[0].rpartition(":")
    with socket.create_connection((host, int(port)), PATIENCE) as opened:
        body = b'{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}'
        opened.sendall(
            b"POST / HTTP/1.1\r\nHost: localhost\r\nOrigin: https://app.example\r\n"
            b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
        )
        assert b"\r\nAccess-Control-Allow-Origin: *\r\n" in opened.recv(4096)


def test_a_transaction_may_have_the_gas_of_a_block(chain: Running) -> None:
    asked = {"from": FIRST, "to": SECOND, "gas": hex(30_000_000)}
    receipt = chain.ask("eth_getTransactionReceipt", chain.ask("eth_sendTransaction", asked))
    assert cast("dict[str, Any]", receipt)["status"] == "0x1"


@pytest.mark.heavy
def test_limit_of_a_transaction_is_there_when_it_is_asked_for() -> None:
    with running(like_anvil("--enable-tx-gas-limit", "--config-out", "/dev/null")) as chain:
        asked = {"from": FIRST, "to": SECOND, "gas": hex(2**24 + 1)}
        with pytest.raises(ErrorAnswer, match="16777216"):
            chain.ask("eth_sendTransaction", asked)


def test_flags_about_the_chain_are_seen_by_a_client() -> None:
    flags = [
        "--slots-in-an-epoch", "1", "--disable-code-size-limit", "--hardfork", "cancun",
        "--timestamp", "1000", "--chain-id", "7", "--disable-block-gas-limit",
    ]  # fmt: skip
    with running(like_anvil(*flags)) as chain:
        chain.ask("anvil_mine", "0x5")
        numbers = [_block(chain, tag)["number"] for tag in ("latest", "safe", "finalized")]
        assert numbers == ["0x5", "0x4", "0x3"]
        assert _block(chain, "earliest")["timestamp"] == hex(1000)
        assert chain.ask("eth_chainId") == "0x7"
        creates = "0x620100006000f3"  # a contract of 65,536 bytes
        asked = {"from": FIRST, "data": creates, "gas": hex(10**9)}
        sent = chain.ask("eth_sendTransaction", asked)
        receipt = cast("dict[str, Any]", chain.ask("eth_getTransactionReceipt", sent))
        assert receipt["status"] == "0x1"
        assert "requestsHash" not in _block(chain, "latest")  # of Prague


def _block(chain: Running, tag: str) -> dict[str, Any]:
    return cast("dict[str, Any]", chain.ask("eth_getBlockByNumber", tag, False))


@pytest.mark.heavy
def test_mixed_mining_seals_by_transactions_and_by_the_clock() -> None:
    with running(like_anvil("-b", "1", "--mixed-mining")) as chain:
        assert chain.ask("anvil_getAutomine") is True
        sent = chain.ask("eth_sendTransaction", {"from": FIRST, "to": SECOND})
        receipt = cast("dict[str, Any]", chain.ask("eth_getTransactionReceipt", sent))
        sealed = number(receipt["blockNumber"])
        until(lambda: number(chain.ask("eth_blockNumber")) > sealed, "a block by the clock")


def test_accounts_of_other_words_and_paths_are_anvil_s(tmp_path: Path) -> None:
    flags = ["--mnemonic-seed-unsafe", "42", "--derivation-path", "m/44'/60'/1'/0", "-a", "3"]
    ours, theirs = tmp_path / "ours.json", tmp_path / "theirs.json"
    with running(anvil(*flags, "--config-out", str(theirs))):
        pass
    with running(like_anvil(*flags, "--config-out", str(ours))) as chain:
        accounts = chain.ask("eth_accounts")
    made, wanted = (json.loads(file.read_text("utf-8")) for file in (ours, theirs))
    assert made["available_accounts"] == wanted["available_accounts"]
    assert accounts == wanted["available_accounts"]
    assert made.keys() == wanted.keys()
    for key in ("private_keys", "wallet", "base_fee", "gas_price", "gas_limit"):
        assert made[key] == wanted[key], key


@pytest.mark.heavy
def test_quiet_prints_nothing() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        like_anvil("--silent", "-p", str(port)),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=package_environment(),
    )
    until(lambda: _answers(port), "a response")
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=PATIENCE)
    assert (said, process.returncode) == (b"", 0)


def _answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), PATIENCE) as opened:
            opened.sendall(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            return b"200" in opened.recv(100)
    except OSError:
        return False
