"""eth_simulateV1 on pre-confirmed state: after the block in progress, and inside it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from foreblock.ledger.reading.view import Ledger
from support.chains.preconfirming import COUNTER, PAID, SENDER, PreconfirmingChain
from support.chains.writing import HISTORY, SEQUENCER_VAULT
from support.payloads.bytecode import returning
from support.payloads.headers import header_hash
from support.servers.asking import Asker, asker, error

TO = "0x00000000000000000000000000000000000c0de0"
PAYER, PAYEE, COUNTING = "0x" + SENDER.hex(), "0x" + PAID.hex(), "0x" + COUNTER.hex()


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[PreconfirmingChain]:
    """One sealed block; a second one in progress that touched the payee and the counter."""
    found = PreconfirmingChain(tmp_path / "store")
    found.begin()
    found.begin()
    found.extend([found.pay(value=10), found.pay(COUNTER, 7)])
    yield found
    found.close()


def simulate(
    client: Asker, *blocks: dict[str, Any], at: object = "pending", **payload: bool
) -> Any:  # noqa: ANN401, it is JSON
    return client.ask("eth_simulateV1", {"blockStateCalls": blocks, **payload}, at)


def pay(to: str, value: int) -> dict[str, str]:
    return {"from": PAYER, "to": to, "value": hex(value)}


def looking(*program: str | int | bytes) -> dict[str, Any]:
    """A block with a call whose code returns a word."""
    return {"stateOverrides": {TO: {"code": returning(*program)}}, "calls": [{"to": TO}]}


def word(block: dict[str, Any], call: int = 0) -> int:
    assert block["calls"][call]["status"] == "0x1"
    return int(block["calls"][call]["returnData"], 16)


def test_first_block_follows_the_pending_one(client: Asker) -> None:
    pending = client.ask("eth_getBlockByNumber", "pending", False)
    first, second = simulate(client, looking("NUMBER"), looking("TIMESTAMP"))
    assert (first["number"], second["number"]) == ("0x3", "0x4")
    assert first["parentHash"] == pending["hash"]
    assert second["parentHash"] == first["hash"] == header_hash(first)
    assert word(first) == 3
    assert word(second) == int(pending["timestamp"], 16) + 4
    assert first["extraData"] == pending["extraData"]
    assert first["gasLimit"] == pending["gasLimit"]
    assert first["miner"] == pending["miner"] == "0x" + SEQUENCER_VAULT.hex()


def test_base_fee_comes_from_the_pending_header(chain: PreconfirmingChain, client: Asker) -> None:
    """By the rule of EIP-1559 with the parameters in the extra data: 50 and 6."""
    chain.extend([chain.pay(None, 0, b"\x5b" * 600 + b"\0") for _ in range(10)])
    pending = client.ask("eth_getBlockByNumber", "pending", False)
    (block,) = simulate(client, {}, validation=True)
    fee = int(pending["baseFeePerGas"], 16)
    used = max(int(pending["gasUsed"], 16), int(pending["blobGasUsed"], 16))
    target = int(pending["gasLimit"], 16) // 6
    assert used < target
    assert int(block["baseFeePerGas"], 16) == fee - fee * (target - used) // target // 50
    (unpriced,) = simulate(client, {})
    assert unpriced["baseFeePerGas"] == "0x0"


def test_later_block_sees_what_an_earlier_one_did_to_preconfirmed_accounts(client: Asker) -> None:
    """The payee and the counter were touched by the block in progress."""
    blocks = simulate(
        client,
        {"calls": [pay(PAYEE, 100), pay(COUNTING, 5)]},
        {
            "stateOverrides": {TO: {"code": returning(PAID, "BALANCE")}},
            "calls": [{"to": TO}, pay(PAYEE, 1000), {"to": TO}, pay(COUNTING, 3)],
        },
    )
    assert word(blocks[1]) == 110
    assert word(blocks[1], 2) == 1110
    counted = [int(block["calls"][-1]["logs"][0]["data"], 16) for block in blocks]
    assert counted == [12, 15], "7 are pre-confirmed"
    assert int(client.ask("eth_getBalance", PAYEE, "pending"), 16) == 10, "nothing stays"


def test_nonce_goes_on_from_the_preconfirmed_one(client: Asker) -> None:
    fees = {"maxFeePerGas": "0x174876e800", "gas": "0x186a0"}
    blocks = simulate(
        client, {"calls": [pay(PAYEE, 1) | fees, pay(PAYEE, 1) | fees]},
        validation=True, returnFullTransactions=True,
    )  # fmt: skip
    assert [each["nonce"] for each in blocks[0]["transactions"]] == ["0x2", "0x3"]
    refused = simulate(
        client, {"calls": [pay(PAYEE, 1) | fees | {"nonce": "0x0"}]}, validation=True
    )
    assert refused["code"] == -38010


def test_hashes_of_blocks_below_are_those_of_the_chain(
    chain: PreconfirmingChain, client: Asker
) -> None:
    pending = client.ask("eth_getBlockByNumber", "pending", False)
    first, second = simulate(client, looking(2, "BLOCKHASH"), looking(3, "BLOCKHASH"))
    assert word(first) == int(pending["hash"], 16)
    assert word(second) == int(first["hash"], 16)
    (below,) = simulate(client, looking(1, "BLOCKHASH"))
    assert word(below) == int.from_bytes(chain.writer.latest.hash)
    asked = {"to": "0x" + HISTORY.hex(), "data": f"0x{2:064x}"}
    (stored,) = simulate(client, {"calls": [asked]})
    assert word(stored) == int(pending["hash"], 16), "the system contract has it too"


def test_pinned_partial_is_followed_like_the_pending_one(client: Asker) -> None:
    pinned = {"blockNumber": "0x2", "flashblockIndex": "0x0"}
    base = client.ask("eth_getBlockByNumber", pinned, False)
    (block,) = simulate(client, looking(PAID, "BALANCE"), at=pinned)
    assert (block["number"], block["parentHash"]) == ("0x3", base["hash"])
    assert word(block) == 0
    (same,) = simulate(client, looking(PAID, "BALANCE"), at=base["hash"])
    assert same == block


def inside(*program: str | int | bytes, **overrides: str) -> dict[str, Any]:
    return looking(*program) | {"blockOverrides": {"number": "0x2", **overrides}}


def test_number_of_the_pending_block_simulates_inside_it(
    chain: PreconfirmingChain, client: Asker
) -> None:
    pending = client.ask("eth_getBlockByNumber", "pending", False)
    (block,) = simulate(client, inside(PAID, "BALANCE"))
    assert word(block) == 10, "after the pre-confirmed transactions"
    for field in (
        "number", "parentHash", "timestamp", "gasLimit", "miner", "mixHash", "extraData",
        "parentBeaconBlockRoot",
    ):  # fmt: skip
        assert block[field] == pending[field], field
    assert block["hash"] == header_hash(block)
    assert len(block["transactions"]) == 1
    assert block["baseFeePerGas"] == "0x0"
    (validated,) = simulate(client, {"blockOverrides": {"number": "0x2"}}, validation=True)
    assert validated["baseFeePerGas"] == pending["baseFeePerGas"]
    seen = {
        "NUMBER": 2,
        "TIMESTAMP": chain.block.base.timestamp,
        "COINBASE": int.from_bytes(SEQUENCER_VAULT),
        "PREVRANDAO": int.from_bytes(chain.block.base.prev_randao),
    }
    for opcode, value in seen.items():
        assert word(simulate(client, inside(opcode))[0]) == value
    assert word(simulate(client, inside(1, "BLOCKHASH"))[0]) == int(pending["parentHash"], 16)
    assert word(simulate(client, inside(2, "BLOCKHASH"))[0]) == 0


def test_blocks_after_one_inside_follow_it(client: Asker) -> None:
    first, second = simulate(
        client,
        inside("NUMBER") | {"calls": [pay(PAYEE, 100)]},
        {
            "stateOverrides": {TO: {"code": returning(2, "BLOCKHASH")}},
            "calls": [{"to": TO}, pay(PAYEE, 1)],
        },
    )
    assert (second["number"], second["parentHash"]) == ("0x3", first["hash"])
    assert word(second) == int(first["hash"], 16)
    assert int(second["timestamp"], 16) == int(first["timestamp"], 16) + 2


def test_time_inside_the_pending_block_may_go_on_and_not_back(client: Asker) -> None:
    now = int(client.ask("eth_getBlockByNumber", "pending", False)["timestamp"], 16)
    for time in (now, now + 1):
        (block,) = simulate(client, inside("TIMESTAMP", time=hex(time)))
        assert word(block) == time
    why = f"block timestamps must be in order: {now - 1} <= {now - 1}"
    assert simulate(client, inside("TIMESTAMP", time=hex(now - 1))) == error(-38021, why)


@pytest.mark.parametrize("at", ["latest", "0x1"])
def test_sealed_block_cannot_be_simulated_in(client: Asker, at: str) -> None:
    why = "block numbers must be in order: 1 <= 1"
    asked = {"blockOverrides": {"number": "0x1"}}
    assert simulate(client, asked, at=at) == error(-38020, why)


def test_only_the_first_block_can_be_inside(client: Asker) -> None:
    why = "block numbers must be in order: 2 <= 2"
    assert simulate(client, inside("NUMBER"), inside("NUMBER")) == error(-38020, why)


def test_state_root_of_an_empty_block_is_that_of_what_it_follows(
    chain: PreconfirmingChain,
) -> None:
    """In the dialect that computes roots. Inside the block nothing changes: as if it were
    sealed.
    """
    sealed = chain.writer.header_if_sealed(chain.block)
    with asker(Ledger(chain.store, clock=chain.clock), "ethereum") as client:
        (block,) = simulate(client, {"blockOverrides": {"number": "0x2"}})
        assert block["stateRoot"] == "0x" + sealed.state_root.hex()
