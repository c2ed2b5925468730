"""Blob transactions on a dev chain with Ethereum's rules."""

from pathlib import Path

import pytest

from foreblock.bus.commands import Mine
from support.chains.checking import check_by_import
from support.chains.dev_chain import ACCOUNTS, blob_transaction, genesis_of, send
from support.chains.dev_service import dev_service
from support.servers.asking import Asker

BOB = ACCOUNTS[1]
GAS_PER_BLOB = 131_072


def refusal(client: Asker, raw: str) -> str:
    answer = client.ask("eth_sendRawTransaction", raw)
    return str(answer["message"])


def test_blobs_count_in_the_block_and_in_the_receipt(tmp_path: Path) -> None:
    with dev_service(tmp_path, genesis=genesis_of("ethereum")) as (chain, client):
        sent = client.ask("eth_sendRawTransaction", blob_transaction(0, 0, 3))
        receipt = client.ask("eth_getTransactionReceipt", sent)
        assert int(receipt["blobGasUsed"], 16) == 3 * GAS_PER_BLOB
        assert (receipt["type"], receipt["blobGasPrice"]) == ("0x3", "0x1")
        block = client.ask("eth_getBlockByNumber", "latest", True)
        assert int(block["blobGasUsed"], 16) == 3 * GAS_PER_BLOB
        (found,) = block["transactions"]
        assert len(found["blobVersionedHashes"]) == 3
        check_by_import(chain, tmp_path / "imported")


def test_a_block_holds_as_many_blobs_as_its_fork_says(tmp_path: Path) -> None:
    with dev_service(tmp_path, genesis=genesis_of("ethereum"), mining="manual") as (chain, client):
        for nonce in range(3):
            client.ask("eth_sendRawTransaction", blob_transaction(0, nonce, 4))
        chain.submit(send(BOB, 0))
        chain.execute(Mine(blocks=2))
        used = [block.header.blob_gas_used for block in chain.sealed()]
        assert used == [8 * GAS_PER_BLOB, 0]
        chain.execute(Mine())
        third = chain.sealed()[2].header
        assert third.blob_gas_used == 4 * GAS_PER_BLOB
        chain.kill()
        chain.open()
        chain.execute(Mine())
        check_by_import(chain, tmp_path / "imported")


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (blob_transaction(0, 0, 7), "too many blobs in transaction: have 7, permitted 6"),
        (blob_transaction(0, 0, 0), "blobless blob transaction"),
        (blob_transaction(0, 0, 1, sidecar=False), "missing sidecar in blob transaction"),
        ("0x03c0", "missing sidecar in blob transaction"),
        (blob_transaction(0, 0, 1, commits=False), "blob hashes are not those of the commitments"),
    ],
)
def test_a_bad_one_is_refused_in_words(tmp_path: Path, raw: str, why: str) -> None:
    with dev_service(tmp_path, genesis=genesis_of("ethereum")) as (_, client):
        assert why in refusal(client, raw)


def test_an_op_chain_has_none(tmp_path: Path) -> None:
    with dev_service(tmp_path) as (_, client):
        assert "tx type 3 not supported" in refusal(client, blob_transaction(0, 0, 1))


def test_one_that_pays_too_little_waits(tmp_path: Path) -> None:
    genesis = genesis_of("ethereum", "cancun")
    with dev_service(tmp_path, genesis=genesis, mining="manual") as (chain, client):
        # Raise the blob price with full blocks.
        for nonce in range(10):
            client.ask("eth_sendRawTransaction", blob_transaction(0, nonce, 6))
            chain.execute(Mine())
        client.ask("eth_sendRawTransaction", blob_transaction(1, 0, 1, blob_fee=1))
        chain.execute(Mine())
        assert chain.sealed()[-1].transactions == ()
        assert chain.sequencer.builder.waiting == 1
        chain.execute(Mine(blocks=40))
        chain.execute(Mine())
        assert chain.sequencer.builder.waiting == 0
        check_by_import(chain, tmp_path / "imported")
