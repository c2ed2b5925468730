"""A fork after a transaction: its first block is that of the transaction, which ends with it."""

from pathlib import Path
from typing import Any

import pytest

from foreblock import DevChain
from foreblock.errors import BadSetting
from support.each_case import each_case
from support.upstreams.forked import OpenUpstream, Rules, Upstream

CLOCK = "0x" + "c1" * 20
# TIMESTAMP, NUMBER, COINBASE, PREVRANDAO, GASLIMIT, BASEFEE and PUSH0 CALLDATALOAD.
FACTS = ("42", "43", "41", "44", "45", "48", "5f35")
# Each to a slot of its own among the 16 that belong to the value of the call.
CODE = "0x" + "".join(f"{fact}34601002{'60'}{index:02x}0155" for index, fact in enumerate(FACTS))
RECEIPT = ("status", "gasUsed", "cumulativeGasUsed", "effectiveGasPrice", "type", "blockNumber")
HEADER = (
    "number", "timestamp", "miner", "mixHash", "gasLimit", "baseFeePerGas", "parentHash",
    "extraData", "parentBeaconBlockRoot", "excessBlobGas", "gasUsed", "transactionsRoot",
    "receiptsRoot", "logsBloom",
)  # fmt: skip
COUNT = 4  # transactions of users in the block


def block_of_many(chain: DevChain) -> Any:  # noqa: ANN401, JSON
    """A block with transactions that write what they know about it; the third one fails."""
    chain.rpc("anvil_setCode", CLOCK, CODE)
    chain.seal()
    chain.rpc("evm_increaseTime", 77)
    chain.rpc("evm_setAutomine", False)
    for value, sender in enumerate(chain.accounts[1 : COUNT + 1], start=1):
        gas = 30_000 if value == 3 else 400_000
        chain.rpc(
            "eth_sendTransaction",
            {"from": f"0x{sender.hex()}", "to": CLOCK, "value": hex(value), "gas": hex(gas),
             "data": f"0x{value:064x}", "maxPriorityFeePerGas": hex((9 - value) * 10**8)},
        )  # fmt: skip
    chain.rpc("evm_mine")
    chain.rpc("evm_setAutomine", True)
    chain.seal()
    return chain.rpc("eth_getBlockByNumber", hex(int(chain.rpc("eth_blockNumber"), 16) - 1), True)


def fork_after(upstream: Upstream, transaction: str, **settings: Any) -> DevChain:  # noqa: ANN401
    options = {"transaction_hash": transaction, **settings.pop("options", {})}
    return upstream.fork(options=options, **settings)


def slots(chain: DevChain, value: int, block: str = "latest") -> list[str]:
    named = (hex(16 * value + index) for index in range(len(FACTS)))
    return [chain.rpc("eth_getStorageAt", CLOCK, slot, block) for slot in named]


@pytest.mark.parametrize("rules", ["ethereum", "optimism"])
def test_the_block_is_that_of_the_upstream_up_to_the_transaction(
    open_upstream: OpenUpstream, rules: Rules
) -> None:
    upstream = open_upstream(rules)
    block = block_of_many(upstream.chain)
    number, hashes = block["number"], [each["hash"] for each in block["transactions"]]
    senders = upstream.chain.accounts[1 : COUNT + 1]
    users = hashes[-COUNT:]
    for last in range(COUNT):
        with fork_after(upstream, users[last]) as fork:
            assert fork.rpc("eth_blockNumber") == number
            found = fork.rpc("eth_getBlockByNumber", number, False)
            assert found["transactions"] == hashes[: len(hashes) - COUNT + last + 1]
            for each in found["transactions"]:
                receipts = [
                    chain.rpc("eth_getTransactionReceipt", each) for chain in (upstream.chain, fork)
                ]
                expected, got = ([one[name] for name in RECEIPT] for one in receipts)
                assert got == expected
            assert fork.rpc("eth_getTransactionReceipt", users[last])["status"] == (
                "0x0" if last == 2 else "0x1"
            )
            for index, sender in enumerate(senders):
                nonce = fork.rpc("eth_getTransactionCount", f"0x{sender.hex()}", "latest")
                assert int(nonce, 16) == (index <= last)
                expected_slots = slots(upstream.chain, index + 1, number)
                assert any(int(slot, 16) for slot in expected_slots) is (index != 2)
                is_run = index <= last
                assert slots(fork, index + 1) == (
                    expected_slots if is_run else [f"0x{0:064x}"] * len(FACTS)
                )
            if last == COUNT - 1:
                header = upstream.chain.rpc("eth_getBlockByNumber", number, False)
                assert [found[name] for name in HEADER] == [header[name] for name in HEADER]


