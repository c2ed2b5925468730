"""Import a chain: verify and store every block of a file, until the end or the first invalid one.

Blocks that the store has already are compared by hash and skipped, so an interrupted import
continues at its last commit. Commits come after a number of blocks, bytes or seconds. At the end
logs are indexed, those of an earlier import included, and transactions by address if requested.

`LearnedChain` imports blocks from an anchor on, whose state is fetched as the blocks need it. A
block with missing state is not added and can be retried. Its state root is not computed: the block
is identified by its hash, which the next block or a trusted source names, and its receipts, bloom
and gas are verified.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from foreblock._engine import Block, FetchedState, Header, Heads, State, Store, decode_block
from foreblock.errors import (
    BadBlock,
    BadForkChoice,
    DifferentBlock,
    ImportFailure,
    NoChain,
    StoreMissing,
    Undecodable,
)
from foreblock.ledger.building.commit_builder import CommitBuilder
from foreblock.ledger.genesis.genesis_file import Genesis, read_genesis
from foreblock.ledger.importing.chain_files import (
    ChainItem,
    ForkChoice,
    read_fork_choice,
    read_items,
)
from foreblock.ledger.rules.check import Check
from foreblock.ledger.rules.execution import WorkingState
from foreblock.ledger.rules.profile import ChainProfile
from foreblock.ledger.rules.verification import Verified, check_before_execution, verify
from foreblock.ledger.storage import rows
from foreblock.ledger.storage.chain_head import read_chain_head, stored_profile
from foreblock.ledger.storage.open_store import (
    FIRST_EPOCH,
    Anchor,
    begin_at,
    begin_chain,
    profile_in,
)
from foreblock.ledger.storage.section_index import LogIndexing
from foreblock.ledger.storage.store_watch import DATA_FILE
from foreblock.ledger.tracing.address_indexing import AddressIndexing
from foreblock.primitives import format_data


class Chain:
    """The end of a store's chain: its stored blocks, and the commit that goes beyond them."""

    def __init__(self, store: Store, profile: ChainProfile) -> None:
        self.waiting = 0  # blocks in the commit
        self._store = store
        self._profile = profile
        with store.view() as view:
            self._tip = read_chain_head(view, profile)
        self._begin_commit()

    @property
    def number(self) -> int:
        """The last block, stored or waiting."""
        return self._tip.header.number

    def stored_hash(self, number: int) -> bytes | None:
        """The hash of a block that was stored when the commit was begun."""
        sealed = self._view.sealed(number)
        return None if sealed is None else sealed[0]

    def add(self, block: Block) -> Verified:
        """Verify a block and add it to the commit; raises `BadBlock`."""
        tip, profile = self._tip, self._profile
        rules = tip.rules_of_next(block.header.timestamp, profile)
        task = check_before_execution(block, rules, tip.header, tip.rules, profile, tip.ancestors)
        verified = verify(task, self._state, self._commit.next)
        self._tip = tip.after(block, rules)
        self._commit.append(verified, self._tip.total_difficulty)
        self.waiting += 1
        return verified

    def commit(self) -> None:
        """Store all waiting blocks, or none, and begin the next commit."""
        if not self.waiting:
            return
        self._commit.batch.fold_all()
        self._commit.commit()
        self.waiting = 0
        self._view.close()
        self._begin_commit()

    def close(self) -> None:
        """Close the view of the store; blocks that wait are lost."""
        self._view.close()

    def _begin_commit(self) -> None:
        self._commit = CommitBuilder(self._store)
        self._view = self._store.view()
        overlay = self._view.state(self.number).overlay()
        self._state = WorkingState(overlay, self._store.trie())


