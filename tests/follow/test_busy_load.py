"""The busy load: every kind runs on a dev chain, equal for equal seeds."""

import subprocess
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from follow.busy_kinds import NAMES
from follow.busy_load import BusyLoad, Sent, senders
from follow.busy_world import (
    CLONES,
    CONTRACTS,
    PROXY,
    TOKENS,
    WALLET,
    authority,
    balances,
)
from follow.upstreams import ask
from foreblock.ledger.rules.verification import MESSAGE_PASSER
from foreblock.sequencer.predeploys import MULTICALL
from support.payloads.solidity import decode
from support.servers.dev_processes import dev_chain
from support.servers.waiting import until

COUNT = 300
IMPLEMENTATION = "0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc"


@pytest.fixture(scope="module")
def busy() -> Iterator[tuple[str, BusyLoad]]:
    """A chain that has executed 300 transactions of the load."""
    with dev_chain("--test-listen=", "--workers=1", "--accounts=40", "--block-time=1") as dev:
        load = BusyLoad(senders(4), 1)
        load.begin(dev.main.url)
        load.send(dev.main.url, list(islice(load.transactions(), COUNT)))
        last = load.sent[-1].hash
        until(lambda: ask(dev.main.url, "eth_getTransactionReceipt", last), "all are included")
        yield dev.main.url, load


@pytest.mark.heavy
def test_all_kinds_end_as_they_are_meant_to(busy: tuple[str, BusyLoad]) -> None:
    url, load = busy
    assert load.refused == []
    outcomes = until(lambda: _settled(url, load), "no receipt is missing")
    assert set(outcomes) == {"setup", *NAMES}
    assert {each for found in outcomes.values() for each in found} == {"as meant"}, outcomes


def _settled(url: str, load: BusyLoad) -> dict[str, dict[str, int]] | None:
    found = load.outcomes(url)
    return None if any("status missing" in each for each in found.values()) else dict(found)


@pytest.mark.heavy
def test_the_contracts_are_where_they_were_expected(busy: tuple[str, BusyLoad]) -> None:
    url, _ = busy
    for each in CONTRACTS:
        assert len(ask(url, "eth_getCode", "0x" + each.hex(), "pending")) > 40
    slot = ask(url, "eth_getStorageAt", "0x" + PROXY.hex(), IMPLEMENTATION, "pending")
    assert bytes.fromhex(slot[26:]) in CONTRACTS[:2]


@pytest.mark.heavy
def test_a_multicall_reads_all_tokens(busy: tuple[str, BusyLoad]) -> None:
    url, _ = busy
    owner = senders(4)[0].address
    call = {"to": "0x" + MULTICALL.hex(), "data": "0x" + balances(owner).hex()}
    answer = bytes.fromhex(ask(url, "eth_call", call, "pending")[2:])
    rows = decode([(int, bytes)], answer)
    assert len(rows) == TOKENS == len(CLONES)
    assert all(ok and len(value) == 32 for ok, value in rows)
    assert int.from_bytes(rows[0][1]) > 0


@pytest.mark.heavy
def test_kinds_leave_what_they_are_about(busy: tuple[str, BusyLoad]) -> None:
    """A delegation, messages to L1, swaps, and their logs."""
    url, load = busy
    delegated = {"0xef0100" + WALLET.hex(), "0x"}
    codes = {ask(url, "eth_getCode", "0x" + authority(each).address.hex(), "pending")
             for each in senders(4)}  # fmt: skip
    assert codes <= delegated
    assert "0xef0100" + WALLET.hex() in codes
    assert {kind: len(logs_of(url, load, kind)) for kind in ("swap", "new_clone")} == {
        "swap": 5, "new_clone": 0,
    }  # fmt: skip
    assert logs_of(url, load, "withdrawal")[0]["address"] == "0x" + MESSAGE_PASSER.hex()


def logs_of(url: str, load: BusyLoad, kind: str) -> list[dict[str, Any]]:
    """The logs of the first transaction of a kind."""
    sent = next(each for each in load.sent if each.kind == kind)
    found: list[dict[str, Any]] = ask(url, "eth_getTransactionReceipt", sent.hash)["logs"]
    return found


def test_equal_seeds_make_equal_transactions() -> None:
    made = [
        [each.raw for _, each, _ in [*load.setup(), *islice(load.transactions(), 100)]]
        for load in (BusyLoad(senders(4), seed) for seed in (7, 7, 8))
    ]
    assert made[0] == made[1]
    assert made[0] != made[2]


@pytest.mark.heavy
def test_a_transaction_that_ends_otherwise_is_told(busy: tuple[str, BusyLoad]) -> None:
    url, load = busy
    good = next(each for each in load.sent if each.kind == "ether")
    told = load.outcomes(url, [Sent("ether", good.hash, True), Sent("x", "0x" + "00" * 32, False)])
    assert told == {"ether": {"status 1": 1}, "x": {"status missing": 1}}


@pytest.mark.heavy
@pytest.mark.parametrize("name", ["Coin", "Proxy", "Pair", "Router", "Factory", "Wallet"])
def test_the_contracts_are_what_the_compiler_makes_of_their_sources(name: str) -> None:
    here = Path(__file__).parent
    clients = here.parent / "clients"
    if not (clients / "node_modules" / "solc").is_dir():
        pytest.skip("solc is not installed; `make clients` installs it")
    source = here / "contracts" / name
    command = ["node", "compile.mjs", f"{source}.sol", f"{source}.json", "--check"]
    subprocess.run(command, cwd=clients, check=True)
