"""Checks of a dev chain by rules that its sequencer does not use."""

from collections.abc import Sequence
from pathlib import Path

from foreblock._engine import Block, Store
from foreblock.ledger.importing.importer import Chain
from foreblock.ledger.storage.open_store import begin_chain
from support.chains.dev_chain import ACCOUNTS, DevChain
from support.servers.asking import Asker

SOMEBODY = "0x" + ACCOUNTS[0].address.hex()


def check_by_import(chain: DevChain, folder: Path) -> None:
    """Every sealed block passes every rule of the import, on a store of its own."""
    check_blocks_by_import(chain, chain.sealed(), folder)


def check_blocks_by_import(chain: DevChain, blocks: Sequence[Block], folder: Path) -> None:
    """The same for the first blocks of a chain."""
    with Store(str(folder), write=True) as store:
        begin_chain(store, chain.genesis)
        importing = Chain(store, chain.writer.profile)
        for block in blocks:
            importing.add(block)
        importing.commit()
        importing.close()


def check_unknown(client: Asker, blocks: set[str], transactions: set[str]) -> None:
    """No name of these finds anything."""
    for block in blocks:
        for named in (block, {"blockHash": block}):
            refusal = client.ask("eth_getBalance", SOMEBODY, named)
            assert "not found" in refusal["message"], refusal
            refusal = client.ask("eth_call", {"to": SOMEBODY, "from": SOMEBODY}, named)
            assert "not found" in refusal["message"], refusal
            refusal = client.ask("debug_traceBlockByHash", block)
            assert "not found" in refusal["message"], refusal
        assert client.ask("eth_getBlockByHash", block, False) is None
        assert client.ask("eth_getBlockTransactionCountByHash", block) is None
        assert client.ask("eth_getTransactionByBlockHashAndIndex", block, "0x0") is None
        answer = client.ask("eth_getBlockReceipts", block)
        assert answer is None or "not found" in answer["message"]
        refusal = client.ask("eth_getLogs", {"blockHash": block})
        assert "unknown block" in refusal["message"] or "not found" in refusal["message"], refusal
    for transaction in transactions:
        assert client.ask("eth_getTransactionByHash", transaction) is None, transaction
        assert client.ask("eth_getTransactionReceipt", transaction) is None
        assert "code" in client.ask("debug_traceTransaction", transaction)
