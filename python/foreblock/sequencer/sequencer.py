"""The sequencer of a dev chain: transactions in, blocks out, index by index.

It never waits. The caller sleeps until `next_due_ns` and calls `tick`, on the one thread that
writes the network. Between two commits nothing is kept but the pool, so a sequencer that is
killed continues with the block that its last commit left, under the same payload id.

    Mining         when indices and blocks are due, and what blocks begin with
    BlockBuilder   the block in progress and the pool: fill, commit, seal
    BlockChanges   restart the block in progress, set its time, edit its state
    Rewriter       drop a tail, replace or abandon sealed blocks, snapshots
    Mirroring      on a mirror, take over blocks of the real chain, in place of these three

Slots that were missed are left out: everything that waits goes into the next index. A fault of the
chain happens instead of one step: a restart instead of an index, a reorganisation or a dropped
tail instead of a seal. Commands are in `commands`; they use the same operations.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import structlog

from foreblock.bus.commands import ResetFork, SetForkUrl
from foreblock.clock import Clock
from foreblock.errors import (
    AlreadyKnown,
    FeeCapBelowBaseFee,
    PoolRefusal,
    RefusedCommand,
    ReplacementUnderpriced,
)
from foreblock.ledger.building.chain_rewriting import BlockRun
from foreblock.ledger.building.ledger_writer import LedgerWriter
from foreblock.ledger.rules.transaction_rules import DEPOSIT
from foreblock.ledger.storage.dev_rows import DevState
from foreblock.sequencer.admission import admit
from foreblock.sequencer.block_builder import BlockBuilder
from foreblock.sequencer.block_changes import BlockChanges
from foreblock.sequencer.faults.feed import FeedSink
from foreblock.sequencer.faults.plan import ChainFaults, FaultKind
from foreblock.sequencer.load import Load
from foreblock.sequencer.mining import MILLISECOND_NS, REFRESH_NS, Mining
from foreblock.sequencer.mirroring import Mirroring
from foreblock.sequencer.pool_snapshot import PoolReader
from foreblock.sequencer.rewriter import BlockToReplay, Rewriter
from foreblock.sequencer.transaction_pool import outbids
from foreblock.settings import ChainSettings
from foreblock.types import Transaction

# No slice of work behind the head is begun within this time of something due.
QUIET_NS: Final = 5 * MILLISECOND_NS
# Without the clock: how long work behind the head waits for a pause, and for how many blocks.
REST_NS: Final = 10 * MILLISECOND_NS
MOST_UNFOLLOWED: Final = 16
CATCH_UP_NS: Final = 20 * MILLISECOND_NS  # then, at once, before the next transaction
STEPS_NS: Final = MILLISECOND_NS  # of such work in one go, otherwise
MOST_STACKED: Final = 64  # blocks that are built on one view of the store
LONGEST_REORG: Final = 3  # sealed blocks that a fault replaces

NO_FORK: Final = "the chain is not a fork; start one with --fork-url"

log = structlog.get_logger()


def _refuse(_: ResetFork | SetForkUrl) -> None:
    raise RefusedCommand(NO_FORK)


class Sequencer:
    """Builds the blocks of one network, and changes the chain on command."""

    def __init__(
        self,
        writer: LedgerWriter,
        clock: Clock,
        chain: ChainSettings,
        state: DevState,
        sink: FeedSink,
        load: Load | None = None,
        first_block: BlockToReplay | None = None,
    ) -> None:
        """Continue with the block that is open, or begin one; the first `tick` commits it.

        `state` is that of a chain that has none yet, and a fork has a `first_block` then. Raises
        `InvalidTransaction` or `EndpointError` if that cannot be executed.
        """
        self.mining: Final = Mining(writer, clock, chain, state)
        self.faults: Final = ChainFaults(self.mining.state.faults, chain.seed, sink.set_faults)
        self.builder: Final = BlockBuilder(writer, clock, self.mining, sink, self.faults)
        self.changes: Final = BlockChanges(self.builder)
        self.rewriter: Final = Rewriter(self.builder, self.changes, load, first_block)
        self.mirroring: Final = Mirroring(self.builder, self.changes)
        self._writer: Final = writer
        self._clock: Final = clock
        self._load: Final = load
        self._refreshed_at_ns = 0
        self._followed_to = 0  # the block in progress when nothing was behind
        if first_block is not None and self.mining.is_new:
            self.rewriter.begin()
        # Executes commands about the fork that the chain began as.
        self.change_fork: Callable[[ResetFork | SetForkUrl], None] = _refuse

    # --- Transactions ------------------------------------------------------------------

    def submit(self, transaction: Transaction, *, may_replace: bool = True) -> None:
        """Add a transaction to the pool; raises a `PoolRefusal`.

        If only sealed blocks are shown it has to pay the base fee of the block in progress, as in
        anvil, and may replace one that has run in it.
        """
        if self.mining.state.shows_sealed:
            self._check_base_fee(transaction)
        old = self._replaceable(transaction.sender, transaction.nonce) if may_replace else None
        if old is not None:
            self._check_replacing(transaction, old)
            self.restart_block()
        self.builder.add(transaction, may_replace=may_replace)

    def drop(self, hash: bytes | None, sender: bytes | None) -> list[bytes]:
        """Drop transactions that wait: one, those of a sender, or all; returns their hashes.

        What has run stays, unless it waits for its block to be sealed by a command.
        """
        if any(
            hash in (None, each.hash) and sender in (None, each.sender)
            for each in self._shown_as_waiting()
        ):
            self.restart_block()
        pool = self.builder.pool
        if hash is not None:
            return pool.drop(each for each in (hash,) if each in pool)
        if sender is not None:
            return pool.drop([each.hash for each, _ in pool.of_sender(sender)])
        return pool.drop([each.hash for each in pool])

    def run_immediate(self) -> None:
        """Do what must happen before the senders of transactions get their responses."""
        mining = self.mining
        if mining.waits_for_commands:
            self.changes.flush()
        if mining.seals_with_transactions or mining.waits_for_commands or mining.mirrors:
            self._run_due(self._clock.monotonic_ns())

    def next_nonce(self, sender: bytes) -> int:
        """The nonce of the sender's next transaction, after its account and what can run."""
        return self.builder.pool.next_nonce(sender)

    def next_nonces(self, most: int) -> dict[bytes, int]:
        """The next nonces of at most `most` senders whose transactions are not committed."""
        ran = (each.sender for each in self.builder.ran.values())
        senders = itertools.islice(itertools.chain(ran, self.builder.pool.senders()), most)
        return {sender: self.next_nonce(sender) for sender in set(senders)}

    @property
    def window(self) -> PoolReader:
        return PoolReader(self.builder.pool, self.builder.ran)

    def _shown_as_waiting(self) -> list[Transaction]:
        """The transactions of the block in progress that are shown as in the pool."""
        is_shown = self.mining.waits_for_commands and self.builder.has_transactions
        return self.builder.open_transactions() if is_shown else []

    def _replaceable(self, sender: bytes, nonce: int) -> Transaction | None:
        """The transaction with this nonce that has run and is shown as waiting."""
        account = self.builder.block.account(sender)
        if account is None or nonce >= account.nonce:
            return None
        waiting = self._shown_as_waiting()
        return next((one for one in waiting if (one.sender, one.nonce) == (sender, nonce)), None)

    def _check_base_fee(self, transaction: Transaction) -> None:
        cap = transaction.max_fee_per_gas
        cap = transaction.gas_price if cap is None else cap
        base_fee = self.builder.base.base_fee_per_gas
        if transaction.type != DEPOSIT and cap is not None and cap < base_fee:
            raise FeeCapBelowBaseFee(cap, base_fee)

    def _check_replacing(self, new: Transaction, old: Transaction) -> None:
        if new.hash == old.hash:
            raise AlreadyKnown
        terms = self.builder.terms
        if not outbids(admit(new, terms, 0), admit(old, terms, 0)):
            raise ReplacementUnderpriced

    # --- Due work ----------------------------------------------------------------------

    @property
    def next_due_ns(self) -> int:
        """When there is something to do, on the monotonic clock; 0 for at once."""
        due = self._block_due_ns
        if (flush_due := self.changes.due_ns) is not None:
            due = min(due, flush_due)
        return due if self.mining.by_clock else min(due, self._refreshed_at_ns + REFRESH_NS)

    @property
    def _block_due_ns(self) -> int:
        builder = self.builder
        if builder.block.index == 0:
            return 0
        due = builder.index_due_ns
        if (fill_from := builder.fill_from_ns) is not None:
            due = min(due, fill_from)
        if self._load is not None and (load_due := self._load.next_due_ns) is not None:
            due = min(due, load_due)
        if self.is_behind:
            behind_from = self._behind_from_ns
            if max(self._clock.monotonic_ns(), behind_from) < due - QUIET_NS:
                return behind_from
        return due

    def tick(self) -> None:
        """Do what is due, in order; if nothing is, a slice of the work behind the head."""
        self.changes.flush()
        now = self._clock.monotonic_ns()
        if self._load is not None:
            self._submit_load(self._load, now)
        if not self._run_due(now) and not self.builder.fill_ahead(now):
            self._catch_up()

    def _run_due(self, now_ns: int) -> bool:
        builder = self.builder
        done = False
        if builder.block.index == 0:
            builder.commit_index(now_ns)
            builder.close_soon()  # transactions that arrived before the block
            done = True
        ended, instant_due_ns = builder.schedule.ended(now_ns), builder.instant_due_ns
        if ended > builder.slot or (instant_due_ns is not None and now_ns >= instant_due_ns):
            self._end_index(ended, now_ns)
            done = True
        if now_ns >= builder.schedule.end_ns:
            assert not builder.ran, "the last index has been closed, and nothing runs after it"
            self._seal(now_ns)
            done = True
        if not self.mining.by_clock and now_ns >= self._refreshed_at_ns + REFRESH_NS:
            self._refresh(now_ns, is_committed=done)
        return done

    def _end_index(self, slot: int, now_ns: int) -> None:
        builder = self.builder
        if self.mining.seals_with_transactions:
            while builder.pool.best() is not None and self.mine(only_with_transactions=True):
                pass
            builder.instant_due_ns = None
        elif slot > builder.slot and self._strikes(FaultKind.RESTART):
            due_ns = builder.index_due_ns
            builder.slot = slot
            self.changes.restart(now_ns=now_ns, due_ns=due_ns)
        else:
            builder.end_index(slot, now_ns)

    def _seal(self, now_ns: int) -> None:
        """Seal the block when its time is over."""
        self.changes.flush()
        self.mining.end_block()
        builder, latest = self.builder, self._writer.latest.number
        if latest >= LONGEST_REORG and self._strikes(FaultKind.REORG):
            depth = self.faults.depth(latest, LONGEST_REORG)
            self.rewriter.shift(depth, now_ns, builder.schedule.end_ns)
        elif len(builder.block.partials) > 1 and self._strikes(FaultKind.TAIL):
            self.rewriter.drop_tail(now_ns)
        else:
            builder.seal(now_ns)

    def _strikes(self, kind: FaultKind) -> bool:
        block = self.builder.block
        return self.faults.strikes(kind, block.number, block.index)

    def _refresh(self, now_ns: int, *, is_committed: bool) -> None:
        """Without the clock: mark the pending block as fresh, and renew its view."""
        self._refreshed_at_ns = now_ns
        if not is_committed:
            self._writer.refresh()
        builder = self.builder
        is_new = builder.block.index == 1 and not builder.block.open_count
        if is_new and not self.mining.mirrors:
            builder.block = builder.on_new_view(builder.block)

    def _submit_load(self, load: Load, now_ns: int) -> None:
        for transaction in load.due(now_ns):
            try:
                self.submit(transaction)
            except PoolRefusal as refusal:
                log.debug("load_refused", why=str(refusal))
                load.refused(transaction)

    # --- On demand ---------------------------------------------------------------------

    def mine(
        self,
        blocks: int = 1,
        timestamp: int | None = None,
        interval: int | None = None,
        *,
        only_with_transactions: bool = False,
    ) -> int:
        """Seal the block in progress with what can run, and more after it, in one commit.

        The first has the timestamp, if one is given; others are `interval` seconds apart.
        Returns how many transactions ran; with `only_with_transactions`, 0 seals nothing.
        """
        builder, changes, mining = self.builder, self.changes, self.mining
        changes.flush_before_mining()
        now_ns, before = self._clock.monotonic_ns(), builder.block
        run = BlockRun(self._writer, self._clock, before)
        changes.renew(run, timestamp)
        builder.fill_whole(run)
        if only_with_transactions and not builder.ran:
            run.close()
            builder.block = before
            return 0
        changes.forget_time()
        mining.end_block()
        for left in reversed(range(blocks)):
            base = builder.base_on(run.seal())
            if interval is not None and left:
                base = replace(base, timestamp=run.latest.timestamp + max(interval, 1))
            builder.block = run.begin(base, mining.id_of(base))
            builder.start(builder.block)
            run.close_index()
            if left and builder.pool.best() is not None:
                builder.pool.begin_block(mining.terms_of(builder.block))
                builder.fill_whole(run)
        ran = len(builder.ran)
        flashblocks, block = run.commit(), run.block
        if block.stacked >= MOST_STACKED:
            block = builder.on_new_view(block)
        builder.adopt(block, flashblocks, now_ns)
        return ran

    def discard_uncommitted(self) -> None:
        """Return to the committed state after a failure; transactions that had run wait again."""
        builder = self.builder
        ran = list(builder.ran.values())
        builder.ran.clear()
        builder.block = self._writer.open_block() or builder.block
        builder.put_back(ran)

    def restart_block(self) -> None:
        """Restart the block in progress; its transactions wait again."""
        self.changes.flush()
        self.changes.restart()

    def drop_tail(self) -> None:
        """Seal the block in progress without its last stored index and what came after it."""
        ran = list(self.builder.ran.values())
        self.builder.ran.clear()
        self.mining.end_block()
        self.rewriter.drop_tail(self._clock.monotonic_ns())
        self.builder.put_back(ran)

    # --- Behind the head ---------------------------------------------------------------

    @property
    def is_behind(self) -> bool:
        """Return True if there is work behind the head."""
        wanting = self._load is not None and self._load.wants_to_sign
        return self.builder.pool_is_stale or self.builder.writer_is_behind or wanting

    @property
    def _is_far_behind(self) -> bool:
        """Return True if work behind the head can wait no longer, without the clock."""
        is_long = self.builder.block.number - self._followed_to >= MOST_UNFOLLOWED
        return is_long and not self.mining.by_clock

    @property
    def _behind_from_ns(self) -> int:
        """When work behind the head may be done; 0 for at once.

        Without the clock, a client that has just sent something probably sends more, and would
        wait.
        """
        at_once = self.mining.by_clock or self._is_far_behind
        return 0 if at_once else self._writer.committed_at_ns + REST_NS

    def catch_up(self) -> None:
        """Do all work behind the head, however long it takes."""
        self.changes.flush()
        self._catch_up_until(math.inf)

    def _catch_up(self) -> None:
        """Do work behind the head: one step by the clock, several otherwise.

        Most are short, and handing over each costs as much. A client that sends without a pause
        adds as much in between as one step does.
        """
        steps_ns = CATCH_UP_NS if self._is_far_behind else STEPS_NS
        self._catch_up_until(0 if self.mining.by_clock else self._clock.monotonic_ns() + steps_ns)

    def _catch_up_until(self, until_ns: float) -> None:
        """Do at least one step of the work behind the head."""
        self._catch_up_once()
        while self.is_behind and self._clock.monotonic_ns() < until_ns:
            self._catch_up_once()
        if not self.is_behind:
            self._followed_to = self.builder.block.number

    def _catch_up_once(self) -> None:
        builder = self.builder
        if builder.pool_is_stale:
            builder.pool.drop_invalid()
            builder.pool_is_stale = False
        elif builder.writer_is_behind:
            builder.writer_is_behind = self._writer.follow_up()
        elif self._load is not None and self._load.wants_to_sign:
            self._load.sign_some(self.next_nonce)
