"""Checks of a dev chain by rules that its sequencer does not use."""

from pathlib import Path

from foreblock._engine import Store
from foreblock.ledger.importing.chain import Chain
from foreblock.ledger.storage.open_store import begin_chain
from support.chains.dev_chain import DevChain


def check_by_import(chain: DevChain, folder: Path) -> None:
    """Every sealed block passes every rule of the import, on a store of its own."""
    with Store(str(folder), write=True) as store:
        begin_chain(store, chain.genesis)
        importing = Chain(store, chain.writer.profile)
        for block in chain.sealed():
            importing.add(block)
        importing.commit()
        importing.close()
