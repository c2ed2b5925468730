"""How a chain is mined: by the clock, by transactions, or on command.

    clock      a flashblock every interval, a block every block time
    automine   a transaction is an index, and its block is sealed in the same commit
    manual     a transaction is in the next flashblock, or in one of its own if only sealed
               blocks are shown; blocks are sealed by `Sequencer.mine` only
    mirror     a transaction is an index at once; blocks begin and end with those of another
               chain (`Mirroring`)

Without the clock nothing happens while nothing is sent: there is no index without a transaction.
A block in progress then has the time of its last change; one that a transaction or a command ends
is restarted with the time of that moment first, unless its time was requested.

The time of a chain is the clock's plus an offset. `Mining` decides when indices and blocks are due
and what blocks begin with. It holds the settings of the chain that commands change (`DevState`),
which are stored with the next commit, so a chain that was killed continues as it was.
"""

import math
from dataclasses import replace
from typing import Any, Final

import structlog
from msgspec import structs

from foreblock.clock import SECOND_NS, Clock
from foreblock.ledger.building.block_in_progress import BlockInProgress
from foreblock.ledger.building.ledger_writer import LedgerWriter, fresh_for_ns
from foreblock.ledger.storage import dev_rows
from foreblock.ledger.storage.dev_rows import DevState
from foreblock.sequencer.admission import Terms
from foreblock.sequencer.attributes import (
    ATTRIBUTES_GAS_USED,
    BASE_TIME_GAS_USED,
    l1_fees_of,
    next_base,
    payload_id,
    terms_of,
)
from foreblock.sequencer.timing import (
    NEVER_NS,
    Schedule,
    next_time_ns,
    schedule,
    time_within_ns,
    unscheduled,
)
from foreblock.settings import ChainSettings
from foreblock.types import Base, Header

MILLISECOND_NS: Final = 10**6
MOST_STATED: Final = 4_096  # blocks whose milliseconds are known, for reorganizations
# With `instant`, the least time from one flashblock to the next.
INSTANT_GAP_NS: Final = 10 * MILLISECOND_NS
# Without the clock: how often a pending block is marked as fresh, and for how long.
REFRESH_NS: Final = 10 * SECOND_NS
REFRESHED_FOR_NS: Final = 30 * SECOND_NS
BRANCH_SHIFT: Final = 40  # in the attempt of a payload id, above those of restarted blocks

log = structlog.get_logger()


