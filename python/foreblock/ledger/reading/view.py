"""One snapshot per request, and every name of a block resolved on it.

A `Ledger` is a store opened for reading; a `LedgerView` is one snapshot of it, taken for one
request or one batch and closed before the response is sent. The heads row is turned into a
`Snapshot` once per commit, which all views of that commit share.

The clock is read once, when a view is taken, and only if there is a pending block: after its
deadline the view has none, and `pending` means `latest`. `storage.partials` finds partial blocks
and decides which may be shown; `Visibility` decides which are shown without being named.
"""

from collections.abc import Callable, Hashable
from typing import Final, Literal, NamedTuple

from msgspec import Struct

from foreblock._engine import (
    BlockTemplate,
    Env,
    FastPath,
    FetchedState,
    State,
    StateBase,
    Store,
    StoredBlock,
    View,
)
from foreblock.clock import Clock, SystemClock, boot_id
from foreblock.errors import (
    BeforeAnchor,
    HeaderOnly,
    NoChain,
    NoSuchHead,
    NotCanonical,
    StoreReplaced,
    UnknownBlock,
    UnknownBlockHash,
    UnknownRules,
)
from foreblock.ledger.reading.blocks import (
    PRECONFIRMED,
    BlockId,
    ByHash,
    ByIndex,
    KnownBlocks,
    PreconfirmedBlock,
    ReadableBlock,
    SealedBlock,
    Snapshot,
    Visibility,
    expired,
    make_snapshot,
    read_through,
)
from foreblock.ledger.reading.fast_path import (
    ANSWERED_TAGS,
    FastPathBounds,
    forget_snapshot,
    make_fast_path,
    set_snapshot,
)
from foreblock.ledger.rules.profile import ChainProfile, RulesEnd
from foreblock.ledger.storage import partial_rows, rows
from foreblock.ledger.storage.chain_head import (
    FirstBlock,
    portions_of_sealed,
    read_first_block,
    read_row,
    stored_profile,
)
from foreblock.ledger.storage.dev_rows import DevState, held_by_snapshots, read_dev_state
from foreblock.ledger.storage.follow_rows import read_rules_end, read_trust
from foreblock.ledger.storage.partials import (
    check_reachable,
    decode_freshness,
    partial_at,
    pending_partial,
)
from foreblock.ledger.storage.section_index import ADDRESSES, read_indexed
from foreblock.ledger.storage.store_watch import SeenCommit, StoreWatch, check_goes_on
from foreblock.metrics.meters import RequestMeter
from foreblock.scheduling.thresholds import THRESHOLDS


