"""The sequencer of a dev chain: transactions in, blocks out, index by index.

It never waits. The caller sleeps until `next_due_ns` and calls `tick`, on the one thread
that writes the network. Published flashblocks have been committed; between two commits
nothing is kept but the pool, so a sequencer that is killed goes on with the block that its
last commit left, under the same payload id.

`attributes` says what a block begins with, `timing` when things are due, the pool what goes
first. Index 0 holds the attributes deposit alone. Slots that were missed are left out, not
made up for: everything that waits goes into the next index.

Transactions run shortly before their index is due, so that little but the commit is left to
do then. A transaction that has run and is not committed still counts as waiting. One that
would make its index late is stopped and put aside (`overruns`).
"""

import itertools
from collections.abc import Callable, Iterator
from typing import Final

import structlog

from foreblock.clock import SECOND_NS, Clock
from foreblock.errors import AlreadyKnown, InvalidTransaction, OverBudget, PoolRefusal
from foreblock.ledger.building.block_in_progress import BlockInProgress
from foreblock.ledger.building.commit_builder import CommitBuilder
from foreblock.ledger.building.ledger_writer import LedgerWriter
from foreblock.ledger.rules.verification import MAXIMUM_BLOCK_SIZE
from foreblock.ledger.storage.dev_rows import DevState
from foreblock.sequencer.admission import Pooled, Terms
from foreblock.sequencer.attributes import (
    first_transactions,
    next_base,
    payload_id,
    terms_of,
)
from foreblock.sequencer.index_limits import LEAST_US, Budget, Overruns, budget, runs_until_ns
from foreblock.sequencer.load import Load
from foreblock.sequencer.pool_look import PoolWindow
from foreblock.sequencer.timing import Schedule, next_timestamp, schedule
from foreblock.sequencer.transaction_pool import TransactionPool
from foreblock.sequencer.unsigned import run_in_turn
from foreblock.settings import ChainSettings
from foreblock.types import Account, Allowance, Base, Flashblock, Header, Transaction

# With `instant`, the least time from one flashblock to the next.
INSTANT_GAP_NS: Final = 10 * 10**6
# No slice of work behind the head is begun within this time of something due.
QUIET_NS: Final = 5 * 10**6
# Of a block's transactions where its size is limited (EIP-7934), with the room that geth leaves.
MOST_BYTES: Final = MAXIMUM_BLOCK_SIZE - 1_000_000
AHEAD: Final = 32  # transactions that run at once before they are due, a millisecond or two

log = structlog.get_logger()


