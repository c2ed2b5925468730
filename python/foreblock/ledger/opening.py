"""Stores that are opened for writing, with the chain they begin with."""

from pathlib import Path
from typing import Final

from foreblock._engine import Store
from foreblock.ledger.genesis import Genesis
from foreblock.ledger.retention import Retention
from foreblock.ledger.start import begin_chain

KEEP_ALL: Final = Retention()

__all__ = ["Store", "open_to_write"]


def open_to_write(path: str, genesis: Genesis, retention: Retention = KEEP_ALL) -> Store:
    """The store in a folder, begun if it is new.

    Raises `DifferentGenesis` when it holds another chain, and `StoreLocked`.
    """
    Path(path).mkdir(parents=True, exist_ok=True)
    store = Store(
        path,
        write=True,
        keep_states=retention.states,
        keep_partials=retention.partials,
        keep_nodes=retention.nodes,
    )
    try:
        begin_chain(store, genesis)
    except BaseException:
        store.close()
        raise
    return store
