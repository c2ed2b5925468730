"""Stores that are opened for writing, with the chain they begin with."""

from pathlib import Path

from foreblock._engine import Store
from foreblock.ledger.genesis import Genesis
from foreblock.ledger.start import begin_chain

__all__ = ["Store", "open_to_write"]


def open_to_write(path: str, genesis: Genesis) -> Store:
    """The store in a folder, begun if it is new.

    Raises `DifferentGenesis` when it holds another chain, and `StoreLocked`.
    """
    Path(path).mkdir(parents=True, exist_ok=True)
    store = Store(path, write=True)
    try:
        begin_chain(store, genesis)
    except BaseException:
        store.close()
        raise
    return store
