"""Senders are stored with a block; an older store gives the same results without them."""

from pathlib import Path

from foreblock._engine import Store
from foreblock.bench.rpc import chain
from foreblock.ledger.importing.importer import import_files
from foreblock.ledger.reading.view import Ledger
from foreblock.ledger.storage import rows
from foreblock.primitives import format_data
from support.servers.asking import asker


def answers(store: Path) -> list[object]:
    """A receipt, a transaction, and a whole block in both forms."""
    (first, *_) = chain.first_transactions()
    ledger = Ledger.open(str(store))
    with asker(ledger) as client:
        found = [
            client.ask("eth_getTransactionReceipt", format_data(first.hash)),
            client.ask("eth_getTransactionByHash", format_data(first.hash)),
            client.ask("eth_getBlockByNumber", "0x1", True),
            client.ask("eth_getBlockReceipts", "0x1"),
        ]
    ledger.close()
    return found


def test_senders_are_recovered_where_they_are_not_stored(tmp_path: Path) -> None:
    genesis, folder = tmp_path / "genesis.json", tmp_path / "store"
    genesis.write_bytes(chain.genesis())
    import_files(genesis, chain.BLOCKS, folder, None, lambda _: None)
    stored = answers(folder)
    with Store(str(folder), write=True) as store:
        with store.view() as view:
            assert view.row(rows.senders_key(1)) == chain.SENDER * chain.TRANSFERS
        batch = store.batch()
        batch.delete(rows.senders_key(1))
        store.commit(batch)
    assert answers(folder) == stored
