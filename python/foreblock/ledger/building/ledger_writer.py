"""All that writes the store of one network whose blocks come index by index.

One thread calls it. A commit holds a whole step: an index with its rows, or a sealed block
together with the first index of the next, so that `pending` never falls back to `latest`
between two blocks. What a method returns may be announced, for it is durable.

What nobody waits for is done by `follow_up`, in turns between the commits; of the store's
own work that is `upkeep`. It makes no commit of its own that a reader could tell: rows that
it finds out or finds superfluous go along with the next index.

After an exception from a commit the blocks in progress are to be thrown away; `open_block`
gives back the one that is pending, as of its last commit.
"""

from collections.abc import Sequence
from typing import Final

from foreblock._engine import Batch, Header, Heads, Store, Transaction
from foreblock.clock import Clock, boot_id
from foreblock.errors import NoChain
from foreblock.ledger.building.block_in_progress import BlockInProgress
from foreblock.ledger.building.commit_builder import Draft
from foreblock.ledger.building.parent_state import on_partial, on_sealed, resume, transactions_in
from foreblock.ledger.building.partial_steps import (
    add_partial,
    add_quiet_end,
    add_seal,
    add_seals_as,
)
from foreblock.ledger.building.resume_block import read_open_block
from foreblock.ledger.building.side_branch import SideBranch
from foreblock.ledger.reading.partials import made_of, sealed_number
from foreblock.ledger.rules.profile import ChainProfile
from foreblock.ledger.storage.chain_head import read_header, stored_profile
from foreblock.ledger.storage.freshness import Freshness, Quiet, decode_freshness
from foreblock.ledger.storage.upkeep import PRUNE_HEIGHTS, Upkeep, prunable
from foreblock.types import Base, Flashblock, FlashblockId

FRESH_FOR_BLOCKS: Final = 2  # how many block times a pending block counts as fresh
_NANOSECONDS: Final = 10**9


