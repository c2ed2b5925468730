"""Changes of the block in progress that no transaction makes: its base, its time, its accounts.

What a block begins with cannot be changed once it has begun. So a change restarts it as another
job, in which its transactions run again.

A state edit sets accounts in an index of its own. A restarted block keeps its edits. If many
indices of edits follow one another, the block is restarted with all of them in one index:
followers accept a limited number of indices, and each names those before it.

A change is made in memory; `flush` commits it. Whatever else needs the committed chain flushes
first, and a tick does so `LONGEST_UNCOMMITTED_NS` after the first change.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

import structlog

from foreblock.ledger.building.block_in_progress import BlockInProgress
from foreblock.ledger.building.chain_rewriting import BlockRun
from foreblock.ledger.storage.chain_head import partials_of_sealed
from foreblock.ledger.storage.dev_rows import in_portions, read_edits
from foreblock.sequencer.block_builder import BlockBuilder
from foreblock.sequencer.mining import MILLISECOND_NS
from foreblock.types import Base, StateEdit

LONGEST_UNCOMMITTED_NS: Final = 100 * MILLISECOND_NS
MOST_EDITED: Final = 256  # indices of a block, after which its edits are merged
MOST_OPEN: Final = 1024  # edits of an index, which take ten milliseconds to commit

log = structlog.get_logger()


class BlockChanges:
    """Changes the block in progress of one chain."""

    def __init__(self, builder: BlockBuilder) -> None:
        self._builder: Final = builder
        self._changed_at_ns: int | None = None  # by the first change that is not committed
        self._is_retimed = False  # the time was changed after the block in progress had begun

    # --- Uncommitted changes -----------------------------------------------------------

    def mark(self) -> None:
        """Commit the changes with the next flush."""
        if self._changed_at_ns is None:
            self._changed_at_ns = self._builder.clock.monotonic_ns()

    def retime(self) -> None:
        """Restart the block in progress at the time of the chain, with the next flush."""
        self._is_retimed = True
        self.mark()

    @property
    def due_ns(self) -> int | None:
        """When a flush is due; None if nothing has changed."""
        changed_at_ns = self._changed_at_ns
        return None if changed_at_ns is None else changed_at_ns + LONGEST_UNCOMMITTED_NS

    @property
    def are_uncommitted(self) -> bool:
        """Return True if `flush` has something to commit."""
        if self._changed_at_ns is None:
            return False
        builder = self._builder
        return builder.has_open_edits or self._is_retimed or builder.writer.has_extra_rows

    def flush(self) -> None:
        """Commit what has changed."""
        if self.are_uncommitted:
            if self._builder.has_open_edits:
                self._commit_edits()
            if self._is_retimed:
                self._is_retimed = False
                self.begin_at(None)
            if self._builder.writer.has_extra_rows:
                self._builder.writer.refresh()
        self._changed_at_ns = None

    def flush_before_mining(self) -> None:
        """Commit edits, and a change of the time if the block in progress keeps its own."""
        builder = self._builder
        keeps_time = builder.mining.by_clock or builder.has_transactions
        if builder.has_open_edits or (self._is_retimed and keeps_time):
            self.flush()

    def commit_block(self) -> None:
        """Commit what is in the block in progress, and the time that it should have."""
        builder = self._builder
        if builder.block.open_count or not builder.block.index:
            builder.close_index(fill=False)
        if builder.has_open_edits or self._is_retimed:
            self.flush()

    def discard(self) -> None:
        """Make the block in progress what it was at its last commit."""
        self._is_retimed = False
        if self._builder.has_open_edits:
            writer, block = self._builder.writer, self._builder.block
            block.close()
            again = writer.resume(block.partials[-1])
            self._builder.block = writer.current = again

    def forget_time(self) -> None:
        """The block in progress begins at the time of the chain."""
        self._is_retimed = False

    def _commit_edits(self) -> None:
        """Commit the index of accounts that were set."""
        builder = self._builder
        is_behind = builder.writer_is_behind
        builder.commit_index(builder.clock.monotonic_ns())
        builder.writer_is_behind = is_behind  # its root is known, and there is nothing to fold
        builder.close_soon()

    # --- Restarts ----------------------------------------------------------------------

    def restart(
        self, base: Base | None = None, now_ns: int | None = None, due_ns: int | None = None
    ) -> None:
        """Restart the block as another job, in one commit; its transactions wait again."""
        builder = self._builder
        now_ns = builder.clock.monotonic_ns() if now_ns is None else now_ns
        slot, waiting = builder.slot, builder.open_transactions()
        run = self._run()
        self._begin_again(run, base or builder.base, "its job was restarted")
        self._adopt(run, now_ns, due_ns)
        builder.slot = max(slot, builder.slot)
        builder.put_back(waiting)

    def begin_with(self, base: Base) -> None:
        """Restart the block in progress with another base, at the pace of that."""
        self.restart(base)
        self._builder.reschedule()

    def begin_at(self, timestamp: int | None) -> None:
        """Set the timestamp of the block in progress, by default the current one."""
        builder = self._builder
        wanted = timestamp or builder.mining.timestamp_after(builder.parent)
        if wanted == builder.base.timestamp:
            self.mark()
        else:
            self.begin_with(replace(builder.base, timestamp=wanted))

    def renew(self, run: BlockRun, timestamp: int | None) -> None:
        """Let the block of a run have this timestamp, or that of now, and gas for what is next.

        If that changes it, all in it runs again.
        """
        builder, mining = self._builder, self._builder.mining
        base = builder.base
        if timestamp is not None:
            base = _at(base, timestamp)
        elif not (mining.by_clock or mining.state.keeps_time or builder.has_transactions):
            base = _at(base, mining.timestamp_after(builder.parent))
        if not builder.has_transactions:
            base = builder.widened(base, self._start_gas)
        if base == builder.base:
            return
        waiting = builder.open_transactions()
        builder.block = self._begin_again(run, base, "its base changed")
        builder.ran.clear()
        builder.put_back(waiting)

    @property
    def _start_gas(self) -> int:
        """The gas that the start of the block in progress has used, or may use."""
        builder = self._builder
        is_optimism = builder.block.rules.optimism is not None
        return max(builder.block.executed_gas, builder.mining.start_gas) if is_optimism else 0

    def _run(self) -> BlockRun:
        return BlockRun(self._builder.writer, self._builder.clock, self._builder.block)

    def _begin_again(self, run: BlockRun, base: Base, why: str) -> BlockInProgress:
        """Begin the block of a run again, with its edits but without its transactions."""
        builder, old = self._builder, run.block
        again = run.begin_again(base, builder.mining.another_id(base), why)
        builder.start(again)
        run.close_index()
        if builder.mining.state.is_edited:
            for portion in in_portions(self.edits_of(old.number, old.partials)):
                for each in portion:
                    again.set_account(each)
                run.close_index()
        return again

    def _adopt(self, run: BlockRun, now_ns: int, due_ns: int | None = None) -> None:
        flashblocks = run.commit()
        self._builder.adopt(run.block, flashblocks, now_ns, due_ns)

    # --- State edits -------------------------------------------------------------------

    def edit(self, edits: Iterable[StateEdit]) -> None:
        """Set accounts in an index of their own, which `flush` commits.

        What has run before is closed first. If only sealed blocks are shown, it runs again after
        the accounts are set, in a commit of its own. Each edit is requested when those before it
        are made.
        """
        builder = self._builder
        now_ns = builder.clock.monotonic_ns()
        self._prepare_edits(now_ns)
        if builder.mining.state.shows_sealed and builder.has_transactions:
            self._edit_before_transactions(edits, now_ns)
            return
        block = builder.block
        for each in edits:
            block.set_account(each)
        if block.is_empty_index:
            return
        self._note_edit()
        self.mark()
        if len(builder.pool):
            builder.pool.drop_invalid()
        if block.open_edits >= MOST_OPEN:
            self.flush()

    def edit_again(self, edits: Sequence[StateEdit]) -> None:
        """Make edits again that were made in abandoned blocks."""
        for portion in in_portions(edits):
            self.edit(portion)
            self.flush()

    def edits_of(self, block: int, partials: tuple[int, ...] | None = None) -> Sequence[StateEdit]:
        """The edits in these partials, or in all of a sealed block."""
        with self._builder.writer.store.view() as view:
            parts = partials_of_sealed(view, block) if partials is None else partials
            return read_edits(view, block, parts)

    @property
    def merges_next(self) -> bool:
        """Return True if the edits of the block in progress are merged before the next one."""
        is_long = len(self._builder.block.partials) >= MOST_EDITED
        return is_long and not self._builder.mining.mirrors

    def _prepare_edits(self, now_ns: int) -> None:
        """Commit what has to be before an index of edits, which is then one commit."""
        builder = self._builder
        if builder.block.open_count or not builder.block.index:
            builder.commit_index(now_ns)
        if self.merges_next and not builder.has_transactions:
            self.flush()
            run = self._run()
            self._begin_again(run, builder.base, "its edits were merged")
            self._adopt(run, now_ns)

    def _edit_before_transactions(self, edits: Iterable[StateEdit], now_ns: int) -> None:
        """Restart the block with these edits, then run its transactions again, in one commit."""
        builder, run = self._builder, self._run()
        old, slot, waiting = builder.block, builder.slot, builder.open_transactions()
        block = self._begin_again(run, old.base, "accounts were set before its transactions")
        builder.block = block
        for each in edits:
            block.set_account(each)
        if block.is_empty_index:
            run.close()
            builder.block = old
            return
        self._note_edit()
        run.close_index()
        builder.ran.clear()
        builder.pool.drop_invalid()
        builder.put_back(waiting)
        builder.fill_whole(run)
        self._adopt(run, now_ns)
        builder.slot = max(slot, builder.slot)

    def _note_edit(self) -> None:
        mining, number = self._builder.mining, self._builder.block.number
        first = mining.state.first_edit
        if first is None:
            log.info("chain_has_state_edits", block=number)
        if first is None or not mining.state.is_edited:
            mining.change(is_edited=True, first_edit=number if first is None else first)


def _at(base: Base, timestamp: int) -> Base:
    return base if base.timestamp == timestamp else replace(base, timestamp=timestamp)
