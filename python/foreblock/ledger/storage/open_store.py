"""Stores that are opened for writing, with the chain they begin with."""

from pathlib import Path
from typing import Final, NamedTuple

from foreblock._engine import Store
from foreblock.ledger.genesis.genesis_file import Genesis
from foreblock.ledger.storage.retention import Retention
from foreblock.ledger.storage.seen_commits import SeenCommit
from foreblock.ledger.storage.start import begin_chain
from foreblock.ledger.storage.store_watch import check_goes_on, check_in_place

_UNIT: Final = 1 << 16  # bytes; pages of every system divide it


class Room(NamedTuple):
    """What a store takes of the system."""

    map_size: int = 1 << 38  # bytes of addresses to begin with, taken in whole pages
    max_readers: int = 16_384


KEEP_ALL: Final = Retention()
ROOM: Final = Room()

__all__ = ["Store", "open_to_write"]


def open_to_write(
    path: str,
    genesis: Genesis,
    retention: Retention = KEEP_ALL,
    seen: SeenCommit | None = None,
    room: Room = ROOM,
) -> Store:
    """The store in a folder, begun if it is new and nothing was `seen` of it before.

    Raises `DifferentGenesis` when it holds another chain, `StoreLocked`, and `StoreReplaced`
    when it is not as far as was seen: what was served may not be begun anew.
    """
    seen = seen or SeenCommit()
    check_in_place(path, seen)
    Path(path).mkdir(parents=True, exist_ok=True)
    store = Store(
        path,
        write=True,
        map_size=room.map_size // _UNIT * _UNIT,
        max_readers=room.max_readers,
        keep_states=retention.states,
        keep_partials=retention.partials,
        keep_nodes=retention.nodes,
    )
    try:
        check_goes_on(store, seen)
        begin_chain(store, genesis)
    except BaseException:
        store.close()
        raise
    return store