# A commit costs a flush to disk whatever it holds; a batch costs memory and, when the
# import is stopped, the work in it. These keep both small beside the execution.
BLOCKS_PER_COMMIT: Final = 64
BYTES_PER_COMMIT: Final = 8 * 2**20
SECONDS_PER_COMMIT: Final = 2.0


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of an import."""

    number: int  # the last block verified or found to be stored
    stored: int  # the last block that a commit has made durable
    blocks: int = 0  # verified in this run
    skipped: int = 0  # found to be stored already
    transactions: int = 0
    gas: int = 0
    position: int = 0  # bytes of the file behind us


Report = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of an import, and the heads of the store after it."""

    progress: Progress
    heads: Heads


def import_files(
    genesis: Path | None,
    chain: Path,
    data: Path,
    fork_choice: Path | None,
    report: Report,
    *,
    address_index: bool = False,
) -> Imported:
    """Import the blocks of a file; raises `ForeblockError` or `OSError`.

    The small files are read before the store is opened, so that a mistake in them leaves no
    folder behind. Without a genesis the store must have a chain, which continues.
    """
    beginning = None if genesis is None else read_genesis(genesis.read_bytes())
    if beginning is None and not (data / DATA_FILE).exists():
        raise StoreMissing(str(data))
    choice = None if fork_choice is None else read_fork_choice(fork_choice.read_bytes())
    with chain.open("rb") as file, Store(str(data), write=True) as store:
        items = read_items(file)
        progress = import_chain(
            store, beginning, items, choice, report, address_index=address_index
        )
        with store.view() as view:
            return Imported(progress, view.heads)


def import_chain(
    store: Store,
    genesis: Genesis | None,
    items: Iterable[ChainItem],
    fork_choice: ForkChoice | None = None,
    report: Report = lambda _: None,
    *,
    address_index: bool = False,
) -> Progress:
    """Extend the stored chain to the end of `items`.

    Raises `ImportFailure` at the first invalid block; all blocks before it are stored.
    """
    run = _Import(Chain(store, _begin(store, genesis)), report)
    try:
        run.add_all(_blocks(items, run.progress.number + 1, fork_choice))
    except ImportFailure:
        run.commit()
        raise
    finally:
        run.chain.close()
    LogIndexing(store).catch_up(run.progress.stored)
    if address_index:
        AddressIndexing(store).catch_up(run.progress.stored)
    if fork_choice is not None:
        _apply_fork_choice(store, fork_choice)
    return run.progress


def _begin(store: Store, genesis: Genesis | None) -> ChainProfile:
    """Begin the chain, or find it; returns its rules."""
    if genesis is not None:
        begin_chain(store, genesis)
        return genesis.profile
    with store.view() as view:
        if view.heads.latest is None:
            raise NoChain(store.path)
        return stored_profile(view)


class _Import:
    """An import in progress: the chain, how far it is, and when to commit."""

    def __init__(self, chain: Chain, report: Report) -> None:
        self.chain = chain
        self.progress = Progress(chain.number, stored=chain.number)
        self._report = report
        self._begin_batch()

    def _begin_batch(self) -> None:
        self._bytes = 0
        self._begun = time.monotonic()

    def add_all(self, blocks: Iterable[tuple[Block, ChainItem]]) -> None:
        """Add the blocks that are not stored yet, and commit them."""
        for block, item in blocks:
            if block.header.number <= self.progress.stored:
                self._skip(block, item)
            else:
                self._add(block, item)
        self.commit()

    def commit(self) -> None:
        """Commit the waiting blocks and begin a new batch."""
        self.chain.commit()
        self._begin_batch()
        self._advance(replace(self.progress, stored=self.chain.number))

    def _skip(self, block: Block, item: ChainItem) -> None:
        number = block.header.number
        stored = self.chain.stored_hash(number)
        if stored is None or stored != block.hash:
            raise DifferentBlock(number, stored or b"", block.hash)
        before = self.progress
        self._advance(replace(before, skipped=before.skipped + 1, position=item.end))

    def _add(self, block: Block, item: ChainItem) -> None:
        verified = self.chain.add(block)
        before = self.progress
        self._advance(
            replace(
                before,
                number=self.chain.number,
                blocks=before.blocks + 1,
                transactions=before.transactions + len(verified.execution.hashes),
                gas=before.gas + block.header.gas_used,
                position=item.end,
            )
        )
        self._bytes += len(item.data)
        if self._is_due():
            self.commit()

    def _is_due(self) -> bool:
        return (
            self.chain.waiting >= BLOCKS_PER_COMMIT
            or self._bytes >= BYTES_PER_COMMIT
            or time.monotonic() - self._begun >= SECONDS_PER_COMMIT
        )

    def _advance(self, progress: Progress) -> None:
        self.progress = progress
        self._report(progress)


