"""Checks of a dev chain by rules that its sequencer does not use."""

from collections.abc import Sequence
from pathlib import Path

from foreblock._engine import Block, Store
from foreblock.ledger.importing.chain import Chain
from foreblock.ledger.storage.open_store import begin_chain
from support.chains.dev_chain import DevChain


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