class Ledger:
    """A store and the chain it holds, for reading."""

    def __init__(
        self,
        store: Store,
        *,
        announce: bool = True,
        clock: Clock | None = None,
        followed: bool = False,
    ) -> None:
        """`announce` names the snapshot in a header line of each response. Raises `NoChain`."""
        self._store: Final = store
        self.followed: Final = followed
        self._announce: Final = announce
        self.now: Final = (clock or SystemClock()).monotonic_ns
        self._boot_id: Final = boot_id()
        with store.view() as view:
            if view.heads.latest is None:
                raise NoChain(store.path)
            self.profile: Final = stored_profile(view)
            self.blocks: Final = KnownBlocks(self.profile)
            self.snapshot = self._read_snapshot(view)
        self.fast_path: FastPath | None = None
        self._is_held = False  # the fast path
        self._flush: Callable[[], None] | None = None
        self._observer: Callable[[str], None] | None = None  # receives the methods that it serves

    @classmethod
    def open(
        cls,
        path: str,
        *,
        announce: bool = True,
        seen: SeenCommit | None = None,
        max_readers: int | None = None,
        followed: bool = False,
    ) -> "Ledger":
        """The ledger in a folder; raises `StoreMissing`, `NoChain`.

        Raises `StoreReplaced` if it is behind the `seen` commit, or another chain.
        """
        store = Store(path, max_readers=max_readers)
        try:
            check_goes_on(store, seen or SeenCommit())
            return cls(store, announce=announce, followed=followed)
        except BaseException:
            store.close()
            raise

    def view(
        self,
        client: Hashable | None = None,
        visibility: Visibility = PRECONFIRMED,
        *,
        flushes: bool = True,
    ) -> "LedgerView":
        """The snapshot of the last commit, for `client`.

        With `flushes`, changes that were made in this process are committed first.
        """
        if self._flush is not None and flushes:
            self._flush()
        view = self._store.view()
        snapshot = self.snapshot
        # Views of one transaction share their heads, so another object is another commit.
        if view.heads is not snapshot.heads:
            snapshot = self._see(self._read_snapshot(view))
        if snapshot.pending is not None and self.now() >= snapshot.deadline_ns:
            snapshot = self._see(expired(snapshot))
        return LedgerView(
            view,
            snapshot.latest,
            snapshot.pending,
            snapshot.header_line,
            self,
            client,
            visibility,
            snapshot.rules_end,
        )

    def set_fallback_state(self, learned: FetchedState) -> None:
        """Let later views read values from here that the store lacks."""
        self._store.set_fallback_state(learned)

    @property
    def space(self) -> "StoreSpace":
        """The size of the store; raises `StoreError`."""
        store = self._store
        return StoreSpace(store.file_bytes, store.used_bytes, *store.reader_slots)

    def open_fast_path(self, bounds: FastPathBounds, meter: RequestMeter | None = None) -> FastPath:
        """The fast path on snapshots of this ledger (`fast_path`); `meter` counts its responses."""
        self.fast_path = make_fast_path(self._store, bounds, meter)
        self.observe_fast_path(self._observer)
        return self.fast_path

    def flush_with(self, flush: Callable[[], None]) -> None:
        """Call this before each view: it commits what commands have changed in this process."""
        self._flush = flush

    def hold_fast_path(self, held: bool) -> None:  # noqa: FBT001, a callback
        """Disable the fast path, or enable it again."""
        self._is_held = held
        self._see(self.snapshot)

    def observe_fast_path(self, tell: Callable[[str], None] | None) -> None:
        """Call this from now on with each method that the fast path answers.

        Calls then take the long path, which reports more of them.
        """
        self._observer = tell
        if self.fast_path is not None:
            self.fast_path.tell(tell)
        self._see(self.snapshot)

    @property
    def dev_state(self) -> DevState | None:
        """The dev settings of the last commit; None if no sequencer here has built the chain."""
        if self._flush is not None:
            self._flush()
        with self._store.view() as view:
            return read_dev_state(view)

    def forget_old_view(self) -> None:
        """Release the transaction kept for the next view, if there is a newer commit."""
        self._store.drop_stale_snapshot()

    def watch(self, seen: SeenCommit) -> Callable[[], None]:
        """A check that raises `StoreReplaced` when the store is no longer in its folder.

        It closes the store then: requests are not answered from a removed file.
        """
        watch = StoreWatch(self._store, seen, SystemClock())

        def check() -> None:
            try:
                watch.check()
            except StoreReplaced:
                self.close()
                raise

        return check

    def close(self) -> None:
        self._store.close()

    def _see(self, snapshot: Snapshot) -> Snapshot:
        """Make this the snapshot of the next views."""
        self.snapshot = snapshot
        if self.fast_path is not None:
            if self._is_held or snapshot.rules_end is not None:
                forget_snapshot(self.fast_path, snapshot)
            else:
                calls = self._observer is None
                set_snapshot(self.fast_path, snapshot, self.now(), calls=calls)
        return snapshot

    def _read_snapshot(self, view: View) -> Snapshot:
        heads = view.heads
        assert heads.latest is not None, "a chain never loses its first block"
        latest = self.blocks.sealed(view, *heads.latest)
        number, freshness = pending_partial(view), decode_freshness(heads.note)
        pending, deadline_ns = None, 0
        if number is not None and (edited := read_through(view, number, self.blocks)) is not None:
            latest = latest.read_through(edited)
        if number is not None and freshness is not None:
            pending = self.blocks.partial(view, number)
            if freshness.empty_tail is not None and freshness.empty_tail.partial == number:
                pending = pending.going_on(freshness.empty_tail)
            deadline_ns = freshness.deadline_ns(self._boot_id)
        trust = "" if heads.base.is_complete else read_trust(view)
        rules_end = read_rules_end(view)
        if rules_end is not None:
            pending = None
        return make_snapshot(
            heads,
            latest,
            pending,
            deadline_ns,
            announce=self._announce,
            trust=trust,
            rules_end=rules_end,
        )


