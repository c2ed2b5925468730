"""Stores that are opened for writing, with the chain they begin with."""

from pathlib import Path
from typing import Final

from foreblock._engine import Store
from foreblock.ledger.genesis import Genesis
from foreblock.ledger.start import begin_chain
from foreblock.ledger.store_watch import check_goes_on, check_in_place
from foreblock.seen_commits import SeenCommit

_UNIT: Final = 1 << 16  # bytes; pages of every system divide it

__all__ = ["Store", "open_to_write"]


def open_to_write(
    path: str,
    genesis: Genesis,
    seen: SeenCommit | None = None,
    *,
    map_size: int | None = None,
    max_readers: int | None = None,
) -> Store:
    """The store in a folder, begun if it is new and nothing was `seen` of it before.

    `map_size` is taken in whole pages.
    Raises `DifferentGenesis` when it holds another chain, `StoreLocked`, and `StoreReplaced`
    when it is not as far as was seen: what was served may not be begun anew.
    """
    seen = seen or SeenCommit()
    check_in_place(path, seen)
    Path(path).mkdir(parents=True, exist_ok=True)
    whole = None if map_size is None else map_size // _UNIT * _UNIT
    store = Store(path, write=True, map_size=whole, max_readers=max_readers)
    try:
        check_goes_on(store, seen)
        begin_chain(store, genesis)
    except BaseException:
        store.close()
        raise
    return store
