"""Blocks dropped by a revert, rollback, reset or reorganisation cannot be found by any name.

Every name that a client could have learned is requested afterwards, of sealed blocks and of
flashblocks, in both views.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.chains.checking import check_unknown
from support.chains.dev_chain import ACCOUNTS, DevChain, genesis_of, send
from support.chains.dev_service import dev_service
from support.servers.asking import Asker

ALICE, BOB = ACCOUNTS[:2]
WETH = bytes.fromhex("4200000000000000000000000000000000000006")
WHO = "0x" + ALICE.address.hex()
UNKNOWN = "header for hash not found"


def deposit(chain: DevChain, who: Any, nonce: int) -> str:  # noqa: ANN401, an account
    """Send a transaction with a log; return its hash."""
    transaction = send(who, nonce, WETH, value=5, gas=100_000)
    chain.submit(transaction)
    return "0x" + transaction.hash.hex()


def known(client: Asker) -> dict[str, set[str]]:
    """The hashes of all blocks above the genesis, of their flashblocks, and of transactions."""
    hashes: set[str] = set()
    transactions: set[str] = set()
    number = int(client.ask("eth_blockNumber"), 16)
    for height in range(1, number + 2):
        for index in range(12):
            place = {"blockNumber": hex(height), "flashblockIndex": hex(index)}
            block = client.ask("eth_getBlockByNumber", place, False)
            if block is None or "code" in block:
                break
            hashes.add(block["hash"])
            transactions |= set(block["transactions"])
        if height <= number:
            hashes.add(client.ask("eth_getBlockByNumber", hex(height), False)["hash"])
    return {"blocks": hashes, "transactions": transactions}


def by_revert(client: Asker, _: int) -> None:
    assert client.ask("evm_revert", "0x0") is True


def by_rollback(client: Asker, depth: int) -> None:
    assert client.ask("anvil_rollback", depth) is None


def by_reset(client: Asker, _: int) -> None:
    assert client.ask("anvil_reset") is None


def by_reorg(client: Asker, depth: int) -> None:
    assert client.ask("anvil_reorg", depth, []) is None


@pytest.mark.parametrize(
    ("sealed", "mining"),
    [
        (True, "automine"),
        (False, "manual"),
        pytest.param(True, "manual", marks=pytest.mark.heavy),
        pytest.param(False, "automine", marks=pytest.mark.heavy),
    ],
)
@pytest.mark.parametrize("give_up", [by_revert, by_rollback, by_reset, by_reorg])
def test_no_name_finds_what_was_given_up(
    tmp_path: Path, give_up: Callable[[Asker, int], None], sealed: bool, mining: str
) -> None:
    with dev_service(tmp_path, sealed=sealed, mining=mining) as (chain, client):
        sent = {deposit(chain, ALICE, 0)}
        client.ask("evm_mine")
        before, height = known(client), int(client.ask("eth_blockNumber"), 16)
        assert client.ask("evm_snapshot") == "0x0"
        for nonce in range(1, 4):
            sent.add(deposit(chain, ALICE, nonce))
            client.ask("foreblock_closeFlashblock")
            sent.add(deposit(chain, BOB, nonce - 1))
            client.ask("foreblock_closeFlashblock")
            client.ask("evm_mine")
        sent.add(deposit(chain, BOB, 3))
        client.ask("evm_mine")
        chain.run_until_idle()
        branch = known(client)
        latest = client.ask("eth_blockNumber")
        give_up(client, int(latest, 16) - height)
        after = known(client)
        blocks = branch["blocks"] - after["blocks"]
        assert sent <= branch["transactions"]
        transactions = sent - after["transactions"]
        assert len(blocks) >= 10
        assert len(transactions) >= 7
        check_unknown(client, blocks, transactions)
        if give_up is by_revert:
            assert after == before, "and all else is found again"
        if give_up is not by_reorg:
            assert client.ask("eth_getBlockByNumber", latest, False) is None
            place = {"blockNumber": latest, "flashblockIndex": "0x0"}
            assert "not found" in client.ask("eth_getBalance", WHO, place)["message"]
        # The same checks after the next blocks have replaced them, and after all maintenance.
        for _ in range(int(latest, 16) + 2):
            client.ask("evm_mine")
            chain.run_until_idle()
        check_unknown(client, blocks, transactions)


def test_logs_follow(tmp_path: Path) -> None:
    with dev_service(tmp_path) as (chain, client):
        deposit(chain, ALICE, 0)
        everything = {"fromBlock": "0x0", "address": "0x" + WETH.hex()}
        kept = client.ask("eth_getLogs", everything)
        filter_id = client.ask("eth_newFilter", {"address": "0x" + WETH.hex()})
        blocks_id = client.ask("eth_newBlockFilter")
        client.ask("evm_snapshot")
        for nonce in range(1, 40):
            deposit(chain, ALICE, nonce)
            chain.run_until_idle()
        added = client.ask("eth_getFilterChanges", filter_id)
        assert [each["removed"] for each in added] == [False] * 39
        assert len(client.ask("eth_getFilterChanges", blocks_id)) == 39
        assert client.ask("evm_revert", "0x0") is True
        assert client.ask("eth_getLogs", everything) == kept
        removed = client.ask("eth_getFilterChanges", filter_id)
        assert removed == [each | {"removed": True} for each in reversed(added)]
        assert client.ask("eth_getFilterChanges", blocks_id) == []
        deposit(chain, ALICE, 1)
        (again,) = client.ask("eth_getFilterChanges", filter_id)
        assert again["removed"] is False
        assert len(client.ask("eth_getFilterChanges", blocks_id)) == 1


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ([{"forking": {"jsonRpcUrl": "http://127.0.0.1:1"}}], "there is no forking"),
        ([{"jsonRpcUrl": "http://127.0.0.1:1", "blockNumber": 5}], "there is no forking"),
        ([{"forking": {"blockNumber": "0x5"}}], "there is no forking, and so no other block"),
        ([], None),
        ([None], None),
        ([{}], None),
        ([{"forking": None}], None),
        ([{"forking": {"blockNumber": None}}], None),
        ([{"forking": {}}], None),
    ],
)
def test_forms_of_a_reset(tmp_path: Path, params: list[object], told: str | None) -> None:
    with dev_service(tmp_path) as (_, client):
        client.ask("evm_mine")
        answer = client.ask("anvil_reset", *params)
        assert client.ask("eth_blockNumber") == ("0x1" if told else "0x0")
        assert answer is None if told is None else told in answer["message"]


@pytest.mark.parametrize("form", ["0x0", "0", 0, "0x00"])
def test_forms_of_an_id(tmp_path: Path, form: object) -> None:
    with dev_service(tmp_path) as (_, client):
        assert client.ask("evm_snapshot") == "0x0"
        assert client.ask("evm_revert", form) is True
        assert client.ask("evm_revert", form) is False


def test_reorganisation_with_transactions(tmp_path: Path) -> None:
    with dev_service(tmp_path) as (chain, client):
        deposit(chain, ALICE, 0)
        deposit(chain, ALICE, 1)
        placed = send(BOB, 0)
        raw, name = "0x" + placed.raw.hex(), "0x" + placed.hash.hex()
        assert client.ask("anvil_reorg", 2, [[raw, 1]]) is None
        assert client.ask("eth_getTransactionReceipt", name)["blockNumber"] == "0x2"
        assert client.ask("eth_getTransactionCount", WHO, "latest") == "0x0"
        refusal = client.ask("anvil_reorg", 1, [["0x02", 0]])
        assert "code" in refusal


@pytest.mark.parametrize("rules", ["optimism", "ethereum"])
def test_reorganisation_with_objects(tmp_path: Path, rules: str) -> None:
    """Their nonces continue from the remaining block, regardless of later transactions."""
    stranger, to = "0x" + "ab" * 20, "0x" + "cd" * 20
    with dev_service(tmp_path, genesis=genesis_of(rules)) as (chain, client):
        for nonce in range(3):
            chain.submit(send(ALICE, nonce))
        client.ask("anvil_setBalance", stranger, hex(10**18))
        client.ask("evm_mine")
        mine = [[{"from": WHO, "to": to, "value": hex(each)}, each % 2] for each in (1, 2, 3)]
        theirs = [[{"from": stranger, "to": to}, 1]]
        refusal = client.ask("anvil_reorg", 3, [*mine, *theirs])
        assert refusal["message"] == "No Signer available"
        client.ask("anvil_impersonateAccount", stranger)
        client.ask("anvil_setBalance", stranger, hex(10**18))
        client.ask("evm_mine")
        refusal = client.ask("anvil_reorg", 5, [*mine, *theirs])
        assert "cannot run" in refusal["message"], "it is not in the order of its nonces"
        ordered = [mine[1], mine[0], mine[2]]
        if rules == "ethereum":
            theirs = []  # senders without sufficient funds
        assert client.ask("anvil_reorg", 4, [*ordered, *theirs]) is None
        assert client.ask("eth_getTransactionCount", WHO, "0x2") == "0x2"
        assert client.ask("eth_getTransactionCount", WHO, "latest") == "0x4"
        assert client.ask("eth_getBalance", to, "latest") == "0x6"
        assert client.ask("eth_getTransactionCount", stranger, "latest") == hex(len(theirs))
        many = [mine[0]] * 1_001
        assert "the most is 1000" in client.ask("anvil_reorg", 1, many)["message"]