class StoreSpace(NamedTuple):
    """The room that a store takes."""

    file_bytes: int
    used_bytes: int  # of the file; the rest is free pages
    reader_slots_used: int  # so far
    reader_slots: int


class MaintenanceBacklog(NamedTuple):
    """The oldest state, and the backlog of maintenance."""

    earliest: int  # the oldest block whose state can be read
    to_fold: int  # blocks
    to_clear: int  # items of the past that are not cleared yet
    to_index: int  # blocks whose logs are not indexed yet
    # Of the transactions by address; None if that index is not kept.
    addresses_to_index: int | None = None


class LedgerView(Struct, frozen=True, gc=False):
    """One snapshot, for one request or one batch. A Struct, as every request makes one."""

    _view: View
    latest: SealedBlock
    pending: PreconfirmedBlock | None  # none past its deadline
    headers: bytes
    _ledger: Ledger
    client: Hashable | None = None  # that asks, where it is known
    visibility: Visibility = PRECONFIRMED
    rules_end: RulesEnd | None = None  # the block at which the known rules end

    def close(self) -> None:
        """Release the snapshot; nothing can be read after this."""
        self._view.close()

    def renewed(self, visibility: Visibility | None = None) -> "LedgerView":
        """A view of the last commit by now; it has to be closed as well."""
        return self._ledger.view(self.client, visibility or self.visibility)

    @property
    def shown(self) -> ReadableBlock:
        """The newest block that is shown to requests that do not name it."""
        if self.pending is None or not self.visibility.preconfirmed:
            return self.latest
        return self.pending

    @property
    def profile(self) -> ChainProfile:
        return self._ledger.profile

    @property
    def base(self) -> StateBase:
        """The state below everything that the store holds."""
        return self._view.heads.base

    @property
    def trust(self) -> str:
        """The trust in the known state of a partial base; empty if the base is complete."""
        return "" if self.base.is_complete else read_trust(self._view)

    @property
    def followed(self) -> bool:
        """True if the chain is followed over a partial base."""
        return self._ledger.followed

    @property
    def dev_state(self) -> DevState | None:
        """How a development chain is mined, its time and its settings; None for other chains."""
        return read_dev_state(self._view)

    def dev_snapshots(self, most: int) -> dict[int, int]:
        """The oldest snapshots of a development chain by id, each with its latest block."""
        return {each: held.latest for each, held in held_by_snapshots(self._view, most).items()}

    @property
    def behind(self) -> MaintenanceBacklog:
        """The backlog of the store."""
        heads = self._view.heads
        to_fold = self.latest.number - heads.folded
        stop = self.latest.number + 1
        to_index, addresses = stop - read_indexed(self._view).end, None
        if ADDRESSES.exists(self._view):
            addresses = stop - ADDRESSES.read(self._view).end
        return MaintenanceBacklog(
            heads.earliest, to_fold, self._view.garbage_len, to_index, addresses
        )

    def remember_block(self, tag: str, text: bytes, *, full: bool) -> None:
        """Give the fast path the text of the block at a tag, for this snapshot."""
        fast_path = self._ledger.fast_path
        if fast_path is None or tag not in ANSWERED_TAGS:
            return
        if len(text) <= THRESHOLDS.fast_text_bytes:
            fast_path.cache_block(self._view.heads, self._pending_partial, tag, full, text)

    def remember_call(self, tag: str, env: Env, to: bytes, data: bytes) -> None:
        """Allow the fast path to run calls of this kind at a tag: one was short."""
        fast_path = self._ledger.fast_path
        if fast_path is not None and tag in ANSWERED_TAGS:
            fast_path.allow_call(self._view.heads, self._pending_partial, tag, env, to, data)

    def remember_simulations(self, tag: str, template: BlockTemplate) -> None:
        """Allow the fast path to simulate blocks that begin with this one on the block of a tag."""
        fast_path = self._ledger.fast_path
        if fast_path is not None and tag in ANSWERED_TAGS:
            fast_path.allow_simulations(self._view.heads, self._pending_partial, tag, template)

    def remember_receipts(self, block: StoredBlock) -> None:
        """Allow the fast path to serve receipts of a block, if it is sealed."""
        if self._ledger.fast_path is not None:
            self._ledger.fast_path.cache_receipts(self._view, block)

    def remember_log_limits(self, blocks: int, results: int) -> None:
        """Allow the fast path to search for logs within these limits; 0 `blocks` is no limit."""
        fast_path = self._ledger.fast_path
        if fast_path is not None:
            first, indexed = self.first_block.whole, read_indexed(self._view)
            fast_path.allow_logs(
                self._view.heads,
                self._pending_partial,
                indexed.runs(first, self.latest.number + 1),
                first,
                indexed.end,
                logs=results,
                distance=blocks or None,
            )

    @property
    def _pending_partial(self) -> int | None:
        return None if self.pending is None else self.pending.partial

    @property
    def commit(self) -> int:
        return self._view.heads.commit

    @property
    def unused(self) -> int:
        """The first number that the store has not used in this view."""
        return self._view.heads.commit + 1

    def resolve(self, block: BlockId) -> ReadableBlock:
        """The block that a name means in this snapshot; raises `NotHere` with the reason."""
        if block == "latest":  # nearly every request
            return self.latest
        if isinstance(block, int):
            is_unsealed = self.visibility.by_number and block > self.latest.number
            return self.unsealed(block) if is_unsealed else self._by_number(block)
        match block:
            case "pending":
                if self.rules_end is not None:
                    raise UnknownRules(self.rules_end.block)
                return self.pending or self.latest
            case "safe" | "finalized" | "earliest":
                return self._by_head(block)
            case ByHash(block_hash, require_canonical):
                return self._by_hash(block_hash, require_canonical=require_canonical)
            case ByIndex(number, index):
                return self._partial(partial_at(self._view, number, index))

    def unsealed(self, number: int) -> PreconfirmedBlock:
        """The unsealed block of this height: `pending`, or one that it builds on.

        There are several if flashblocks of the next block arrived before the last one was sealed.
        Raises `UnknownBlock`.
        """
        block = self.pending
        while block is not None and block.number > number:
            block = self.below(block)
        if block is None or block.number != number:
            raise UnknownBlock(number)
        return block

    def below(self, block: PreconfirmedBlock) -> PreconfirmedBlock | None:
        """The partial block that this one's block was begun on; None if that was sealed."""
        partial = self._view.partial(block.partial)
        below = None if partial is None else partial.stacked_on
        return None if below is None else self._ledger.blocks.partial(self._view, below)

    def flashblock(self, partial: int) -> PreconfirmedBlock:
        """The block as of a partial, which may have been dropped; raises `UnknownPartial`."""
        return self._ledger.blocks.partial(self._view, partial)

    def state(self, block: ReadableBlock) -> State:
        """The state after a block of this view; `PrunedState` when it is not kept."""
        if not isinstance(block, SealedBlock):
            return self._view.state_of_partial(block.partial)
        if block.read_at is not None:
            return self._view.state_of_partial(block.read_at)
        return self._view.state(block.number)

    def state_of_header(self, block: ReadableBlock) -> State:
        """The state that the header of a block commits to: without state edits after it."""
        if isinstance(block, SealedBlock):
            return self._view.state(block.number)
        return self._view.state_of_partial(block.partial)

    @property
    def is_fork(self) -> bool:
        """True if the chain is built here on a block of another one."""
        return not self.base.is_complete and self.dev_state is not None

    def root_below(self, state: State) -> bytes | None:
        """The state root of the sealed block that a state is of, or stands on.

        None if it is not needed, above a complete base: all nodes of the trie are there.
        """
        if self.base.is_complete:
            return None
        return self.resolve(state.sealed_block).header.state_root

    def check_rules(self, number: int) -> None:
        """Raise `UnknownRules` where a block of this number cannot be executed.

        Whoever runs something in a block of this view, or after one, asks here first.
        """
        if self.rules_end is not None and number >= self.rules_end.block:
            raise UnknownRules(self.rules_end.block)

    def partials_of(self, block: ReadableBlock) -> tuple[int, ...]:
        """The partials that hold the body of a block; empty if it has a row of its own.

        Raises `HeaderOnly`: every reader of a body calls this first.
        """
        if isinstance(block, PreconfirmedBlock):
            return block.partials
        if not block.has_body:
            raise HeaderOnly(block.number, block.number + 1)
        return portions_of_sealed(self._view, block.number)

    @property
    def first_block(self) -> FirstBlock:
        """Where the chain of this store begins."""
        return read_first_block(self._view)

    @property
    def stored(self) -> View:
        """The snapshot of the store, to read parts of rows."""
        return self._view

    def row(self, key: bytes, block: ReadableBlock) -> bytes:
        """A row that a block of this view must have."""
        return read_row(self._view, key, block.number)

    def _by_number(self, number: int) -> SealedBlock:
        block_hash = self._hash(number)
        if block_hash is None:
            if number < self.base.number:
                raise BeforeAnchor(number, self.base.number)
            raise UnknownBlock(number)
        return self._ledger.blocks.sealed(self._view, number, block_hash)

    def _by_head(self, tag: Literal["safe", "finalized", "earliest"]) -> SealedBlock:
        heads = self._view.heads
        if tag == "earliest":
            return self._by_number(heads.earliest)
        head = heads.safe if tag == "safe" else heads.finalized
        if head is None:
            raise NoSuchHead(tag)
        return self._ledger.blocks.sealed(self._view, *head)

    def _by_hash(self, block_hash: bytes, *, require_canonical: bool) -> ReadableBlock:
        """Where a sealed and a partial block share a hash, the sealed one wins."""
        hint = self._view.row(partial_rows.by_hash_key(block_hash))
        if hint is not None:
            number, partial = partial_rows.decode_by_hash(hint)
            if self._hash(number) == block_hash:
                return self._ledger.blocks.sealed(self._view, number, block_hash)
            if partial and self.visibility.preconfirmed:
                found = self._partial(partial)
                if require_canonical:
                    raise NotCanonical(block_hash)
                return found
        known = self.state(self.latest).index(rows.block_index_key(block_hash))
        if known is None:
            raise UnknownBlockHash(block_hash)
        return self._ledger.blocks.sealed(self._view, rows.decode_block_entry(known), block_hash)

    def _partial(self, number: int) -> PreconfirmedBlock:
        check_reachable(self._view, number)
        return self._ledger.blocks.partial(self._view, number)

    def _hash(self, number: int) -> bytes | None:
        sealed = self._view.sealed(number) if number < 1 << 64 else None
        return None if sealed is None else sealed[0]
