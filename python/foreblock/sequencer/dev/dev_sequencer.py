"""The sequencer of a dev chain that is mined by the clock, by transactions, or on command.

    clock      a flashblock every interval, a block every block time
    automine   a transaction is an index, and its block is sealed in the same commit
    manual     a transaction is in the next flashblock, or in one of its own where only sealed
               blocks are shown; blocks are sealed by `mine` only

Beside the clock, nothing happens while nothing is sent: no index without a transaction. A
block in progress there has the time of its last change; one that a transaction or a command
ends is begun anew with the time of that moment first, unless its time was asked for.

Time is the clock's plus an offset. What a block begins with cannot be changed once it has
begun, so a change begins it anew as another job, in which its transactions run again.

A command changes the block in progress, its time or the state beside the blocks in memory;
`flush` commits that. Whatever else needs the committed chain flushes first, and a tick does so
`LONGEST_UNCOMMITTED_NS` after the first change.

How the mode is kept is in `ledger.storage.dev_rows`, how accounts are set by hand in `cheating`.
Commands are in `execution`.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, NamedTuple

import structlog
from msgspec import structs

from foreblock.bus.commands import SendUnsigned
from foreblock.clock import SECOND_NS, Clock
from foreblock.ledger.building.block_in_progress import BlockInProgress
from foreblock.ledger.building.chain_rewriting import BlockRun
from foreblock.ledger.building.commit_builder import CommitBuilder
from foreblock.ledger.building.ledger_writer import LedgerWriter
from foreblock.ledger.storage import dev_rows
from foreblock.ledger.storage.dev_rows import DevState
from foreblock.sequencer.admission import Terms
from foreblock.sequencer.attributes import ATTRIBUTES_GAS_USED, payload_id
from foreblock.sequencer.chaos.chaotic_sequencer import ChaoticSequencer
from foreblock.sequencer.chaos.faults import Faults
from foreblock.sequencer.index_limits import Budget
from foreblock.sequencer.load import Load
from foreblock.sequencer.timing import NEVER_NS, Schedule, next_timestamp, unscheduled
from foreblock.sequencer.unsigned import make_unsigned
from foreblock.settings import ChainSettings
from foreblock.types import Base, Flashblock, Header, Transaction

MILLISECOND_NS: Final = 10**6
FRESH_FOR_BLOCKS: Final = 2
# Beside the clock: how often a pending block is said to be fresh, and for how long.
REFRESH_NS: Final = 10 * SECOND_NS
REFRESHED_FOR_NS: Final = 30 * SECOND_NS
BRANCH_SHIFT: Final = 40  # in the attempt of a payload id, above those of begun blocks
MOST_STACKED: Final = 64  # blocks that are built on one view of the store
# Beside the clock: how long work behind the head waits for a pause, and for how many blocks.
REST_NS: Final = 10 * MILLISECOND_NS
MOST_UNFOLLOWED: Final = 16
CATCH_UP_NS: Final = 20 * MILLISECOND_NS  # then, at once, before the next transaction
STEPS_NS: Final = MILLISECOND_NS  # of such work in one go, else
LONGEST_UNCOMMITTED_NS: Final = 100 * MILLISECOND_NS

log = structlog.get_logger()


class FeedSink(NamedTuple):
    """Sends flashblocks to the feed, and the faults that the feed has."""

    publish: Callable[[Flashblock], None]
    publish_conflicting: Callable[[Flashblock], None]  # instead of one that is published
    set_faults: Callable[[Faults], None] = lambda _: None


class DevSequencer(ChaoticSequencer):
    """Builds the blocks of a dev chain, and changes it as it is told."""

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
        with writer.store.view() as view:
            found = dev_rows.read_dev_state(view)
        self._state = structs.replace(found or state, shows_sealed=state.shows_sealed)
        self._refreshed_at_ns = 0
        self._followed_to = 0  # the block in progress when nothing was behind
        self._has_pool = False
        self._changed_at_ns: int | None = None  # by the first command that is not committed
        self._is_retimed = False  # the time was changed after the block in progress had begun
        self._set_lifetime(writer)
        faults = Faults.parse(self._state.faults, chain.seed)
        publish, contradict = sink.publish, sink.publish_conflicting
        super().__init__(writer, clock, chain, self._state, publish, load, faults, contradict)
        self._has_pool = True
        if self._state != found:
            self.change()

    # --- The state beside the blocks ---------------------------------------------------

    @property
    def state(self) -> DevState:
        """How the chain is mined, its time, its liberties."""
        return self._state

    def change(self, **fields: Any) -> None:  # noqa: ANN401, fields of the state
        """Change the state; it is stored with the next commit."""
        self._state = structs.replace(self._state, **fields)
        if "block_time" in fields or "mining" in fields:
            self._set_lifetime(self._writer)
        self._writer.put_extra_row(dev_rows.KEY, dev_rows.encode_dev_state(self._state))

    def mark_changed(self) -> None:
        """Let the next flush commit what a command has changed."""
        if self._changed_at_ns is None:
            self._changed_at_ns = self._clock.monotonic_ns()

    @property
    def has_uncommitted(self) -> bool:
        """Return True if `flush` has something to commit."""
        if self._changed_at_ns is None:
            return False
        return self._has_open_edits or self._is_retimed or self._writer.has_extra_rows

    @property
    def _has_open_edits(self) -> bool:
        return bool(self._block.open_edits)

    def flush(self) -> None:
        """Commit what commands have changed."""
        if not self.has_uncommitted:
            self._changed_at_ns = None
            return
        if self._has_open_edits:
            self._commit_edits()
        if self._is_retimed:
            self._is_retimed = False
            self.begin_at(None)
        if self._writer.has_extra_rows:
            self._writer.refresh()
        self._changed_at_ns = None

    def _commit_edits(self) -> None:
        """Commit the index of accounts that were set."""
        now_ns, is_behind = self._clock.monotonic_ns(), self._writer_is_behind
        self._announce(self._writer.extend(self._block), now_ns, now_ns)
        self._writer_is_behind = is_behind  # its root is known, and there is nothing to fold
        self._close_soon()

    def _set_lifetime(self, writer: LedgerWriter) -> None:
        """How long its pending block counts as fresh."""
        writer.lifetime_ns = FRESH_FOR_BLOCKS * self._state.block_time * SECOND_NS
        if not self._by_clock:
            writer.lifetime_ns = max(writer.lifetime_ns, REFRESHED_FOR_NS)

    @property
    def _by_clock(self) -> bool:
        return self._state.mining == "clock"

    @property
    def _seals_with_transactions(self) -> bool:
        return self._state.mining == "automine"

    @property
    def _waits_for_commands(self) -> bool:
        """Return True if transactions are shown as waiting until a command seals their block.

        They run at once, as whoever asks for `pending` expects, and can be taken out again.
        """
        return self._state.shows_sealed and self._state.mining == "manual"

    # --- Time and pace -----------------------------------------------------------------

    def _wall_ns(self) -> int:
        return self._clock.wall_ns() + self._state.offset * SECOND_NS

    def _schedule_of(self, block: BlockInProgress) -> Schedule:
        if self._by_clock and self._state.interval_ms:
            return super()._schedule_of(block)
        timed = super()._schedule_of(block)
        ends = self._by_clock or self._state.also_clock
        return unscheduled(timed.slots_before, timed.end_ns if ends else NEVER_NS)

    @property
    def _gap_ns(self) -> int | None:
        if self._seals_with_transactions:
            return 0
        if self._waits_for_commands:
            return 0 if self._state.interval_ms else None
        if self._by_clock and self._state.interval_ms:
            return super()._gap_ns
        # On demand only, where there is no interval.
        return self._state.interval_ms * MILLISECOND_NS or None

    @property
    def next_due_ns(self) -> int:
        """When there is something to do, on the monotonic clock; 0 for at once."""
        due = super().next_due_ns
        if self._changed_at_ns is not None:
            due = min(due, self._changed_at_ns + LONGEST_UNCOMMITTED_NS)
        return due if self._by_clock else min(due, self._refreshed_at_ns + REFRESH_NS)

    def tick(self) -> None:
        """Do what is due."""
        self.flush()
        super().tick()

    @property
    def _is_far_behind(self) -> bool:
        """Return True if work behind the head can wait no longer, apart from the clock."""
        return not self._by_clock and self._block.number - self._followed_to >= MOST_UNFOLLOWED

    @property
    def _behind_from_ns(self) -> int:
        """Beside the clock, who has just sent something probably sends more, and would wait."""
        at_once = self._by_clock or self._is_far_behind
        return 0 if at_once else self._writer.committed_at_ns + REST_NS

    def _catch_up(self) -> None:
        """Beside the clock several steps: most are short, and handing over each costs as much.

        Who sends without a pause adds as much in between as one step does.
        """
        steps_ns = CATCH_UP_NS if self._is_far_behind else STEPS_NS
        until_ns = 0 if self._by_clock else self._clock.monotonic_ns() + steps_ns
        super()._catch_up()
        while self._is_behind and self._clock.monotonic_ns() < until_ns:
            super()._catch_up()
        if not self._is_behind:
            self._followed_to = self._block.number

    def settle(self) -> None:
        """Do what must have happened when those who sent transactions are answered."""
        if self._waits_for_commands:
            self.flush()
        if self._seals_with_transactions or self._waits_for_commands:
            self._do_what_is_due(self._clock.monotonic_ns())

    def _do_what_is_due(self, now_ns: int) -> bool:
        done = super()._do_what_is_due(now_ns)
        if not self._by_clock and now_ns >= self._refreshed_at_ns + REFRESH_NS:
            self._refreshed_at_ns = now_ns
            if not done:
                self._writer.refresh()
            if self._block.index == 1 and not self._block.open_count:
                self._block = self._on_a_new_view(self._block)
        return done

    def _base_on(self, parent: Header) -> Base:
        timestamp = self._timestamp_after(parent.timestamp)
        base = self._next_base(parent, timestamp)
        return self._wide_enough(self._with_wishes(base))

    def _timestamp_after(self, parent: int) -> int:
        state = self._state
        if state.timestamp_interval is not None:
            return parent + max(state.timestamp_interval, 1)
        if self._by_clock:
            return next_timestamp(parent, self._wall_ns(), state.block_time)
        return max(parent + 1, self._wall_ns() // SECOND_NS)

    def _with_wishes(self, base: Base) -> Base:
        coinbase = self._state.coinbase
        return base if coinbase is None else replace(base, fee_recipient=coinbase)

    def _id_of(self, base: Base) -> bytes:
        # A chain that was taken back may come to the same parent again, with another block on it.
        attempt = self._state.branches << BRANCH_SHIFT
        return payload_id(base, self._chain.seed, attempt)

    def _wide_enough(self, base: Base, start_gas: int | None = None) -> Base:
        """The base with gas for the next transaction, where that asks for all that a block has.

        A block that begins with a deposit has that much more gas than others.
        """
        if start_gas is None:
            start_gas = 0 if self._writer.profile.optimism is None else ATTRIBUTES_GAS_USED
        best = self._pool.best() if self._has_pool else None
        needed = 0 if best is None else best.gas_limit + start_gas
        if needed <= base.gas_limit:
            return base
        if self._state.gas_limit is None:
            self.change(gas_limit=base.gas_limit)  # of those that follow
        return replace(base, gas_limit=needed)

    def _terms_of(self, block: BlockInProgress) -> Terms:
        """A transaction may have the gas limit of a block, as users see it in headers.

        Where the base fee was set below the minimum, it may offer as little.
        """
        terms = super()._terms_of(block)
        gas_limit = max(block.base.gas_limit, block.parent.gas_limit)
        minimum = min(terms.minimum_base_fee, terms.base_fee)
        if (gas_limit, minimum) == (terms.gas_limit, terms.minimum_base_fee):
            return terms
        return structs.replace(terms, gas_limit=gas_limit, minimum_base_fee=minimum)

    def _another_id(self, base: Base) -> bytes:
        self.change(attempts=self._state.attempts + 1)
        return payload_id(base, self._chain.seed, attempt=self._state.attempts)

    # --- Blocks on demand --------------------------------------------------------------

    def _end_index(self, slot: int, now_ns: int) -> None:
        if self._seals_with_transactions:
            while self._pool.best() is not None and self.mine(only_with_transactions=True):
                pass
            self._instant_due_ns = None
        else:
            super()._end_index(slot, now_ns)

    def _turn_over(self, now_ns: int, builder: CommitBuilder | None = None) -> None:
        self.flush()
        self._end_block()
        super()._turn_over(now_ns, builder)

    def _end_block(self) -> None:
        """Forget what was said of the block in progress."""
        if self._state.keeps_time or self._state.is_cheated:
            self.change(keeps_time=False, is_cheated=False)

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
        Gives how many transactions ran; where there has to be one, none seals nothing.
        """
        keeps_time = self._by_clock or self.has_transactions
        if self._has_open_edits or (self._is_retimed and keeps_time):
            self.flush()
        now_ns, before = self._clock.monotonic_ns(), self._block
        run = BlockRun(self._writer, self._clock, before)
        self._renew(run, timestamp)
        self._fill_whole(run)
        if only_with_transactions and not self._ran:
            run.close()
            self._block = before
            return 0
        self._is_retimed = False
        self._end_block()
        for left in reversed(range(blocks)):
            base = self._base_on(run.seal())
            if interval is not None and left:
                base = replace(base, timestamp=run.latest.timestamp + max(interval, 1))
            self._block = run.begin(base, self._id_of(base))
            self._start(self._block)
            run.close_index()
            if left and self._pool.best() is not None:
                self._pool.begin_block(self._terms_of(self._block))
                self._fill_whole(run)
        ran = len(self._ran)
        *earlier, last = run.commit()
        for flashblock in earlier:
            self._publish(flashblock)
        block = run.block
        if block.stacked >= MOST_STACKED:
            block = self._on_a_new_view(block)
        self._go_on_with(block, last, now_ns, now_ns)
        return ran

    def _fill_whole(self, run: BlockRun) -> None:
        """Run all that fits into the block in progress, and close its index."""
        self._pool.begin_index()
        self._fill(Budget(self.base.gas_limit), self._clock.monotonic_ns())
        if run.block.open_count or not run.block.index:
            run.close_index()

    def _on_a_new_view(self, block: BlockInProgress) -> BlockInProgress:
        """A block that has only begun, begun again: its view has been open for long enough.

        While a view is open, the store reuses no pages that were freed since. A block that
        began with more than every block does keeps its own.
        """
        if self._state.is_cheated:
            return block
        again, (partial,) = self._writer.begin(block.base, block.payload_id), block.partials
        self._start(again)
        again.committed(partial, again.close_index(partial).header)
        if again.header != block.header:
            again.close()
            return block
        self._writer.close()
        self._writer.current = again
        return again

    def _renew(self, run: BlockRun, timestamp: int | None) -> None:
        """Let the block in progress have this timestamp, or that of now, and gas for what is next.

        All in it runs again then.
        """
        block = self._block
        wanted = block.base.timestamp
        if timestamp is not None:
            wanted = timestamp
        elif not (self._by_clock or self._state.keeps_time or self.has_transactions):
            wanted = self._timestamp_after(block.parent.timestamp)
        start_gas = max(block.gas_used, ATTRIBUTES_GAS_USED) if self._first_count else 0
        base = block.base
        if wanted != base.timestamp:
            base = replace(base, timestamp=wanted)
        if not self.has_transactions:
            base = self._wide_enough(base, start_gas)
        if base == block.base:
            return
        given_up = self._given_up()
        self._block = run.begin_anew(base, self._another_id(base), "it begins otherwise")
        self._start(self._block)
        run.close_index()
        self._cheat_again(run, block)
        self._ran.clear()
        self._put_back(given_up)

    def begin_anew(self, base: Base) -> None:
        """Begin the block in progress anew with another base; all in it will run again."""
        now_ns = self._clock.monotonic_ns()
        self._restart(now_ns, now_ns, base)
        self._schedule = self._schedule_of(self._block)
        self._slot = self._schedule.slots_before
        self._close_soon()

    # --- Time and what blocks begin with -----------------------------------------------

    def begin_at(self, timestamp: int | None) -> None:
        """Let the block in progress have this timestamp, or that of now."""
        wanted = timestamp or self._timestamp_after(self.parent.timestamp)
        if wanted == self.base.timestamp:
            self.mark_changed()
        else:
            self.begin_anew(replace(self.base, timestamp=wanted))

    def extra_data(self) -> bytes:
        """The extra data of a block that would begin now."""
        return self._base_on(self.parent).extra_data

    def submit_unsigned(self, asked: SendUnsigned) -> Transaction:
        """Take a transaction without a signature into the pool; raises a `PoolRefusal`."""
        nonce = self.next_nonce(asked.sender) if asked.nonce is None else asked.nonce
        base_fee, chain = self.base.base_fee_per_gas, self._writer.profile
        transaction = make_unsigned(asked, nonce, self._chain.seed, base_fee, chain)
        self.submit(transaction, may_replace=False)
        return transaction

    def drop(self, hash: bytes | None, sender: bytes | None) -> list[bytes]:
        """Take transactions out of the pool: one, those of a sender, or all; gives their hashes.

        What has run is in the block already.
        """
        if hash is not None:
            dropped = self._pool.drop(each for each in (hash,) if each in self._pool)
        elif sender is not None:
            dropped = self._pool.drop([each.hash for each, _ in self._pool.of_sender(sender)])
        else:
            dropped = self._pool.drop([each.hash for each in self._pool])
        return dropped

    @property
    def wall_seconds(self) -> int:
        """The time of the machine."""
        return self._clock.wall_ns() // SECOND_NS

    def follow_time(self, timestamp: int) -> None:
        """Let this be the time of the chain now."""
        self.change(offset=timestamp - self.wall_seconds)

    def set_offset(self, offset: int) -> None:
        """Let time be so much ahead, for the block in progress, too."""
        self.change(offset=offset, keeps_time=False)
        self._is_retimed = True
        self.mark_changed()

    def catch_up_with_blocks(self) -> None:
        """Let the time be that of the latest block, where that is ahead of it."""
        ahead = self.parent.timestamp - self._wall_ns() // SECOND_NS
        if ahead > 0:
            self.change(offset=self._state.offset + ahead)

    def reschedule(self) -> None:
        """Go on as the state says, after it has changed."""
        self._schedule = self._schedule_of(self._block)
        self._slot = self._schedule.slots_before
        self._instant_due_ns = None
        self._close_soon()
        self.mark_changed()

    @property
    def base(self) -> Base:
        """The base of the block in progress."""
        return self._block.base

    @property
    def parent(self) -> Header:
        """The latest sealed block."""
        return self._block.parent

    @property
    def has_transactions(self) -> bool:
        """Return True if the block in progress has more than the start of every block."""
        return self._block.count > self._first_count or bool(self._ran)

    @property
    def _first_count(self) -> int:
        """How many transactions every block begins with."""
        return 0 if self._block.rules.optimism is None else 1