def _blocks(
    items: Iterable[ChainItem], number: int, fork_choice: ForkChoice | None
) -> Iterator[tuple[Block, ChainItem]]:
    """The blocks of the file with their bytes, each the successor of the one before.

    The first may be any that the store has or, if it has none of them, `number`.
    """
    first = True
    try:
        for item in items:
            block, _ = decode_block(item.data, 0)
            if not first:
                Check(number).equal("number", number, block.header.number)
            if item.last and fork_choice is not None:
                _check_head(block, fork_choice)
            yield block, item
            first, number = False, block.header.number + 1
    except Undecodable as broken:
        raise BadBlock(number, "encoding", "a block in canonical RLP", str(broken)) from broken


def _check_head(block: Block, fork_choice: ForkChoice) -> None:
    """The last block of the file must be the head that the fork choice names.

    This comes before the block is stored: some fields of a header are bound by nothing
    but its hash, which only the next block or the fork choice knows.
    """
    Check(block.header.number).equal("hash of the last block", fork_choice.head, block.hash)


def _apply_fork_choice(store: Store, fork_choice: ForkChoice) -> None:
    """Set the safe and the finalized block, once the head is that of the fork choice."""
    with store.view() as view:
        assert view.heads.latest is not None, "the genesis is there"
        number, block_hash = view.heads.latest
        if block_hash != fork_choice.head:
            found = f"the chain ends at block {number}, {format_data(block_hash)}"
            raise BadForkChoice("headBlockHash", f"{format_data(fork_choice.head)}, but {found}")
        state = view.state(number)
        safe = _find(state, "safeBlockHash", fork_choice.safe)
        finalized = _find(state, "finalizedBlockHash", fork_choice.finalized)
    if safe is not None and finalized is not None and finalized > safe:
        raise BadForkChoice("finalizedBlockHash", f"block {finalized} is above safe block {safe}")
    batch = store.batch()
    if safe is not None:
        batch.safe(safe)
    if finalized is not None:
        batch.finalized(finalized)
    store.commit(batch)


def _find(state: State, where: str, block_hash: bytes | None) -> int | None:
    if block_hash is None:
        return None
    entry = state.index(rows.block_index_key(block_hash))
    if entry is None:
        raise BadForkChoice(where, f"no block of the chain has the hash {format_data(block_hash)}")
    return rows.decode_block_entry(entry)


class LearnedChain:
    """The chain in an empty store, begun at an anchor, with the values in `learned`."""

    def __init__(self, store: Store, anchor: Header, config: bytes) -> None:
        begin_at(store, Anchor(anchor), config)
        self.learned = FetchedState(FIRST_EPOCH)
        store.set_fallback_state(self.learned)
        self._store = store
        self._profile = profile_in(config)

    def add(self, block: Block) -> None:
        """Execute a block and store it. Raises `StateMissing`, `BadBlock`."""
        profile = self._profile
        with self._store.view() as view, CommitBuilder(self._store) as commit:
            head = read_chain_head(view, profile)
            rules = head.rules_of_next(block.header.timestamp, profile)
            task = check_before_execution(
                block, rules, head.header, head.rules, profile, head.ancestors
            )
            state = WorkingState(view.state(head.header.number).overlay(), None)
            verified = verify(task, state, commit.next)
            commit.batch.learn(self.learned)
            commit.append(verified, head.after(block, rules).total_difficulty)
            commit.commit()
