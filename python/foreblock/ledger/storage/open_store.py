"""Open a store for writing, and begin its chain: at a genesis, or at an anchor of a running chain.

A new store gets the genesis as its first commit; any other store must have begun with the same
genesis. A store that follows a log gets all of its commits from there. Stores are opened for
reading in `reading.view`.

An anchor is a block of a running chain whose state is not known yet. It is stored with its body,
or only with its header if no upstream had more; no earlier block is in the store. Such a store can
begin again at another anchor, in a new epoch: then everything but code is out of reach. The
configuration of the chain stays that of the first anchor.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import fields

from foreblock._engine import (
    Batch,
    Block,
    FetchedState,
    Header,
    MissingKeys,
    Overlay,
    Store,
    View,
    decode_transactions,
    keccak256,
)
from foreblock.errors import BadGenesis, DifferentGenesis
from foreblock.ledger.genesis.config import read_profile
from foreblock.ledger.genesis.genesis_file import Genesis
from foreblock.ledger.genesis.json_value import JsonValue
from foreblock.ledger.rules.execution import WorkingState
from foreblock.ledger.rules.profile import ChainProfile, RulesEnd
from foreblock.ledger.rules.verification import MESSAGE_PASSER
from foreblock.ledger.storage import rows
from foreblock.ledger.storage.chain_head import (
    GENESIS,
    FirstBlock,
    body_keys,
    header_entries,
    header_rows,
    portions_of_sealed,
    read_first_block,
    read_header,
    read_row,
    stored_profile,
)
from foreblock.ledger.storage.commits import TO_STORE, Commits
from foreblock.ledger.storage.follow_rows import put_rules_end
from foreblock.ledger.storage.store_watch import SeenCommit, check_goes_on, check_in_place
from foreblock.primitives import format_data
from foreblock.types import Withdrawal

__all__ = [
    "Anchor",
    "FetchedState",
    "LocalBase",
    "Retention",
    "Store",
    "StoreLimits",
    "View",
    "begin_at",
    "begin_chain",
    "check_same_profile",
    "is_empty",
    "latest_as_anchor",
    "open_to_follow",
    "open_to_write",
    "profile_in",
    "restart_at_anchor",
    "total_difficulty_at",
    "unknown_in",
]
_UNIT: Final = 1 << 16  # bytes; a multiple of the page size of every system
FIRST_EPOCH: Final = 1


class Retention(Struct, frozen=True):
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
    """Open a store without a genesis: a new one is empty, and its block 0 comes from a log."""
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
    for key, value in rows.block_rows(block, header.difficulty, b"", ()):
        batch.put(key, value)
    batch.put(rows.CONFIG, genesis.config)
    batch.put(rows.ACCOUNTS, genesis.digest_of_accounts())
    batch.fold_all()
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


def profile_in(config: bytes) -> ChainProfile:
    """The rules that a configuration, as in a genesis, describes. Raises `BadGenesis`."""
    return read_profile(JsonValue.parse(config, BadGenesis))


class Anchor(Struct, frozen=True):
    """A block to begin at; without a body if no upstream has it."""

    header: Header
    block: Block | None = None
    receipts: tuple[bytes, ...] = ()  # as in their trie

    def entries(self) -> dict[bytes, bytes]:
        if self.block is None:
            return header_entries(self.header)
        hashes = [keccak256(raw) for raw in self.block.transactions]
        return rows.index_entries(self.block, hashes)

    def rows(self, total_difficulty: int) -> Iterator[tuple[bytes, bytes]]:
        if self.block is None:
            yield from header_rows(self.header, total_difficulty)
            return
        senders = b"".join(each.sender for each in decode_transactions(self.block.transactions))
        yield from rows.block_rows(self.block, total_difficulty, senders, self.receipts)
        yield FirstBlock(self.header.number, has_body=True).row


class LocalBase(NamedTuple):
    """The local state of a mirror at its anchor, and the rows stored with it."""

    learned: FetchedState  # of the epoch that begins
    rows: Sequence[tuple[bytes, bytes]]

    def put(self, batch: Batch) -> None:
        """Add it to the commit of the anchor."""
        batch.learn(self.learned)
        for key, value in self.rows:
            batch.put(key, value)


def begin_at(store: Store, anchor: Anchor, config: bytes, local: LocalBase | None = None) -> None:
    """Begin an empty store at this block."""
    header, batch = anchor.header, store.batch()
    batch.begin_at(header.number, header.hash, header.state_root, FIRST_EPOCH, anchor.entries())
    for key, value in anchor.rows(total_difficulty_at(header, profile_in(config))):
        batch.put(key, value)
    batch.put(rows.CONFIG, config)
    if local is not None:
        local.put(batch)
    store.commit(batch)


def restart_at_anchor(
    store: Store, anchor: Anchor, end: RulesEnd | None = None, local: LocalBase | None = None
) -> None:
    """Begin again at this block, in the next epoch.

    `end` says that its rules are not known here, nor those of the blocks after it.
    """
    with store.view() as view:
        epoch = view.heads.base.epoch + 1
        profile = profile_in(view.row(rows.CONFIG) or b"")
    header, batch = anchor.header, store.batch()
    batch.pending(None)
    batch.rebase(header.number, header.hash, header.state_root, epoch, anchor.entries())
    for key, value in anchor.rows(total_difficulty_at(header, profile)):
        batch.put(key, value)
    put_rules_end(batch, end)
    if local is not None:
        local.put(batch)
    store.commit(batch)


def latest_as_anchor(view: View) -> Anchor:
    """The latest block of a store, with its body if that is stored."""
    assert view.heads.latest is not None, "a store begins with its anchor"
    number = view.heads.latest[0]
    header, _ = read_header(view, number)
    if number < read_first_block(view).whole:
        return Anchor(header)
    partials = portions_of_sealed(view, number)
    transactions: list[bytes] = []
    receipts: list[bytes] = []
    # As in `reading.stored_block`: what is made of flashblocks is of an OP chain.
    uncles: tuple[Header, ...] = ()
    withdrawals: tuple[Withdrawal, ...] | None = None if header.withdrawals_root is None else ()
    for body_key, receipts_key in body_keys(number, partials):
        row = read_row(view, body_key, number)
        if partials:
            transactions += rows.decode_items(row)
        else:
            body = rows.decode_body(row)
            transactions += body.transactions
            uncles, withdrawals = body.uncles, body.withdrawals
        receipts += rows.decode_items(read_row(view, receipts_key, number))
    return Anchor(header, Block(header, transactions, uncles, withdrawals), tuple(receipts))


def total_difficulty_at(header: Header, profile: ChainProfile) -> int:
    """The total difficulty assumed for an anchor, and for the blocks after it.

    It shows on which side of the merge a block is; before it, the sum is not known.
    """
    terminal = profile.terminal_total_difficulty or 0
    return header.difficulty or terminal


def unknown_in(
    store: Store, accounts: Iterable[bytes], slots: Mapping[bytes, Iterable[int]]
) -> MissingKeys:
    """The keys that neither the store nor the values fetched beside it know."""
    with store.view() as view:
        assert view.heads.latest is not None, "a store begins with its anchor"
        wanted = {address: list(keys) for address, keys in slots.items()}
        return view.state(view.heads.latest[0]).missing(list(accounts), wanted)


def is_empty(view: View) -> bool:
    return view.heads.latest is None
