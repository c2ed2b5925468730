"""Open a store for writing, and write its block 0.

A new store gets the genesis as its first commit; any other store must have begun with the
same genesis. A store that follows a log gets all of its commits from there. Stores are opened
for reading in `reading.view`.
"""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final, NamedTuple

from foreblock._engine import Block, Overlay, Store, View
from foreblock.errors import DifferentGenesis
from foreblock.ledger.genesis.genesis_file import Genesis
from foreblock.ledger.rules.profile import ChainProfile
from foreblock.ledger.rules.verification import MESSAGE_PASSER
from foreblock.ledger.rules.working_state import WorkingState
from foreblock.ledger.storage import rows
from foreblock.ledger.storage.chain_head import (
    GENESIS,
    read_first_block,
    read_header,
    stored_profile,
)
from foreblock.ledger.storage.commits import TO_STORE, Commits
from foreblock.ledger.storage.store_watch import SeenCommit, check_goes_on, check_in_place
from foreblock.primitives import format_data

__all__ = [
    "Retention",
    "Store",
    "StoreLimits",
    "begin_chain",
    "check_same_profile",
    "open_to_follow",
    "open_to_write",
]

_UNIT: Final = 1 << 16  # bytes; a multiple of the page size of every system


@dataclass(frozen=True, slots=True)
class Retention:
    """The past that a store keeps, in blocks behind the latest; an import keeps all states.

    Blocks, transactions and receipts stay. Pruned are states, the flashblocks that blocks were
    made of, and trie nodes, which only reorganisations need.
    """

    states: int | None = None
    partials: int = 64
    nodes: int = 128


class StoreLimits(NamedTuple):
    """The share of system resources that a store may use."""

    map_size: int = 1 << 38  # bytes of address space at first, rounded down to whole pages
    max_readers: int = 16_384
    sync: bool = True  # commits wait for the disk; without it a machine that fails loses the store


KEEP_ALL: Final = Retention()
DEFAULT_LIMITS: Final = StoreLimits()


def open_to_write(
    path: str,
    genesis: Genesis,
    retention: Retention = KEEP_ALL,
    seen: SeenCommit | None = None,
    limits: StoreLimits = DEFAULT_LIMITS,
    commits: Commits = TO_STORE,
) -> Store:
    """The store in a folder; a new one gets block 0, unless the network was `seen` before.

    Raises `DifferentGenesis` when it holds another chain, `StoreLocked`, and `StoreReplaced`
    when it is behind what was seen: a chain that was served may not start again from block 0.
    """
    store = open_to_follow(path, retention, seen, limits)
    try:
        begin_chain(store, genesis, commits)
    except BaseException:
        store.close()
        raise
    return store


def open_to_follow(
    path: str,
    retention: Retention = KEEP_ALL,
    seen: SeenCommit | None = None,
    limits: StoreLimits = DEFAULT_LIMITS,
) -> Store:
    """The same without a genesis: a new store is empty, and its block 0 comes from a log."""
    seen = seen or SeenCommit()
    check_in_place(path, seen)
    Path(path).mkdir(parents=True, exist_ok=True)
    store = Store(
        path,
        write=True,
        map_size=limits.map_size // _UNIT * _UNIT,
        max_readers=limits.max_readers,
        keep_states=retention.states,
        keep_partials=retention.partials,
        keep_nodes=retention.nodes,
        sync=limits.sync,
    )
    try:
        check_goes_on(store, seen)
    except BaseException:
        store.close()
        raise
    return store


def begin_chain(store: Store, genesis: Genesis, commits: Commits = TO_STORE) -> None:
    """Write block 0 into an empty store; in any other, check that it is this one."""
    with store.view() as view:
        if view.heads.latest is not None:
            _check_same(view, genesis)
            return
    _write(store, genesis, commits)


def _write(store: Store, genesis: Genesis, commits: Commits) -> None:
    batch = store.batch()
    scratch = WorkingState(Overlay.empty(), store.trie(), batch.next)
    for address, account in genesis.accounts.items():
        scratch.overlay.set(
            address,
            balance=account.balance,
            nonce=account.nonce,
            code=account.code,
            state=account.storage,
        )
    root = scratch.root()
    header = genesis.seal(root, scratch.storage_root(MESSAGE_PASSER))
    block = Block(header, withdrawals=None if header.withdrawals_root is None else ())
    changes, nodes = scratch.finish()
    batch.append(0, block.hash, changes, nodes, rows.index_entries(block, ()))
    for key, value in rows.block_rows(block, header.difficulty, (), ()):
        batch.put(key, value)
    batch.put(rows.CONFIG, genesis.config)
    batch.put(rows.ACCOUNTS, genesis.digest_of_accounts())
    batch.settle()
    commits.commit(store, batch)


def _check_same(view: View, genesis: Genesis) -> None:
    """Compare with a genesis without building its state again.

    Of a store that was begun with a later state, only the configuration can be compared.
    """
    if read_first_block(view) == GENESIS:
        stored, _ = read_header(view, 0)
        found = genesis.seal(stored.state_root, stored.withdrawals_root or b"")
        _compare("header", stored.hash, found.hash)
        _compare("accounts", view.row(rows.ACCOUNTS) or b"", genesis.digest_of_accounts())
    check_same_profile(view, genesis.profile)


def check_same_profile(view: View, now: ChainProfile) -> None:
    """Raise `DifferentGenesis` where a store was begun with other rules."""
    before = stored_profile(view)
    for field in fields(ChainProfile):
        _compare(
            field.name.replace("_", " "), getattr(before, field.name), getattr(now, field.name)
        )


def _compare(what: str, stored: object, found: object) -> None:
    if stored != found:
        raise DifferentGenesis(what, _show(stored), _show(found))


def _show(fact: object) -> str:
    return format_data(fact) if isinstance(fact, bytes) else str(fact)
