"""Put a fetched store in its place: checked, settled, and renamed in one step.

The file is opened as a store, its heads, its log row and its latest block are read, and then it
takes the name of the store's file. Before that moment the old store is there, after it the new
one, whole. Who only reads may stay: it notices within a second that another file has the name.

LMDB chooses between the two meta pages of a file by a number that processes share and that
belongs to the old file, and a copy has one of them. So two commits are made that change no
answer, and both pages are of the chain. The first removes the note, which is the writer's: its
deadline for `pending` counts a clock that is not of this machine.
"""

from enum import Enum, auto
from pathlib import Path
from typing import Final, NamedTuple

from foreblock.errors import StoreError, StoreExists, UnfitSnapshot
from foreblock.ledger.storage.chain_head import read_header
from foreblock.ledger.storage.copy_store import heads_of, sync
from foreblock.ledger.storage.open_store import Store
from foreblock.ledger.storage.rows import CONFIG
from foreblock.ledger.storage.store_watch import DATA_FILE
from foreblock.snapshot.header import SnapshotHeader

DIVERGED: Final = "diverged"  # the folder, inside that of the store, of one that diverged


class Need(Enum):
    """Why a node needs a snapshot, and what becomes of the store that it has."""

    EMPTY = auto()  # it has none
    BEHIND = auto()  # the log no longer has what follows: the old store is removed
    DIVERGED = auto()  # the log has another history: the old store is kept aside


class Taken(NamedTuple):
    """A store that has been put in place."""

    commit: int
    epoch: int
    sequence: int
    length: int  # bytes


def check_place(folder: Path, need: Need) -> None:
    """Raise `StoreExists` where a store is there that would be lost."""
    if need is Need.EMPTY and (folder / DATA_FILE).exists():
        raise StoreExists(str(folder / DATA_FILE))


def settle(part: Path, header: SnapshotHeader, needed: int = 0) -> Taken:
    """Check the store in a folder of its own, and make it this node's.

    Raises `UnfitSnapshot` where it is not what its header says or not of a log.
    """
    try:
        with Store(str(part), write=True) as store:
            taken = _check(store, header, needed)
            store.put_note(taken.commit, b"")
            with store.view() as view:
                config = view.row(CONFIG)
            store.put_rows([] if config is None else [(CONFIG, config)], [])
            _check(store, header, needed)
    except StoreError as why:
        raise UnfitSnapshot(str(why)) from None
    sync(part / DATA_FILE)
    return taken._replace(length=(part / DATA_FILE).stat().st_size)


def _check(store: Store, header: SnapshotHeader, needed: int) -> Taken:
    heads = heads_of(store)
    with store.view() as view:
        row = view.log_row
        if row is None:
            raise UnfitSnapshot("the store is part of no log")
        if heads.store_id != header.store_id or heads.commit < max(header.commit, needed):
            raise UnfitSnapshot("the store is not the one that was announced")
        if heads.commit == header.commit and row.link != header.link:
            raise UnfitSnapshot("the store is at another place of the log than was announced")
        if heads.latest is not None:
            number, block_hash = heads.latest
            view.state(number)
            if read_header(view, number)[0].hash != block_hash:
                raise UnfitSnapshot(f"block {number} is not what the heads say")
    return Taken(heads.commit, row.epoch, row.sequence, 0)


def put_in_place(part: Path, folder: Path, need: Need) -> Path | None:
    """Rename the file over that of the store; gives the folder of the old one if it is kept."""
    data = folder / DATA_FILE
    kept = _keep_aside(data, folder / DIVERGED) if need is Need.DIVERGED else None
    (part / DATA_FILE).replace(data)
    sync(folder)
    return kept


def _keep_aside(data: Path, aside: Path) -> Path | None:
    """Give the old file a second name, in place of one that diverged earlier."""
    if not data.exists():
        return None
    aside.mkdir(exist_ok=True)
    new = aside / f"{DATA_FILE}.part"
    new.unlink(missing_ok=True)
    new.hardlink_to(data)
    new.replace(aside / DATA_FILE)
    sync(aside)
    return aside
