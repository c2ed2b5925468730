"""Searches by address: the published chain compared with geth's traces, and the contents of
a page.
"""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import ChainFiles
from foreblock.ledger.importing.importer import import_files
from foreblock.ledger.reading.view import Ledger
from foreblock.ledger.tracing.address_indexing import AddressIndexing
from methods.test_traces import RECORDED
from support.address_model import Touching, check_pages, scan, touching
from support.chains.preconfirming import COUNTER, PAID, SENDER, PreconfirmingChain
from support.servers.asking import Asker, asker

BEFORE, AFTER = "ots_searchTransactionsBefore", "ots_searchTransactionsAfter"


@pytest.fixture(scope="module")
def indexed(published: ChainFiles, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asker]:
    """The published chain with the index from an import."""
    store = tmp_path_factory.mktemp("indexed") / "store"
    files = (published.genesis, published.chain, store, published.fork_choice)
    import_files(*files, lambda _: None, address_index=True)
    ledger = Ledger.open(str(store))
    with asker(ledger, "ethereum") as client:
        yield client
    ledger.close()


@pytest.fixture(scope="module")
def geth(indexed: Asker) -> list[Touching]:
    """The transactions of the published chain by the addresses in geth's callTracer frames."""
    calls = json.loads(gzip.decompress(RECORDED.read_bytes()))["calls"]
    found: list[Touching] = []
    for number in sorted(int(each, 16) for each in calls):
        receipts = indexed.ask("eth_getBlockReceipts", hex(number))
        # callTracer has no address for a failed creation.
        made = {it["transactionHash"]: {it["contractAddress"]} - {None} for it in receipts}
        found += [
            it._replace(addresses=it.addresses | made[it.hash])
            for it in touching(number, calls[hex(number)])
        ]
    return found


def test_pages_of_the_published_chain_are_those_of_geths_traces(
    indexed: Asker, geth: list[Touching]
) -> None:
    assert len(geth) == 249
    addresses = sorted({address for it in geth for address in it.addresses})
    assert len(addresses) > 50
    assert check_pages(indexed, geth, addresses, [1, 25]) > 500


def test_a_page_has_whole_transactions_and_receipts(indexed: Asker, geth: list[Touching]) -> None:
    seen = 0
    for address in sorted(geth[100].addresses | geth[200].addresses):
        page = indexed.ask(BEFORE, address, 0, 25)
        for transaction, receipt in zip(page["txs"], page["receipts"], strict=True):
            wanted = transaction["hash"]
            assert transaction == indexed.ask("eth_getTransactionByHash", wanted)
            block = indexed.ask("eth_getBlockByNumber", transaction["blockNumber"], False)
            assert receipt.pop("timestamp") == block["timestamp"]
            assert receipt == indexed.ask("eth_getTransactionReceipt", wanted)
            seen += 1
    assert seen > 20


def test_blocks_are_not_divided(indexed: Asker, geth: list[Touching]) -> None:
    """A block with more transactions of an address than fit on a page."""
    blocks = [it.block for it in geth]
    largest = max(set(blocks), key=blocks.count)
    sender = indexed.ask("eth_getBlockByNumber", hex(largest), True)["transactions"][0]["from"]
    of_it = [it.hash for it in geth if it.block == largest and sender in it.addresses]
    assert len(of_it) > 25
    page = indexed.ask(BEFORE, sender, largest + 1, 1)
    assert [it["hash"] for it in page["txs"]] == of_it[::-1]
    assert page == indexed.ask(BEFORE, sender, hex(largest + 1), 25)
    page = indexed.ask(AFTER, sender, largest - 1, 1)
    assert [it["hash"] for it in page["txs"]] == of_it[::-1]


def test_what_a_search_may_not_ask_for(indexed: Asker) -> None:
    address = "0x" + "77" * 20
    nothing: dict[str, object] = {"txs": [], "receipts": []}
    assert indexed.ask(BEFORE, address, 0, 25) == nothing | {"firstPage": True, "lastPage": True}
    assert indexed.ask(BEFORE, address, 1, 25) == nothing | {"firstPage": False, "lastPage": True}
    assert indexed.ask(BEFORE, address, 2**63, 1) == nothing | {"firstPage": True, "lastPage": True}
    assert indexed.ask(AFTER, address, 2**63, 1) == nothing | {"firstPage": True, "lastPage": False}
    for method in (BEFORE, AFTER):
        for size in (0, 26, -1):
            refused = indexed.ask(method, address, 0, size)
            assert refused["code"] == -32602
            assert "a page has 1 to 25 transactions" in refused["message"]
        for block in (-1, "latest", "0x", 2**64):
            assert indexed.ask(method, address, block, 1)["code"] == -32602
        assert indexed.ask(method, "0x77", 0, 1)["code"] == -32602


def test_blocks_in_progress_are_found_where_they_are_shown(tmp_path: Path) -> None:
    chain = PreconfirmingChain(tmp_path / "store")
    payer, paid, counter = ("0x" + each.hex() for each in (SENDER, PAID, COUNTER))
    try:
        chain.begin()
        chain.extend([chain.pay()])
        chain.begin()
        AddressIndexing(chain.store).catch_up(1)
        ledger = Ledger(chain.store, clock=chain.clock)
        with asker(ledger) as client, asker(ledger, view="sealed") as sealed:
            chain.extend([chain.pay(COUNTER, 5), chain.pay()])
            assert check_pages(client, scan(client), [payer, paid, counter], [1, 2]) > 12
            pending = client.ask("eth_getBlockByNumber", "pending", False)
            page = client.ask(BEFORE, payer, 0, 1)
            assert [it["blockHash"] for it in page["txs"]] == [pending["hash"]] * 2
            assert len(client.ask(AFTER, payer, 1, 25)["txs"]) == 2
            assert check_pages(sealed, scan(sealed, "latest"), [payer, paid, counter], [1]) == 6
            assert sealed.ask(BEFORE, counter, 0, 1)["txs"] == []
            assert sealed.ask(BEFORE, payer, 0, 1)["lastPage"]
    finally:
        chain.close()
