"""Simulations on a chain under OP rules: steps, extra data, fees and vaults."""

import json
from collections.abc import Iterator

import pytest

from foreblock.ledger.reading.view import Ledger
from foreblock.ledger.rules.fees import next_base_fee
from support.chains.builder import ChainBuilder
from support.chains.profiles import JOVIAN
from support.payloads.bytecode import returning
from support.servers.asking import A0, A1, A2, ETHER, Asker, asker, block, funded, simulate, word

L1_BLOCK = "0x4200000000000000000000000000000000000015"
MESSAGE_PASSER = "0x4200000000000000000000000000000000000016"
BASE_FEE_VAULT = bytes.fromhex("4200000000000000000000000000000000000019")
L1_FEE_VAULT = bytes.fromhex("420000000000000000000000000000000000001a")
OPERATOR_FEE_VAULT = bytes.fromhex("420000000000000000000000000000000000001b")
EMPTY_ROOT = "0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421"
EXTRA_DATA = "0x010000003200000006000000000000000a"  # 50, 6, at least 10 wei
GAS_LIMIT = 30_000_000
OPERATOR_FEES = (1_000_000 << 64) | 7  # scalar and constant
GENESIS = json.dumps(
    {
        "config": JOVIAN,
        "gasLimit": hex(GAS_LIMIT),
        "difficulty": "0x0",
        "extraData": EXTRA_DATA,
        "baseFeePerGas": "0x3b9aca00",
        "alloc": {
            L1_BLOCK: {
                "balance": "0",
                "nonce": "0x1",
                "storage": {
                    "0x01": hex(10**9),
                    "0x03": hex((1 << 128) * 1000 + (1 << 96) * 1000),
                    "0x07": hex(10**9),
                    "0x08": hex((400 << 96) | OPERATOR_FEES),
                },
            },
            MESSAGE_PASSER: {"balance": "0", "nonce": "0x1", "storage": {"0x00": "0x01"}},
        },
    }
).encode()


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ledger]:
    chain = ChainBuilder(tmp_path_factory.mktemp("optimism") / "store", GENESIS)
    chain.add()
    yield Ledger(chain.store)
    chain.store.close()


@pytest.fixture(scope="module", params=["preconf", "ethereum"])
def client(ledger: Ledger, request: pytest.FixtureRequest) -> Iterator[Asker]:
    with asker(ledger, request.param) as found:
        yield found


def test_blocks_come_every_two_seconds_and_carry_their_extra_data(client: Asker) -> None:
    head = client.ask("eth_getBlockByNumber", "latest", False)
    blocks = simulate(client, block(), block())
    time = int(head["timestamp"], 16)
    assert [int(each["timestamp"], 16) for each in blocks] == [time + 2, time + 4]
    assert {each["extraData"] for each in blocks} == {EXTRA_DATA}
    assert {each["withdrawalsRoot"] for each in blocks} == {EMPTY_ROOT}
    assert {each["baseFeePerGas"] for each in blocks} == {"0x0"}
    assert blocks[0]["miner"] == head["miner"]


def test_base_fee_follows_the_parameters_of_the_parent(client: Asker) -> None:
    head = client.ask("eth_getBlockByNumber", "latest", False)
    fee = int(head["baseFeePerGas"], 16)
    first, second = simulate(client, block(), block(), validation=True)
    used = max(int(head["gasUsed"], 16), int(head["blobGasUsed"], 16))
    assert int(first["baseFeePerGas"], 16) == next_base_fee(fee, used, GAS_LIMIT, 6, 50)
    assert int(second["baseFeePerGas"], 16) == next_base_fee(
        int(first["baseFeePerGas"], 16), 0, GAS_LIMIT, 6, 50
    )
    low = simulate(client, block(baseFeePerGas="0x5"), block(), validation=True)
    assert low[1]["baseFeePerGas"] == "0xa"  # the minimum in the parent's extra data


def test_each_call_has_the_footprint_of_the_least_data(client: Asker) -> None:
    (found,) = simulate(client, block({"to": A1}, {"to": A2}))
    assert found["blobGasUsed"] == hex(2 * 100 * 400)
    assert found["excessBlobGas"] == "0x0"


@pytest.mark.parametrize("validation", [False, True])
def test_fees_go_to_the_vaults_and_none_to_l1(client: Asker, validation: bool) -> None:
    """Coinbase and base fee vault are paid, and the total supply is unchanged."""
    coinbase = bytes.fromhex("fe" * 20)
    watched = [bytes.fromhex(A0[2:]), coinbase, BASE_FEE_VAULT, L1_FEE_VAULT, OPERATOR_FEE_VAULT]
    probes = {f"0x{0xB0 + i:040x}": vault for i, vault in enumerate(watched)}
    accounts = funded(A0) | {
        probe: {"code": returning(vault, "BALANCE")} for probe, vault in probes.items()
    }
    paying = {"from": A0, "to": A1, "maxFeePerGas": "0xb", "maxPriorityFeePerGas": "0x2"}
    free = {"maxFeePerGas": "0x7", "maxPriorityFeePerGas": "0x0"} if validation else {}
    rich = "0x" + "f1" * 20
    (found,) = simulate(
        client,
        block(
            paying | {"gas": "0x186a0"},
            *[{"from": rich, "to": probe, "gas": "0x186a0"} | free for probe in probes],
            accounts=accounts | funded(rich),
            baseFeePerGas="0x7",
            feeRecipient="0x" + "fe" * 20,
        ),
        validation=validation,
    )
    paid, *read = found["calls"]
    gas = int(paid["gasUsed"], 16)
    sender, tip, base, l1, operator = (int(each["returnData"], 16) for each in read)
    assert sender == ETHER - 9 * gas
    assert tip == 2 * gas
    before = sum(int(each["gasUsed"], 16) for each in read[:2]) * 7 if validation else 0
    assert base == 7 * gas + before
    assert (l1, operator) == (0, 0)


def test_blobs_and_withdrawals_are_refused(client: Asker) -> None:
    blobs = {"to": A1, "blobVersionedHashes": [word(1 << 248)]}
    assert simulate(client, block(blobs))["code"] == -32602
    withdrawal = {"index": "0x0", "validatorIndex": "0x0", "address": A1, "amount": "0x1"}
    assert simulate(client, block(withdrawals=[withdrawal]))["code"] == -32000


def test_state_roots_are_real_or_zero(client: Asker, ledger: Ledger) -> None:
    with asker(ledger, "preconf") as preconf, asker(ledger, "ethereum") as ethereum:
        (zero,) = simulate(preconf, block(accounts=funded(A0)))
        (real,) = simulate(ethereum, block(accounts=funded(A0)))
        head = client.ask("eth_getBlockByNumber", "latest", False)
    assert zero["stateRoot"] == word(0)
    assert real["stateRoot"] not in (word(0), head["stateRoot"])
