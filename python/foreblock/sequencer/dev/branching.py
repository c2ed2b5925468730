"""A dev sequencer whose chain can be taken back, replaced in part, and have accidents.

What a command does with these is in `branches` and `accidents`. Where only sealed blocks are
shown, transactions of the block in progress wait for it: on a chain that is mined on command they
can be replaced and dropped. After a chain was taken back
nothing of the sequencer's memory may be of the branch that was given up: the pool, the signed
load, and where faults have struck. Payload ids never repeat, so that those who follow the feed
never take one job for another.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import structs

from foreblock.clock import SECOND_NS, Clock
from foreblock.errors import AlreadyKnown, FeeCapBelowBaseFee, ReplacementUnderpriced
from foreblock.ledger.building.block_in_progress import BlockInProgress
from foreblock.ledger.building.chain_rewriting import BlockRun, Snapshots
from foreblock.ledger.building.ledger_writer import LedgerWriter
from foreblock.ledger.building.resume_block import resume
from foreblock.ledger.rules.transaction_rules import DEPOSIT
from foreblock.ledger.storage.dev_rows import ChainSnapshot, DevState, merged
from foreblock.sequencer.admission import admit
from foreblock.sequencer.chaos.faults import Faults
from foreblock.sequencer.dev.cheating import CheatingSequencer
from foreblock.sequencer.dev.dev_sequencer import FeedSink
from foreblock.sequencer.index_limits import Budget
from foreblock.sequencer.load import Load
from foreblock.sequencer.transaction_pool import TransactionPool, outbids
from foreblock.settings import ChainSettings
from foreblock.types import Base, Cheat, Flashblock, Transaction


class BranchingSequencer(CheatingSequencer):
    """Builds the blocks of a dev chain, which may end elsewhere after the next command."""

    def __init__(
        self,
        writer: LedgerWriter,
        clock: Clock,
        chain: ChainSettings,
        state: DevState,
        sink: FeedSink,
        load: Load | None,
    ) -> None:
        """`state` is what a chain begins with that has none of its own."""
        super().__init__(writer, clock, chain, state, sink, load)
        self.snapshots: Final = Snapshots(writer)
        self._first: Final = state
        self._sink: Final = sink
        sink.set_faults(self._faults)

    @property
    def writer(self) -> LedgerWriter:
        """The writer of the chain."""
        return self._writer

    @property
    def clock(self) -> Clock:
        """The clock of the machine."""
        return self._clock

    @property
    def block(self) -> BlockInProgress:
        """The block in progress."""
        return self._block

    @property
    def time(self) -> int:
        """The time of the chain, in seconds."""
        return self._wall_ns() // SECOND_NS

    def blocks_since(self, snapshot: int) -> int:
        """How many blocks were sealed since a snapshot; 0 where there is none."""
        block = self.snapshots.block_of(snapshot)
        return 0 if block is None else self.parent.number - block

    def flush_block(self) -> None:
        """Commit what is in the block in progress, and the time that it should have."""
        if self._block.open_count or not self._block.index:
            self.close_index(fill=False)
        if self._has_open_edits or self._is_retimed:
            self.flush()

    def stands_at(self, snapshot: ChainSnapshot) -> bool:
        """Return True if nothing was committed to the chain or the pool since a snapshot."""
        block = self._block
        is_there = (block.partials[-1:], block.index - 1) == ((snapshot.partial,), snapshot.index)
        return is_there and not (self.waiting or snapshot.waiting)

    def discard_uncommitted(self) -> None:
        """Make the block in progress what it was at its last commit."""
        self._is_retimed = False
        if self._has_open_edits:
            writer, last = self._writer, self._block.partials[-1]
            self._block.close()
            self._block = writer.current = resume(writer.store, writer.profile, last)

    def close_index(self, *, fill: bool = True) -> Flashblock:
        """Close the open index with what has run and, with `fill`, with what can run."""
        now_ns = self._clock.monotonic_ns()
        if fill:
            self._pool.begin_index()
            self._fill(Budget(self.base.gas_limit), now_ns)
        flashblock = self._writer.extend(self._block, quietly=self._stores_quietly)
        self._announce(flashblock, now_ns, now_ns)
        return flashblock

    def another_id(self, base: Base) -> bytes:
        """A payload id that no job has had."""
        return self._another_id(base)

    def restore(self, state: DevState, time: int | None = None) -> None:
        """Make the state what it was, and the time, if one is given; ids go on rising."""
        now = self._state
        self._state = structs.replace(
            state,
            instance=now.instance,
            attempts=now.attempts,
            branches=now.branches + 1,
            next_snapshot=now.next_snapshot,
            prints=now.prints,
            prints_traces=now.prints_traces,
            shows_sealed=now.shows_sealed,
        )
        self._set_lifetime(self._writer)
        self.set_faults(state.faults)
        if time is not None:
            self.follow_time(time)

    def restore_first(self, instance: bytes) -> None:
        """Make the state what it was when the chain began, as another chain."""
        self.restore(self._first)
        self.change(instance=instance)

    def begin_branch(self, run: BlockRun) -> None:
        """Begin the next block of a run, under an id of its own."""
        base = self._base_on(run.latest)
        self._start(run.begin(base, self.another_id(base)))
        run.close_index()

    def add_sealed(
        self, run: BlockRun, timestamp: int, instead_of: bytes, transactions: list[Transaction]
    ) -> list[Transaction]:
        """Add a sealed block to a run, instead of another one; gives what could not run."""
        base = self._next_base(run.latest, timestamp, instead_of)
        base = self._with_wishes(base)
        left = self._build(run, base, self.another_id(base), transactions)
        run.seal()
        return left

    def go_on_with(
        self,
        block: BlockInProgress,
        flashblocks: Iterable[Flashblock],
        waiting: Iterable[Transaction],
    ) -> None:
        """Go on with the block in progress of another branch; only these transactions wait."""
        now_ns = self._clock.monotonic_ns()
        self._is_retimed = False
        self._last_struck.clear()
        if self._load is not None:
            self._load.start_again()
        *before, last = flashblocks
        for flashblock in before:
            self._publish(flashblock)
        self._ran.clear()
        self._block = block
        self._pool = TransactionPool(self._terms_of(block), self._account, order=self._chain.order)
        self._go_on_with(block, last, now_ns, now_ns)
        self._slot = self._schedule.slots_before
        self._put_back(waiting)

    def _put_back(self, transactions: Iterable[Transaction]) -> None:
        super()._put_back(transactions)
        self._may_run_more = True
        self._close_soon()

    def _give_up_above(self, block: int) -> None:
        self.snapshots.forget_above(block)

    def transactions_of(
        self, block: int, partials: tuple[int, ...] | None = None
    ) -> list[Transaction]:
        """The users' transactions in these partials, or in all of a sealed block."""
        return self._transactions_of(block, partials)

    def cheats_of(self, block: int, partials: tuple[int, ...] | None = None) -> Sequence[Cheat]:
        """The accounts that were set in these partials, or in all of a sealed block."""
        return self._cheats_in(block, partials)

    def set_again(self, cheats: Sequence[Cheat]) -> None:
        """Set accounts that were set in what was given up."""
        self._regain(merged(cheats))

    # --- Where only sealed blocks are shown ------------------------------------------------

    def submit(self, transaction: Transaction, *, may_replace: bool = True) -> None:
        """Take a transaction into the pool; raises a `PoolRefusal`.

        Where only sealed blocks are shown it has to pay the base fee of the block in progress,
        as in anvil, and may replace one that has run in it.
        """
        if self._state.shows_sealed:
            self._check_base_fee(transaction)
        old = self._that_waits(transaction.sender, transaction.nonce) if may_replace else None
        if old is not None:
            self._check_replacing(transaction, old)
            self.restart_block()
        super().submit(transaction, may_replace=may_replace)

    def drop(self, hash: bytes | None, sender: bytes | None) -> list[bytes]:
        """Take transactions out of the pool: one, those of a sender, or all; gives their hashes.

        What has run stays, unless it waits for its block to be sealed by a command.
        """
        if any(
            hash in (None, each.hash) and sender in (None, each.sender)
            for each in self._those_that_wait()
        ):
            self.restart_block()
        return super().drop(hash, sender)

    def _those_that_wait(self) -> list[Transaction]:
        """The transactions of the block in progress that are shown as in the pool."""
        return self._given_up() if self._waits_for_commands and self.has_transactions else []

    def _that_waits(self, sender: bytes, nonce: int) -> Transaction | None:
        """The one with this nonce."""
        account = self._account(sender)
        if account is None or nonce >= account.nonce:
            return None
        waiting = self._those_that_wait()
        return next((one for one in waiting if (one.sender, one.nonce) == (sender, nonce)), None)

    def _check_base_fee(self, transaction: Transaction) -> None:
        cap = transaction.max_fee_per_gas
        cap = transaction.gas_price if cap is None else cap
        base_fee = self.base.base_fee_per_gas
        if transaction.type != DEPOSIT and cap is not None and cap < base_fee:
            raise FeeCapBelowBaseFee(cap, base_fee)

    def _check_replacing(self, new: Transaction, old: Transaction) -> None:
        if new.hash == old.hash:
            raise AlreadyKnown
        if not outbids(admit(new, self._terms, 0), admit(old, self._terms, 0)):
            raise ReplacementUnderpriced

    # --- Accidents ---------------------------------------------------------------------

    def set_faults(self, faults: tuple[str, ...]) -> None:
        """Let these happen from now on; raises `InvalidArgument`."""
        self._faults = Faults.parse(faults, self._chain.seed)
        self.change(faults=faults)
        self._sink.set_faults(self._faults)

    def restart_block(self) -> None:
        """Give up the block in progress and begin it anew; its transactions wait again."""
        self.flush()
        now_ns = self._clock.monotonic_ns()
        self._restart(now_ns, now_ns)

    def drop_tail(self) -> None:
        """Seal the block in progress without its last stored index and what came after it."""
        ran = list(self._ran.values())
        self._ran.clear()
        self._end_block()
        self._turn_over_without_tail(self._clock.monotonic_ns())
        self._put_back(ran)

    def contradict_last(self) -> Flashblock:
        """Announce another flashblock for the place of the last one; the chain is as it was."""
        other = self._other_flashblock()
        self._publish(other)
        return other