class Sequencer:
    """Builds the blocks of one network."""

    def __init__(
        self,
        writer: LedgerWriter,
        clock: Clock,
        chain: ChainSettings,
        state: DevState,
        publish: Callable[[Flashblock], None],
        load: Load | None = None,
    ) -> None:
        """Goes on with the block that is open, or begins one; the first `tick` commits it."""
        self._writer: Final = writer
        self._clock: Final = clock
        self._chain: Final = chain
        self._state = state
        self._publish: Final = publish
        self._load: Final = load

        # The block, its schedule, and which of its slots has ended.
        block = writer.open_block()
        self._block = self._begin_on(writer.latest) if block is None else block
        self._schedule = self._schedule_of(self._block)
        self._slot = self._schedule.slots_before

        self._terms = self._terms_of(self._block)
        self._pool = TransactionPool(self._terms, self._account, order=chain.order)
        self._closed_at_ns = 0  # the last index
        self._instant_due_ns: int | None = None  # when a transaction closes the next one
        self._ran: dict[bytes, Transaction] = {}  # by hash, in the index that is open
        self._may_run_more = True  # there may be something in the pool that fits
        self._overruns: Final = Overruns()

        # Work behind the head.
        self._pool_is_stale = False
        self._writer_is_behind = True

    # --- From outside ------------------------------------------------------------------

    def submit(self, transaction: Transaction, *, may_replace: bool = True) -> None:
        """Take a transaction into the pool; raises a `PoolRefusal`."""
        if transaction.hash in self._ran:
            raise AlreadyKnown
        self._pool.add(transaction, may_replace=may_replace)
        self._may_run_more = True
        self._close_soon()

    def next_nonce(self, sender: bytes) -> int:
        """The nonce of the sender's next transaction: after its account and what can run."""
        return self._pool.next_nonce(sender)

    def next_nonces(self, most: int) -> dict[bytes, int]:
        """The next nonces of at most `most` senders whose transactions are not committed."""
        ran = (each.sender for each in self._ran.values())
        senders = itertools.islice(itertools.chain(ran, self._pool.senders()), most)
        return {sender: self.next_nonce(sender) for sender in set(senders)}

    @property
    def waiting(self) -> int:
        """How many transactions are in no committed index yet."""
        return len(self._pool) + len(self._ran)

    @property
    def window(self) -> PoolWindow:
        """A look at the transactions that wait."""
        return PoolWindow(self._pool, self._ran)

    def pooled(self) -> Iterator[Transaction]:
        """The transactions that wait, in an order in which they can run."""
        return itertools.chain(self._ran.values(), self._pool)

    @property
    def next_due_ns(self) -> int:
        """When there is something to do, on the monotonic clock; 0 for at once."""
        if self._block.index == 0:
            return 0
        due = self._index_due_ns
        if (fill_from := self._fill_from_ns) is not None:
            due = min(due, fill_from)
        if self._load is not None and (load_due := self._load.next_due_ns) is not None:
            due = min(due, load_due)
        if self._is_behind:
            behind_from = self._behind_from_ns
            if max(self._clock.monotonic_ns(), behind_from) < due - QUIET_NS:
                return behind_from
        return due

    def tick(self) -> None:
        """Do what is due, in order; where nothing is, a slice of the work behind the head."""
        now = self._clock.monotonic_ns()
        if self._load is not None:
            self._take_load(self._load, now)
        if not self._do_what_is_due(now) and not self._fill_ahead(now):
            self._catch_up()

    def _close_soon(self) -> None:
        """Let an index be due by itself, where transactions close them and one can run."""
        gap_ns = self._gap_ns
        if gap_ns is not None and self._instant_due_ns is None and self._pool.best() is not None:
            earliest = self._closed_at_ns + gap_ns
            self._instant_due_ns = max(self._clock.monotonic_ns(), earliest)

    @property
    def _stores_quietly(self) -> bool:
        """Return True if an empty index is stored by its position alone."""
        return True

    @property
    def _gap_ns(self) -> int | None:
        """From one index to the next where transactions close them; none where slots do."""
        return INSTANT_GAP_NS if self._chain.instant else None

    # --- What is due -------------------------------------------------------------------

    @property
    def _index_due_ns(self) -> int:
        """When the next index is to be closed, or the block where it was the last."""
        due = self._schedule.next_end_ns(self._slot)
        return due if self._instant_due_ns is None else min(due, self._instant_due_ns)

    @property
    def _fill_from_ns(self) -> int | None:
        """When transactions may start to run before their index is due; none: there are none.

        Where transactions close indices, an index is due when there is one.
        """
        if self._gap_ns is not None or not self._may_run_more:
            return None
        fill_from = self._schedule.fill_from_ns(self._slot)
        is_empty = not self._block.open_count
        if is_empty and self._overruns.waits_for_all_the_time(self._pool.best()):
            return self._closed_at_ns
        return fill_from

    def _do_what_is_due(self, now_ns: int) -> bool:
        done = False
        if self._block.index == 0:
            self._announce(self._writer.extend(self._block), now_ns, now_ns)
            self._close_soon()  # what came before the block began
            done = True
        ended = self._schedule.ended(now_ns)
        instant = self._instant_due_ns is not None and now_ns >= self._instant_due_ns
        if ended > self._slot or instant:
            self._end_index(ended, now_ns)
            done = True
        if now_ns >= self._schedule.end_ns:
            assert not self._ran, "the last index has been closed, and nothing runs after it"
            self._turn_over(now_ns)
            done = True
        return done

    def _end_index(self, slot: int, now_ns: int) -> None:
        """Fill the index up to the end of this slot and commit it."""
        due_ns = self._index_due_ns
        self._slot = slot
        self._pool.begin_index()
        self._fill(self._budget(slot), due_ns)
        flashblock = self._writer.extend(self._block, quietly=self._stores_quietly)
        self._announce(flashblock, now_ns, due_ns)

    def _budget(self, slot: int) -> Budget:
        """By the end of a slot; where transactions close indices, of the whole block."""
        limit, slots = self._block.base.gas_limit, self._schedule.slots
        if self._gap_ns is not None or not slots:
            return Budget(limit)
        return budget(slot, slots, limit)

    def _fill_ahead(self, now_ns: int) -> bool:
        """Run a few of those that wait for the next index; false where it is not time to."""
        fill_from = self._fill_from_ns
        if fill_from is None or now_ns < fill_from:
            return False
        self._fill(self._budget(self._slot + 1), self._index_due_ns, AHEAD)
        return True

    def _fill(self, until: Budget, due_ns: int, most: int | None = None) -> None:
        """Run what fits into an index, the best first, `most` of them at most."""
        block, pool, ran = self._block, self._pool, self._ran
        enough = None if most is None else block.count + most
        now = self._clock.monotonic_ns()
        ends_ns = runs_until_ns(due_ns, now, self._schedule.interval_ns)
        allowance = Allowance(time_us=(ends_ns - now) // 1_000, least_us=LEAST_US)
        while not until.is_spent(block.gas_used) and (best := pool.best()) is not None:
            if block.count == enough:
                return
            if not self._fits(best, until):
                pool.set_aside(best)
                continue
            try:
                run_in_turn(block, best.transaction, allowance)
            except InvalidTransaction as invalid:
                log.info("transaction_dropped", hash=best.hash.hex(), why=invalid.why)
                pool.failed(best)
            except OverBudget:
                self._overran(best)
                break
            else:
                pool.included(best)
                ran[best.hash] = best.transaction
            if self._clock.monotonic_ns() >= ends_ns:
                break
        self._may_run_more = False

    def _fits(self, pooled: Pooled, until: Budget) -> bool:
        block = self._block
        if not until.fits(pooled, block.gas_used, block.da_footprint):
            return False
        if pooled.blobs and not (self._terms.blobs and self._terms.blobs.take(pooled, block.blobs)):
            return False
        if block.rules.block_size_limited and block.size + pooled.size > MOST_BYTES:
            return False
        return self._overruns.may_run(pooled, is_first=not block.open_count)

    def _overran(self, pooled: Pooled) -> None:
        """Put a transaction aside that takes too long for its index, or give it up."""
        is_last_try = self._overruns.add(pooled)
        log.warning(
            "transaction_dropped" if is_last_try else "transaction_put_aside",
            hash=pooled.hash.hex(),
            gas=pooled.gas_limit,
            why=f"it runs for longer than an interval of {self._interval_ms} ms allows",
        )
        if is_last_try:
            self._pool.failed(pooled)
        else:
            self._pool.set_aside(pooled)

    def _turn_over(self, now_ns: int, builder: CommitBuilder | None = None) -> None:
        """Seal the block and begin the next, in one commit with the steps of `builder`."""
        block, writer, due_ns = self._block, self._writer, self._schedule.end_ns
        sealed = writer.header_if_sealed(block)
        base = self._base_on(sealed)
        following = writer.begin_next(block, sealed, base, self._id_of(base))
        self._start(following)
        flashblock = writer.seal_and_extend(block, sealed, following, builder)
        self._go_on_with(following, flashblock, now_ns, due_ns)

    def _go_on_with(
        self, block: BlockInProgress, flashblock: Flashblock, now_ns: int, due_ns: int
    ) -> None:
        """Go on with a block that has its first index, or its cheats as well."""
        self._block = block
        self._schedule = self._schedule_of(block)
        self._slot = self._schedule.slots_before
        self._terms = self._terms_of(block)
        self._pool.begin_block(self._terms)
        self._overruns.keep_only(self._pool)
        self._pool_is_stale = True
        self._announce(flashblock, now_ns, due_ns)

    def _announce(self, flashblock: Flashblock, now_ns: int, due_ns: int) -> None:
        self._closed_at_ns = now_ns
        self._instant_due_ns = None
        self._ran.clear()
        self._pool.begin_index()
        self._overruns.end_index()
        self._may_run_more = True
        self._writer_is_behind = True
        self._writer.metrics.readable(self._writer.committed_at_ns - now_ns)
        self._publish(flashblock)
        log.debug(
            "flashblock",
            block=flashblock.block_number,
            index=flashblock.index,
            transactions=len(flashblock.diff.transactions),
            waiting=self.waiting,
            due_ns=due_ns,
            begun_ns=now_ns,
            committed_ns=self._writer.committed_at_ns,
            commit_ns=self._writer.commit_took_ns,
        )

    # --- Beginning a block -------------------------------------------------------------

    def _begin_on(self, latest: Header) -> BlockInProgress:
        base = self._base_on(latest)
        block = self._writer.begin(base, self._id_of(base))
        self._start(block)
        return block

    def _start(self, block: BlockInProgress) -> None:
        """Run the transactions that a block begins with."""
        seed, block_time = self._chain.seed, self._state.block_time
        for transaction in first_transactions(block.base, block.rules, seed, block_time):
            block.run(transaction)

    def _id_of(self, base: Base) -> bytes:
        """The payload id of a block that is begun for the first time."""
        return payload_id(base, self._chain.seed)

    def _base_on(self, parent: Header) -> Base:
        wall_ns = self._wall_ns()
        timestamp = next_timestamp(parent.timestamp, wall_ns, self._state.block_time)
        _tell_about_time(parent, timestamp, wall_ns, self._state.block_time)
        return self._next_base(parent, timestamp)

    def _next_base(self, parent: Header, timestamp: int, instead_of: bytes = b"") -> Base:
        return next_base(
            parent, timestamp, self._writer.profile, self._chain.seed, self._state, instead_of
        )

    def _terms_of(self, block: BlockInProgress) -> Terms:
        """The terms on which a block takes transactions."""
        cap = self._chain.transaction_gas or None
        return terms_of(block.base, self._writer.profile, cap, block.excess_blob_gas)

    def _schedule_of(self, block: BlockInProgress) -> Schedule:
        return schedule(
            self._state.block_time,
            self._interval_ms,
            block.base.timestamp,
            self._wall_ns(),
            self._clock.monotonic_ns(),
            slots_before=max(block.index - 1, 0),
        )

    @property
    def _interval_ms(self) -> int:
        """The time between flashblocks; that of the settings if they are closed on demand."""
        return self._state.interval_ms or self._chain.interval_ms

    def _wall_ns(self) -> int:
        """The date by which the chain goes."""
        return self._clock.wall_ns()

    def _account(self, address: bytes) -> Account | None:
        return self._block.account(address)

    # --- Behind the head ---------------------------------------------------------------

    @property
    def _is_behind(self) -> bool:
        wanting = self._load is not None and self._load.wants_to_sign
        return self._pool_is_stale or self._writer_is_behind or wanting

    @property
    def _behind_from_ns(self) -> int:
        """When work behind the head may be done; 0 for at once."""
        return 0

    def _catch_up(self) -> None:
        if self._pool_is_stale:
            self._pool.drop_invalid()
            self._pool_is_stale = False
        elif self._writer_is_behind:
            self._writer_is_behind = self._writer.follow_up()
        elif self._load is not None and self._load.wants_to_sign:
            self._load.sign_some(self.next_nonce)

    def _take_load(self, load: Load, now_ns: int) -> None:
        for transaction in load.due(now_ns):
            try:
                self.submit(transaction)
            except PoolRefusal as refusal:
                log.debug("load_refused", why=str(refusal))
                load.refused(transaction)


def _tell_about_time(parent: Header, timestamp: int, wall_ns: int, block_time: int) -> None:
    """Say when the chain's time and the date have come apart."""
    ahead = parent.timestamp - wall_ns // SECOND_NS
    if ahead > block_time:
        log.warning("clock_behind_chain", seconds=ahead, block=parent.number + 1)
    skipped = (timestamp - parent.timestamp) // block_time - 1
    if skipped and parent.number:
        log.warning("blocks_skipped", count=skipped, block=parent.number + 1)