def test_the_chain_continues_after_it(upstream: Upstream, tmp_path: Path) -> None:
    block = block_of_many(upstream.chain)
    number, last = int(block["number"], 16), block["transactions"][1]["hash"]
    with fork_after(upstream, last, data=tmp_path) as fork:
        assert fork.rpc("anvil_nodeInfo")["forkConfig"]["forkBlockNumber"] == number - 1
        fork.rpc("anvil_setBalance", CLOCK, "0x99")
        fork.send(CLOCK, value=9, gas=400_000)
        assert fork.rpc("eth_blockNumber") == hex(number + 1)
        assert fork.balance(CLOCK) == 0x99 + 9
        ours = fork.rpc("eth_getBlockByNumber", "latest", False)
        assert int(ours["timestamp"], 16) == int(block["timestamp"], 16) + 1
    with fork_after(upstream, last, data=tmp_path) as fork:
        assert fork.rpc("eth_blockNumber") == hex(number + 1)
        fork.rpc("anvil_reset")
        assert fork.rpc("eth_blockNumber") == hex(number)
        assert fork.balance(CLOCK) == 1 + 2
        fork.rpc("anvil_reset", {"forking": {"blockNumber": number - 1}})
        assert fork.rpc("eth_blockNumber") == hex(number - 1)
        assert fork.balance(CLOCK) == 0


def test_a_recording_has_the_block_and_the_cache_has_not(
    upstream: Upstream, tmp_path: Path
) -> None:
    block = block_of_many(upstream.chain)
    last, file = block["transactions"][0]["hash"], tmp_path / "tests.fork"
    with fork_after(upstream, last, options={"record": str(file)}) as fork:
        expected = fork.rpc("eth_getBlockByNumber", "latest", True)
    with DevChain(fork={"state": str(file)}) as fork:
        assert fork.rpc("eth_getBlockByNumber", "latest", True) == expected
    cached = {"cache": True, "cache_path": str(tmp_path)}
    with fork_after(upstream, last, options=cached) as fork:
        assert fork.rpc("eth_blockNumber") == block["number"]
    (kept,) = tmp_path.glob("*/*-*.*")
    with DevChain(fork={"state": str(kept)}) as fork:
        assert int(fork.rpc("eth_blockNumber"), 16) == int(block["number"], 16) - 1


@each_case(
    "options, why",
    [
        ({"transaction_hash": "0x" + "77" * 32}, "has no block with transaction 0x7777"),
        ({"transaction_hash": "0x77"}, "expected a hash"),
        ({"transaction_hash": "0x" + "77" * 32, "block_number": "1"}, "so does fork_block_number"),
    ],
)
def test_an_invalid_transaction_is_refused(options: dict[str, str], why: str) -> None:
    with (
        DevChain(rules="ethereum") as chain,
        chain.serve() as server,
        pytest.raises(BadSetting, match=why),
    ):
        DevChain(fork={"url": server.url, "cache": False, **options})


def test_transactions_of_another_chain_id_cannot_be_executed(upstream: Upstream) -> None:
    block = block_of_many(upstream.chain)
    with pytest.raises(BadSetting, match="transaction 0 of its block cannot be executed"):
        fork_after(upstream, block["transactions"][1]["hash"], chain_id=5)