class LedgerWriter:
    """The writing end of a network."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        keep_partials: int = 64,
        prune_heights: int = PRUNE_HEIGHTS,
        safe_distance: int = 32,
        finalized_distance: int = 64,
    ) -> None:
        """`store` is open for writing and has its genesis: `NoChain` otherwise."""
        self.store: Final = store
        self._clock: Final = clock
        self._boot_id: Final = boot_id()
        self._keep_partials: Final = keep_partials
        self._prune_heights: Final = prune_heights
        self._safe_distance: Final = safe_distance
        self._finalized_distance: Final = finalized_distance
        self._current: BlockInProgress | None = None  # whose indices were committed last
        self._prunable: list[bytes] = []  # keys that go with the next commit
        # Of the last commit, in monotonic time: for whoever measures.
        self.committed_at_ns = 0
        self.commit_took_ns = 0
        with store.view() as view:
            if view.heads.latest is None:
                raise NoChain(store.path)
            self.profile: Final[ChainProfile] = stored_profile(view)
            self._lifetime_ns: Final = FRESH_FOR_BLOCKS * self.profile.block_time * _NANOSECONDS
            self._heads: Heads = view.heads
            number, _ = view.heads.latest
            self.latest, self.total_difficulty = read_header(view, number)
            self._upkeep: Final = Upkeep(store, number)

    def open_block(self) -> BlockInProgress | None:
        """The pending block as of its last committed index; none where there is none."""
        self.close()
        view = self.store.view()
        self._current = read_open_block(view, self.profile)
        if self._current is None:
            view.close()
        return self._current

    def sealed_header(self, number: int) -> Header:
        """The header of a sealed block."""
        with self.store.view() as view:
            return read_header(view, number)[0]

    def transactions_of(self, number: int) -> list[Transaction]:
        """The transactions of a sealed block that was made of indices."""
        with self.store.view() as view:
            return transactions_in(view, number, made_of(view, number))

    def transactions_in(self, block: BlockInProgress, start: int = 0) -> list[Transaction]:
        """The transactions in the committed indices of a block, from this one on."""
        with self.store.view() as view:
            return transactions_in(view, block.number, block.partials[start:])

    def begin(self, base: Base, payload_id: bytes) -> BlockInProgress:
        """A block on the latest. Raises `BadBlock` for a base that cannot follow it."""
        foundation = on_sealed(self.store, self.profile, self.latest.number)
        return BlockInProgress.begin(foundation, base, payload_id)

    def without_tail(self, block: BlockInProgress) -> BlockInProgress:
        """A block as it was before its last committed index; the other one is closed."""
        block.close()
        self._current = resume(self.store, self.profile, block.partials[-2])
        return self._current

    def header_if_sealed(self, block: BlockInProgress) -> Header:
        """What the block is if it ends with its last committed index."""
        block.roots.catch_up()
        assert block.roots.last is not None, "a block has a committed index before it is sealed"
        return block.roots.last.header

    def begin_next(
        self, block: BlockInProgress, sealed: Header, base: Base, payload_id: bytes
    ) -> BlockInProgress:
        """The block after this one, which will have the header `sealed`; nothing is stored.

        Raises `BadBlock` for a base that cannot follow it.
        """
        place = FlashblockId(sealed.number, block.index - 1)
        partial = block.partials[-1]
        foundation = on_partial(self.store, self.profile, place, partial, sealed)
        return BlockInProgress.begin(foundation, base, payload_id)

    def extend(self, block: BlockInProgress, *, quietly: bool = False) -> Flashblock:
        """Close the open index of a block and make it the pending one, in one commit.

        An index in which nothing happened is kept `quietly` by its place alone, where the
        block is the pending one already (`quiet_indices`).
        """
        if quietly and block.is_quiet and self._heads.pending == block.partials[-1]:
            return self._commit_quiet_index(block)
        batch = self.store.batch()
        flashblock = self._commit_index(batch, block, self.latest)
        self._current = block
        return flashblock

    def seal_and_extend(
        self,
        block: BlockInProgress,
        sealed: Header,
        following: BlockInProgress,
        left_out: Sequence[int] = (),
    ) -> Flashblock:
        """Seal a block and make the first index of the next one pending, in one commit.

        `sealed` is what `header_if_sealed` gave. Transactions that ran after the last
        committed index are not in it. Partials that are `left_out` came after its end.
        """
        assert sealed == self.header_if_sealed(block), "a block seals as what it has become"
        batch = self.store.batch()
        nodes = block.roots.take_nodes()
        add_seal(batch, block.partials, sealed, self.total_difficulty, nodes)
        if block.quiet:
            add_quiet_end(batch, block.number, block.index - 1, block.partials[-1])
        if left_out:
            batch.drop(list(left_out), "not in the sealed block")
        add_seals_as(batch, block.roots.take_new())
        flashblock = self._commit_index(batch, following, sealed)
        self.latest, self._current = sealed, following
        following.roots.restart(self.store.trie)
        block.close()
        return flashblock

    def restart(self, block: BlockInProgress, again: BlockInProgress) -> Flashblock:
        """Give up a block and make the first index of another one pending, in one commit.

        Both stand on the latest block.
        """
        draft = self.draft()
        draft.drop(block.partials, "its job was begun anew")
        closed = again.close_index(draft.next)
        partial = draft.extend(closed, (), self._clock.wall_ns())
        self.commit(draft, self.latest, partial, self._clock.monotonic_ns())
        again.committed(partial, closed.header)
        block.close()
        self._current = again
        return closed.flashblock()

    def branch(self, fork: int, block: BlockInProgress) -> SideBranch:
        """A branch on a sealed block, for `reorganize`; `block` is what is pending till then."""
        draft = self.draft()
        draft.drop(block.partials, "it stood on what was given up")
        draft.rewind(fork)
        ground = on_sealed(self.store, self.profile, fork)
        return SideBranch(draft, ground, self._clock, self.total_difficulty)

    def reorganize(self, branch: SideBranch, block: BlockInProgress) -> list[Flashblock]:
        """Let a branch take the place of all above its fork, `block` included, in one commit."""
        pending = branch.block
        branch.draft.seals_as(pending.roots.take_new())
        self.commit(branch.draft, branch.latest, pending.partials[-1], self._clock.monotonic_ns())
        pending.roots.restart(self.store.trie)
        block.close()
        self._current = pending
        return branch.flashblocks

    def otherwise(self, block: BlockInProgress, transactions: Sequence[Transaction]) -> Flashblock:
        """What the last index of a block would be with other transactions; it is not stored."""
        if len(block.partials) > 1:
            other = resume(self.store, self.profile, block.partials[-2])
        else:
            ground = on_sealed(self.store, self.profile, block.number - 1)
            other = BlockInProgress.begin(ground, block.base, block.payload_id)
        try:
            for transaction in transactions:
                other.run(transaction)
            return other.close_index(self.store.batch().next).flashblock()
        finally:
            other.close()

    def draft(self) -> Draft:
        """An empty draft that follows the last commit."""
        return Draft(self.store)

    def commit(
        self, draft: Draft, latest: Header, pending: int | None, heard_at_ns: int | None
    ) -> None:
        """Make a draft durable, after which these are the latest and the pending block.

        `heard_at_ns` is when the newest flashblock that it adds to the pending block was
        received, in monotonic time; without one nothing becomes fresher.
        """
        draft.delete(self._prunable)
        draft.batch.pending(pending)
        if heard_at_ns is not None:
            before = decode_freshness(self._heads.note)
            until = 0 if before is None else before.deadline_ns(self._boot_id)
            until = max(until, heard_at_ns + self._lifetime_ns)
            draft.batch.note(Freshness(self._boot_id, until).encode())
        draft.close()
        self._heads = self.store.commit(draft.batch)
        self._prunable = []
        self._upkeep.committed(draft.transactions)
        self.latest = latest

    def name_heads(self, safe: bytes | None, finalized: bytes | None) -> None:
        """Let these sealed blocks be the safe and the final one, those that are known."""
        with self.store.view() as view:
            blocks = [each and sealed_number(view, each) for each in (safe, finalized)]
        batch, heads = self.store.batch(), self._heads
        changed = False
        for number, now, name in zip(
            blocks, (heads.safe, heads.finalized), (batch.safe, batch.finalized), strict=True
        ):
            if isinstance(number, int) and (now is None or now[0] != number):
                name(number)
                changed = True
        if changed:
            self._heads = self.store.commit(batch)

    def follow_up(self) -> bool:
        """A turn of the work behind the head; true while there is more."""
        if self._current is not None and self._current.roots.step():
            return True
        if self._upkeep.turn(self.latest.number):
            return True
        if not self._prunable:
            with self.store.view() as view:
                below = self.latest.number - self._keep_partials
                self._prunable = prunable(view, below, self._prune_heights)
        return False

    def close(self) -> None:
        """Let go of the block in progress and its view; the store stays open."""
        if self._current is not None:
            self._current.close()
            self._current = None

    def _commit_index(self, batch: Batch, block: BlockInProgress, latest: Header) -> Flashblock:
        """Commit the batch with the open index of a block, pending above `latest`."""
        closed = block.close_index(batch.next)
        with self.store.view() as view:
            partial = add_partial(batch, view, closed, block.partials, self._clock.wall_ns())
        add_seals_as(batch, block.roots.take_new())
        for key in self._prunable:
            batch.delete(key)
        batch.pending(partial)
        self._move_heads(batch, latest.number)
        self._commit(batch, self._clock.monotonic_ns())
        self._prunable = []
        self._upkeep.committed(len(closed.transactions))
        block.committed(partial, closed.header)
        return closed.flashblock()

    def _commit_quiet_index(self, block: BlockInProgress) -> Flashblock:
        """Commit that a block has come to its next index, and nothing else."""
        batch = self.store.batch()
        closed = block.close_index(batch.next)
        quiet = Quiet(block.partials[-1], closed.index, self._clock.wall_ns())
        begun_ns = self._clock.monotonic_ns()
        batch.note(Freshness(self._boot_id, begun_ns + self._lifetime_ns, quiet).encode())
        self._commit(batch, begun_ns)
        block.committed_quietly()
        return closed.flashblock()

    def _commit(self, batch: Batch, begun_ns: int) -> None:
        self._heads = self.store.commit(batch)
        self.committed_at_ns = self._clock.monotonic_ns()
        self.commit_took_ns = self.committed_at_ns - begun_ns

    def _move_heads(self, batch: Batch, latest: int) -> None:
        """The heads that follow the latest block at a distance, and how long pending is fresh."""
        batch.safe(_behind(latest, self._safe_distance, self._heads.safe))
        batch.finalized(_behind(latest, self._finalized_distance, self._heads.finalized))
        until = self._clock.monotonic_ns() + self._lifetime_ns
        batch.note(Freshness(self._boot_id, until).encode())


def _behind(latest: int, distance: int, now: tuple[int, bytes] | None) -> int:
    """The block at this distance, unless the head is above it already."""
    return max(latest - distance, 0 if now is None else now[0])
