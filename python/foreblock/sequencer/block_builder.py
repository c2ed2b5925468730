"""The block in progress: begun, filled from the pool, committed index by index, sealed.

Index 0 holds the attributes deposit alone. Transactions run shortly before their index is due, so
that little but the commit is left to do then. A transaction that has run and is not committed
still counts as waiting. One that would make its index late is stopped and set aside (`Overruns`).

`Mining` decides what a block begins with and when its indices are due, the pool which transaction
is next, `Sequencer` when to do what. Published flashblocks are committed.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

import structlog

from foreblock.clock import Clock
from foreblock.errors import (
    AlreadyKnown,
    EndpointError,
    InvalidTransaction,
    OverBudget,
    PoolRefusal,
)
from foreblock.ledger.building.block_in_progress import BlockInProgress
from foreblock.ledger.building.chain_rewriting import BlockRun
from foreblock.ledger.building.commit_builder import CommitBuilder
from foreblock.ledger.building.ledger_writer import LedgerWriter
from foreblock.ledger.rules.transaction_rules import DEPOSIT, is_from_user, out_of_turn
from foreblock.ledger.rules.verification import MAXIMUM_BLOCK_SIZE
from foreblock.ledger.storage.chain_head import partials_of_sealed
from foreblock.ledger.storage.mirror_rows import dropped_key, local_partials
from foreblock.ledger.storage.partials import transactions_in
from foreblock.sequencer.admission import Pooled
from foreblock.sequencer.attributes import first_transactions
from foreblock.sequencer.faults.feed import FeedSink, conflicting_flashblock
from foreblock.sequencer.faults.plan import ChainFaults, FaultKind
from foreblock.sequencer.mining import Mining
from foreblock.sequencer.timing import LEAST_US, Budget, Overruns, budget, runs_until_ns
from foreblock.sequencer.transaction_pool import TransactionPool
from foreblock.types import Account, Allowance, Base, Flashblock, Header, Transaction

# Bytes of a block's transactions if its size is limited (EIP-7934), with the margin of geth.
MOST_BYTES: Final = MAXIMUM_BLOCK_SIZE - 1_000_000
AHEAD: Final = 32  # transactions that run at once before they are due, a millisecond or two

log = structlog.get_logger()


class BlockBuilder:
    """Builds the blocks of one network.

    Its attributes are for reading; code that builds several blocks in one commit (`BlockRun`)
    sets `block` to the last of them.
    """

    def __init__(
        self,
        writer: LedgerWriter,
        clock: Clock,
        mining: Mining,
        sink: FeedSink,
        faults: ChainFaults,
    ) -> None:
        """Continue with the block that is open, or begin one, which is not committed yet."""
        self.writer: Final = writer
        self.clock: Final = clock
        self.mining: Final = mining
        self.faults: Final = faults
        self.sink: Final = sink

        # The block, its schedule, and which of its slots has ended.
        block = writer.open_block()
        self.block = self._first_block() if block is None else block
        self.schedule = mining.schedule_of(self.block)
        self.slot = self.schedule.slots_before

        self.terms = mining.terms_of(self.block)
        self.empty_pool()
        self.ran: Final[dict[bytes, Transaction]] = {}  # by hash, in the index that is open
        self._may_run_more = True  # there may be something in the pool that fits
        self._overruns: Final = Overruns()
        self._closed_at_ns = 0  # the last index
        self.instant_due_ns: int | None = None  # when a transaction closes the next one

        # Work behind the head.
        self.pool_is_stale = False
        self.writer_is_behind = True

    @property
    def base(self) -> Base:
        return self.block.base

    @property
    def parent(self) -> Header:
        """The latest sealed block."""
        return self.block.parent

    @property
    def has_transactions(self) -> bool:
        """Return True if the block in progress has more than the start of every block."""
        return self.block.count > self._first_count or bool(self.ran)

    @property
    def has_open_edits(self) -> bool:
        return bool(self.block.open_edits)

    @property
    def waiting(self) -> int:
        """The number of transactions that are in no committed index yet."""
        return len(self.pool) + len(self.ran)

    def pooled(self) -> Iterator[Transaction]:
        """The transactions that wait, in an order in which they can run."""
        return itertools.chain(self.ran.values(), self.pool)

    @property
    def _first_count(self) -> int:
        """How many transactions every block begins with."""
        if self.block.rules.optimism is None:
            return 0
        return 2 if self.mining.chain.base_time else 1

    def _account(self, address: bytes) -> Account | None:
        return self.block.account(address)

    # --- Due work ----------------------------------------------------------------------

    @property
    def index_due_ns(self) -> int:
        """When the next index is to be closed, or the block if that was its last."""
        due = self.schedule.next_end_ns(self.slot)
        return due if self.instant_due_ns is None else min(due, self.instant_due_ns)

    @property
    def fill_from_ns(self) -> int | None:
        """When transactions may start to run before their index is due; None if there are none.

        If transactions close indices, an index is due when there is one.
        """
        if self.mining.gap_ns is not None or not self._may_run_more:
            return None
        fill_from = self.schedule.fill_from_ns(self.slot)
        is_empty = not self.block.open_count
        if is_empty and self._overruns.waits_for_all_the_time(self.pool.best()):
            return self._closed_at_ns
        return fill_from

    def close_soon(self) -> None:
        """Make an index due if transactions close them and one can run."""
        gap_ns = self.mining.gap_ns
        if gap_ns is not None and self.instant_due_ns is None and self.pool.best() is not None:
            earliest = self._closed_at_ns + gap_ns
            self.instant_due_ns = max(self.clock.monotonic_ns(), earliest)

    def reschedule(self) -> None:
        """Continue at the pace that `Mining` has now."""
        self.schedule = self.mining.schedule_of(self.block)
        self.slot = self.schedule.slots_before
        self.instant_due_ns = None
        self.close_soon()

    # --- Transactions ------------------------------------------------------------------

    def add(self, transaction: Transaction, *, may_replace: bool) -> None:
        """Add a transaction to the pool; raises a `PoolRefusal`."""
        if transaction.hash in self.ran:
            raise AlreadyKnown
        self.pool.add(transaction, may_replace=may_replace)
        if self.mining.mirrors:
            self.writer.delete_with_next(dropped_key(transaction.hash))
        self._may_run_more = True
        self.close_soon()

    def put_back(self, transactions: Iterable[Transaction]) -> None:
        """Return transactions of abandoned blocks to the pool, those that it still accepts."""
        for transaction in transactions:
            try:
                self.pool.add(transaction)
            except PoolRefusal as why:
                self.note_dropped(transaction, str(why))
        self._may_run_more = True
        self.close_soon()

    def empty_pool(self) -> None:
        """Drop all transactions that wait."""
        self.pool = TransactionPool(
            self.terms, self._account, order=self.mining.chain.order, dropped=self.note_dropped
        )

    def note_dropped(self, transaction: Transaction, why: str) -> None:
        """On a mirror, log why a transaction was dropped, and store it for its receipt."""
        if self.mining.mirrors:
            log.warning("local_transaction_dropped", hash=transaction.hash.hex(), why=why)
            self.writer.put_extra_row(dropped_key(transaction.hash), why.encode())

    def open_transactions(self) -> list[Transaction]:
        """The users' transactions in the block in progress, uncommitted ones included."""
        return [*self.transactions_of(self.block.number, self.block.partials), *self.ran.values()]

    def transactions_of(
        self, block: int, partials: tuple[int, ...] | None = None
    ) -> list[Transaction]:
        """The users' transactions in these partials, or in all of a sealed block."""
        with self.writer.store.view() as view:
            parts = partials_of_sealed(view, block) if partials is None else partials
            found = transactions_in(view, block, local_partials(view, block, parts))
        return [each for each in found if is_from_user(each)]

    # --- Filling an index --------------------------------------------------------------

    def fill_ahead(self, now_ns: int) -> bool:
        """Run a few transactions of the next index; False if it is not time to."""
        fill_from = self.fill_from_ns
        if fill_from is None or now_ns < fill_from:
            return False
        self._fill(self._budget(self.slot + 1), self.index_due_ns, AHEAD)
        return True

    def end_index(self, slot: int, now_ns: int) -> None:
        """Fill the index up to the end of this slot and commit it."""
        due_ns = self.index_due_ns
        self.slot = slot
        self.pool.begin_index()
        self._fill(self._budget(slot), due_ns)
        self._extend(now_ns, due_ns)

    def close_index(self, *, fill: bool = True) -> Flashblock:
        """Close the open index now, with `fill` also with what can run."""
        now_ns = self.clock.monotonic_ns()
        if fill:
            self.pool.begin_index()
            self._fill(Budget(self.base.gas_limit), now_ns)
        return self._extend(now_ns, now_ns)

    def _extend(self, now_ns: int, due_ns: int) -> Flashblock:
        """Commit the open index; an empty one by its position alone.

        Faults concern partials, so every index has one if there are faults.
        """
        flashblock = self.writer.extend(self.block, quietly=not self.faults)
        self.announce(flashblock, now_ns, due_ns)
        return flashblock

    def commit_index(self, now_ns: int) -> None:
        """Commit the open index as a partial, even if it is empty."""
        self.announce(self.writer.extend(self.block), now_ns, now_ns)

    def fill_whole(self, run: BlockRun) -> None:
        """Run all that fits into the last block of a run, and close its index."""
        self.pool.begin_index()
        self._fill(Budget(self.base.gas_limit), self.clock.monotonic_ns())
        if run.block.open_count or not run.block.index:
            run.close_index()

    def _budget(self, slot: int) -> Budget:
        """By the end of a slot; if transactions close indices, of the whole block."""
        limit, slots = self.base.gas_limit, self.schedule.slots
        if self.mining.gap_ns is not None or not slots:
            return Budget(limit)
        return budget(slot, slots, limit)

    def _fill(self, until: Budget, due_ns: int, most: int | None = None) -> None:
        """Run what fits into an index, the best first, `most` of them at most."""
        block, pool, ran = self.block, self.pool, self.ran
        enough = None if most is None else block.count + most
        now = self.clock.monotonic_ns()
        ends_ns = runs_until_ns(due_ns, now, self.schedule.interval_ns)
        allowance = Allowance(time_us=(ends_ns - now) // 1_000, least_us=LEAST_US)
        while not until.is_spent(block.executed_gas) and (best := pool.best()) is not None:
            if block.count == enough:
                return
            if not self._fits(best, until):
                pool.defer(best)
                continue
            try:
                run_in_turn(block, best.transaction, allowance)
            except InvalidTransaction as invalid:
                log.info("transaction_dropped", hash=best.hash.hex(), why=invalid.why)
                pool.failed(best, invalid.why)
            except OverBudget:
                self._overran(best)
                break
            except EndpointError as why:  # on a fork
                if self.mining.mirrors:
                    pool.defer(best)  # it may have run before
                    continue
                log.info("transaction_dropped", hash=best.hash.hex(), why=str(why))
                pool.failed(best, str(why))
            else:
                pool.included(best)
                ran[best.hash] = best.transaction
            if self.clock.monotonic_ns() >= ends_ns:
                break
        self._may_run_more = False

    def _fits(self, pooled: Pooled, until: Budget) -> bool:
        block, blobs = self.block, self.terms.blobs
        if not until.fits(pooled, block.executed_gas, block.da_footprint):
            return False
        if pooled.blobs and not (blobs and blobs.take(pooled, block.blobs)):
            return False
        if block.rules.block_size_limited and block.size + pooled.size > MOST_BYTES:
            return False
        return self._overruns.may_run(pooled, is_first=not block.open_count)

    def _overran(self, pooled: Pooled) -> None:
        """Set a transaction aside that takes too long for its index, or drop it."""
        is_last_try, interval_ms = self._overruns.add(pooled), self.mining.interval_ms
        log.warning(
            "transaction_dropped" if is_last_try else "transaction_deferred",
            hash=pooled.hash.hex(),
            gas=pooled.gas_limit,
            why=f"it runs for longer than an interval of {interval_ms} ms allows",
        )
        if is_last_try:
            self.pool.failed(pooled, "it runs for too long")
        else:
            self.pool.defer(pooled)

    # --- From block to block -----------------------------------------------------------

    def seal(self, now_ns: int, builder: CommitBuilder | None = None) -> None:
        """Seal the block and begin the next, in one commit with the steps of `builder`."""
        block, writer, due_ns = self.block, self.writer, self.schedule.end_ns
        sealed = writer.header_if_sealed(block)
        base = self.base_on(sealed)
        self.mining.log_time(sealed, base.timestamp)
        following = writer.begin_next(block, sealed, base, self.mining.id_of(base))
        self.start(following)
        flashblock = writer.seal_and_extend(block, sealed, following, builder)
        self.adopt(following, (flashblock,), now_ns, due_ns)

    def adopt(
        self,
        block: BlockInProgress,
        flashblocks: Sequence[Flashblock],
        now_ns: int,
        due_ns: int | None = None,
    ) -> None:
        """Continue with a block whose flashblocks, and those before it, are committed."""
        *before, last = flashblocks
        for each in before:
            self.sink.publish(each)
        self.block = block
        self.schedule = self.mining.schedule_of(block)
        self.slot = self.schedule.slots_before
        self.terms = self.mining.terms_of(block)
        self.pool.begin_block(self.terms)
        self._overruns.keep_only(self.pool)
        self.pool_is_stale = True
        self.announce(last, now_ns, now_ns if due_ns is None else due_ns)

    def announce(self, flashblock: Flashblock, now_ns: int, due_ns: int) -> None:
        """Publish a committed index and begin the next."""
        if self.faults.happens(FaultKind.EQUIVOCATE, flashblock.block_number, flashblock.index):
            other = conflicting_flashblock(self.writer, self.block, self.mining.chain.seed)
            if other != flashblock:
                self.sink.publish_conflicting(other)
        self._closed_at_ns = now_ns
        self.instant_due_ns = None
        self.ran.clear()
        self.pool.begin_index()
        self._overruns.end_index()
        self._may_run_more = True
        self.writer_is_behind = True
        self.writer.metrics.readable(self.writer.committed_at_ns - now_ns)
        self.sink.publish(flashblock)
        log.debug(
            "flashblock",
            block=flashblock.block_number,
            index=flashblock.index,
            transactions=len(flashblock.diff.transactions),
            waiting=self.waiting,
            due_ns=due_ns,
            begun_ns=now_ns,
            committed_ns=self.writer.committed_at_ns,
            commit_ns=self.writer.commit_took_ns,
        )

    # --- Beginning a block -------------------------------------------------------------

    def _first_block(self) -> BlockInProgress:
        base = self.mining.next_base(self.writer.latest)
        block = self.writer.begin(base, self.mining.id_of(base))
        self.start(block)
        return block

    def start(self, block: BlockInProgress) -> None:
        """Run the transactions that a block begins with."""
        mining, base = self.mining, block.base
        seed, block_time = mining.chain.seed, mining.state.block_time
        milliseconds, fork = mining.milliseconds_of(base), mining.l1_attributes
        block.run(first_transactions(base, block.rules, seed, block_time, milliseconds, fork))

    def base_on(self, parent: Header) -> Base:
        """The base of the block after this one, with gas for the next transaction."""
        return self.widened(self.mining.next_base(parent), self.mining.start_gas)

    def widened(self, base: Base, start_gas: int) -> Base:
        """The base with gas for the next transaction, even if that needs a whole block's gas.

        A block that begins with a deposit has that much more gas than others.
        """
        best = self.pool.best()
        needed = 0 if best is None else best.gas_limit + start_gas
        if needed <= base.gas_limit:
            return base
        if self.mining.state.gas_limit is None:
            self.mining.change(gas_limit=base.gas_limit)  # of those that follow
        return replace(base, gas_limit=needed)

    def on_new_view(self, block: BlockInProgress) -> BlockInProgress:
        """Begin a block again that has only begun, because its view has been open for long.

        While a view is open, the store does not reuse pages that were freed since. A block that
        began with more than every block does keeps its own.
        """
        if self.mining.state.is_edited:
            return block
        again, (partial,) = self.writer.begin(block.base, block.payload_id), block.partials
        self.start(again)
        again.committed(partial, again.close_index(partial).header)
        if again.header != block.header:
            again.close()
            return block
        self.writer.close()
        self.writer.current = again
        return again


def run_in_turn(
    block: BlockInProgress, transaction: Transaction, allowance: Allowance | None = None
) -> None:
    """Run the next transaction of a block; a user's deposit only with the right nonce and value.

    Raises `InvalidTransaction` and `OverBudget`, and nothing is changed.
    """
    if transaction.type == DEPOSIT:
        why = out_of_turn(transaction, block.account(transaction.sender))
        if why is not None:
            raise InvalidTransaction(0, why)
    block.run([transaction], allowance)