class Mining:
    """The mining mode of one chain, its time, and its settings."""

    def __init__(
        self, writer: LedgerWriter, clock: Clock, chain: ChainSettings, first: DevState
    ) -> None:
        """`first` is the state of a chain that has none yet."""
        self._writer: Final = writer
        self._clock: Final = clock
        self._first: Final = first
        self.chain: Final = chain
        self._clock_is_behind = False  # behind the last block, which was logged
        # The times of the last blocks that the clock began, by the hashes of their parents.
        self._times_ns: dict[bytes, int] = {}
        # The parents and times of the last blocks that began with these numbers, which state them.
        self._stated: dict[int, tuple[bytes, int]] = {}
        with writer.store.view() as view:
            found = dev_rows.read_dev_state(view)
        self.is_new: Final = found is None
        self.state = structs.replace(
            found or first, shows_sealed=first.shows_sealed, fork=first.fork
        )
        self._set_lifetime()
        if self.state != found:
            self.change()

    # --- The state ---------------------------------------------------------------------

    def change(self, **fields: Any) -> None:  # noqa: ANN401, fields of the state
        """Change the state; it is stored with the next commit."""
        self.state = structs.replace(self.state, **fields)
        if "block_time" in fields or "mining" in fields:
            self._set_lifetime()
        self._writer.put_extra_row(dev_rows.KEY, dev_rows.encode_dev_state(self.state))

    def restore(self, state: DevState) -> None:
        """Return to an earlier state; ids continue to rise."""
        now = self.state
        self.state = structs.replace(
            state,
            instance=now.instance,
            attempts=now.attempts,
            branches=now.branches + 1,
            next_snapshot=now.next_snapshot,
            prints=now.prints,
            prints_traces=now.prints_traces,
            shows_sealed=now.shows_sealed,
            fork=now.fork,
        )
        self._set_lifetime()

    def restore_first(self) -> None:
        """Return to the state with which the chain began."""
        self.restore(self._first)

    def begin_branch(self) -> None:
        """Give the blocks that follow payload ids of their own."""
        self.change(branches=self.state.branches + 1)

    def end_block(self) -> None:
        """Forget the settings of the block in progress only."""
        if self.state.keeps_time or self.state.is_edited:
            self.change(keeps_time=False, is_edited=False)

    def _set_lifetime(self) -> None:
        """Set how long the pending block counts as fresh."""
        lifetime_ns = fresh_for_ns(self.state.block_time)
        self._writer.lifetime_ns = (
            lifetime_ns if self.by_clock else max(lifetime_ns, REFRESHED_FOR_NS)
        )

    # --- The mode ----------------------------------------------------------------------

    @property
    def by_clock(self) -> bool:
        return self.state.mining == "clock"

    @property
    def seals_with_transactions(self) -> bool:
        return self.state.mining == "automine"

    @property
    def waits_for_commands(self) -> bool:
        """Return True if transactions are shown as waiting until a command seals their block.

        They run at once, as readers of `pending` expect, and can be dropped again.
        """
        return self.state.shows_sealed and self.state.mining == "manual"

    @property
    def mirrors(self) -> bool:
        """Return True if blocks begin and end with those of another chain."""
        return self.state.mining == "mirror"

    @property
    def gap_ns(self) -> int | None:
        """The least time from one index to the next if transactions close them.

        None if slots or commands do.
        """
        state = self.state
        if state.mining in {"automine", "mirror"}:
            return 0
        if self.waits_for_commands:
            return 0 if state.interval_ms else None
        if state.mining == "clock" and state.interval_ms:
            return INSTANT_GAP_NS if self.chain.instant else None
        # On demand only, without an interval.
        return state.interval_ms * MILLISECOND_NS or None

    @property
    def interval_ms(self) -> int:
        """The time between flashblocks; that of the settings if they are closed on demand."""
        return self.state.interval_ms or self.chain.interval_ms

    # --- Time --------------------------------------------------------------------------

    @property
    def wall_ns(self) -> int:
        """The time of the chain."""
        return self._clock.wall_ns() + self.state.offset * SECOND_NS

    @property
    def time(self) -> int:
        """The time of the chain, in seconds."""
        return self.wall_ns // SECOND_NS

    @property
    def machine_time(self) -> int:
        """The time of the machine, in seconds."""
        return self._clock.wall_ns() // SECOND_NS

    def follow_time(self, timestamp: int) -> None:
        """Set the time of the chain."""
        self.change(offset=timestamp - self.machine_time)

    def catch_up_with(self, latest: Header) -> None:
        """Move the time to that of the latest block, if that is ahead."""
        ahead = latest.timestamp - self.time
        if ahead > 0:
            self.change(offset=self.state.offset + ahead)

    def schedule_of(self, block: BlockInProgress) -> Schedule:
        timed = schedule(
            self._block_ns,
            self.interval_ms,
            self._time_ns(block.base, self.wall_ns + self._block_ns),
            self.wall_ns,
            self._clock.monotonic_ns(),
            slots_before=max(block.index - 1, 0),
        )
        state, by_clock = self.state, self.by_clock
        if by_clock and state.interval_ms:
            return timed
        ends = by_clock or state.also_clock
        return unscheduled(timed.slots_before, timed.end_ns if ends else NEVER_NS)

    def timestamp_after(self, parent: Header) -> int:
        """The timestamp of a block that begins now."""
        state = self.state
        if state.timestamp_interval is not None:
            return parent.timestamp + max(state.timestamp_interval, 1)
        if self.by_clock:
            return self._time_after_ns(parent) // SECOND_NS
        return max(parent.timestamp + 1, self.time)

    @property
    def _block_ns(self) -> int:
        return round(self.state.block_time * SECOND_NS)

    def _time_after_ns(self, parent: Header) -> int:
        """The time of a block that the clock begins now."""
        parent_ns = self._time_ns(parent, self.wall_ns)
        return next_time_ns(parent_ns, self.wall_ns, self._block_ns)

    def _time_ns(self, block: Header | Base, near_ns: int) -> int:
        """The time of a block; near this one if the clock of this process did not begin it.

        That which a block states is what the next one follows, also after a reorganization.
        """
        number = block.block_number if isinstance(block, Base) else block.number
        parent, stated_ns = self._stated.get(number, (b"", 0))
        if parent == block.parent_hash and stated_ns // SECOND_NS == block.timestamp:
            return stated_ns
        known = self._times_ns.get(block.parent_hash)
        if known is not None and known // SECOND_NS == block.timestamp:
            return known
        return time_within_ns(block.timestamp, near_ns, self._block_ns)

    def log_time(self, parent: Header, timestamp: int) -> None:
        """Log that the time of the chain and the clock differ, when the clock seals a block."""
        state = self.state
        if not self.by_clock or state.timestamp_interval is not None:
            return
        ahead, step = parent.timestamp - self.time, math.ceil(state.block_time)
        was_behind, self._clock_is_behind = self._clock_is_behind, ahead > step
        if self._clock_is_behind and not was_behind:
            log.warning("clock_behind_chain", seconds=ahead, block=parent.number + 1)
        late = timestamp - parent.timestamp - step
        skipped = max(int(late / state.block_time), 0)
        if skipped and parent.number:
            log.warning("blocks_skipped", count=skipped, block=parent.number + 1)

    # --- The base of the next block ----------------------------------------------------

    def next_base(
        self, parent: Header, timestamp: int | None = None, instead_of: bytes = b""
    ) -> Base:
        """The base of the block after `parent`, which may replace another one."""
        if timestamp is None:
            timestamp = self.timestamp_after(parent)
            self._note_time(parent, timestamp)
        base = next_base(
            parent, timestamp, self._writer.profile, self.chain.seed, self.state, instead_of
        )
        coinbase = self.state.coinbase
        return base if coinbase is None else replace(base, fee_recipient=coinbase)

    def milliseconds_of(self, base: Base) -> int | None:
        """The milliseconds in a block; None on a chain whose blocks have none."""
        if not self.chain.base_time:
            return None
        number, time_ns = base.block_number, self._time_ns(base, self.wall_ns + self._block_ns)
        if self._stated.get(number) != (base.parent_hash, time_ns):
            _, before_ns = self._stated.get(number - 1, (b"", 0))
            # Blocks that commands make share a second with others that the clock has begun.
            time_ns = time_within_ns(
                base.timestamp, max(time_ns, before_ns + self._block_ns), self._block_ns
            )
            self._stated[number] = base.parent_hash, time_ns
            if len(self._stated) > MOST_STATED:
                del self._stated[min(self._stated)]
        return time_ns % SECOND_NS // MILLISECOND_NS

    @property
    def start_gas(self) -> int:
        """The gas that the deposits at the start of a block use, at most."""
        if self._writer.profile.optimism is None:
            return 0
        return ATTRIBUTES_GAS_USED + (BASE_TIME_GAS_USED if self.chain.base_time else 0)

    def _note_time(self, parent: Header, timestamp: int) -> None:
        """Note the time of the block after `parent`, if the clock gave it this timestamp."""
        time_ns = self._time_after_ns(parent)
        if self.by_clock and time_ns // SECOND_NS == timestamp:
            parent_ns = self._time_ns(parent, self.wall_ns)
            self._times_ns = {parent.parent_hash: parent_ns, parent.hash: time_ns}

    def id_of(self, base: Base) -> bytes:
        """The payload id of a block that begins for the first time.

        A chain that was taken back may reach the same parent again, with another block on it.
        """
        return payload_id(base, self.chain.seed, self.state.branches << BRANCH_SHIFT)

    def another_id(self, base: Base) -> bytes:
        """A payload id that no job has had."""
        self.change(attempts=self.state.attempts + 1)
        return payload_id(base, self.chain.seed, self.state.attempts)

    @property
    def l1_attributes(self) -> bytes:
        """The attributes of L1 that blocks of a fork keep; empty for other chains."""
        return b"" if self.state.fork is None else self.state.fork.attributes

    def terms_of(self, block: BlockInProgress) -> Terms:
        """The terms on which a block takes transactions.

        A transaction may have the gas limit of a block, as users see it in headers. If the base
        fee was set below the minimum, it may offer as little.
        """
        cap = self.chain.transaction_gas or None
        profile, gas = self._writer.profile, self.start_gas
        fees = l1_fees_of(self.l1_attributes)
        terms = terms_of(block.base, profile, cap, block.excess_blob_gas, fees, start_gas=gas)
        gas_limit = max(block.base.gas_limit, block.parent.gas_limit)
        minimum = min(terms.minimum_base_fee, terms.base_fee)
        if (gas_limit, minimum) == (terms.gas_limit, terms.minimum_base_fee):
            return terms
        return structs.replace(terms, gas_limit=gas_limit, minimum_base_fee=minimum)
