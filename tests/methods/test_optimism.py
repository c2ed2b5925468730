"""Methods on a chain under OP rules: deposits are visible, calls pay no L1 fee."""

from collections.abc import Iterator

import pytest

from foreblock.ledger.reading.view import Ledger
from support.chains.builder import ChainBuilder
from support.chains.profiles import CREATION, DEPOSIT, GENESIS
from support.payloads.bytecode import returning
from support.servers.asking import Asker, asker, error

TO = "0x00000000000000000000000000000000000c0de0"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asker]:
    chain = ChainBuilder(tmp_path_factory.mktemp("optimism") / "store", GENESIS)
    chain.add([DEPOSIT])
    chain.add([DEPOSIT.replace(b"\1" * 32, b"\3" * 32), CREATION])
    with asker(Ledger(chain.store)) as found:
        yield found
    chain.store.close()


def test_deposit_is_shown_with_its_own_fields(client: Asker) -> None:
    block = client.ask("eth_getBlockByNumber", "0x1", True)
    (deposit,) = block["transactions"]
    assert deposit == {
        "blockHash": block["hash"],
        "blockNumber": "0x1",
        "blockTimestamp": block["timestamp"],
        "transactionIndex": "0x0",
        "type": "0x7e",
        "hash": deposit["hash"],
        "from": "0x" + "d0" * 20,
        "to": "0x" + "35" * 20,
        "nonce": "0x0",
        "gas": "0x186a0",
        "gasPrice": "0x0",
        "value": "0x2",
        "input": "0x",
        "v": "0x0",
        "r": "0x0",
        "s": "0x0",
        "yParity": "0x0",
        "sourceHash": "0x" + "01" * 32,
        "mint": "0x5",
        "depositReceiptVersion": "0x1",
    }


def test_nonce_of_a_deposit_is_that_of_its_receipt(client: Asker) -> None:
    deposits = client.ask("eth_getBlockByNumber", "0x2", True)["transactions"]
    assert [deposit["nonce"] for deposit in deposits] == ["0x1", "0x2"]
    assert deposits[1]["to"] is None


def test_header_has_the_fields_of_its_fork(client: Asker) -> None:
    block = client.ask("eth_getBlockByNumber", "latest", False)
    assert block["withdrawals"] == []
    assert block["extraData"] == "0x0100000032000000060000000000000000"
    assert block["requestsHash"].startswith("0xe3b0c442")


def test_call_that_pays_needs_no_more_than_its_gas(client: Asker) -> None:
    fee = int(client.ask("eth_getBlockByNumber", "latest", False)["baseFeePerGas"], 16)
    overrides = {TO: {"code": returning("ORIGIN", "BALANCE")}, "0x" + "aa" * 20: {
        "balance": hex(100_000 * fee)}}  # fmt: skip
    call = {"from": "0x" + "aa" * 20, "to": TO, "gas": "0x186a0", "gasPrice": hex(fee)}
    assert int(client.ask("eth_call", call, "latest", overrides), 16) == 0


def test_blob_base_fee_is_one(client: Asker) -> None:
    overrides = {TO: {"code": returning("BLOBBASEFEE")}}
    assert int(client.ask("eth_call", {"to": TO}, "latest", overrides), 16) == 1


def test_blob_call_is_refused(client: Asker) -> None:
    call = {"to": TO, "blobVersionedHashes": ["0x01" + "11" * 31]}
    why = "err: there are no blob transactions on this chain (supplied gas 50000000)"
    assert client.ask("eth_call", call, "latest") == error(-32000, why)
