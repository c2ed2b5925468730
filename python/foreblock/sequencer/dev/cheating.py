"""A dev sequencer that sets accounts by hand.

A cheat sets accounts in an index of its own. A block that is begun anew keeps its cheats. Where
many follow one another, the block is begun anew with all of them in one index: followers take a
limited number of indices, and each names those before it. What commands make of it is in `cheats`.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import structlog

from foreblock.ledger.building.block_in_progress import BlockInProgress
from foreblock.ledger.building.chain_rewriting import BlockRun
from foreblock.ledger.storage.dev_rows import in_portions
from foreblock.sequencer.dev.dev_sequencer import DevSequencer
from foreblock.types import Account, Cheat

MOST_CHEATED: Final = 256  # indices of a block, after which its cheats are put together
MOST_OPEN: Final = 1024  # cheats of an index, which take ten milliseconds to commit

log = structlog.get_logger()


class CheatingSequencer(DevSequencer):
    """Builds the blocks of a dev chain whose accounts may be set."""

    def cheat(self, cheats: Iterable[Cheat]) -> None:
        """Set accounts in an index of their own, which `flush` commits.

        What has run before is closed first. If only sealed blocks are shown, it runs again after
        the accounts are set, in a commit of its own. Each is requested when those before it are
        set.
        """
        now_ns = self._clock.monotonic_ns()
        self.make_ready()
        if self._state.shows_sealed and self.has_transactions:
            self._cheat_before_transactions(cheats, now_ns)
            return
        block = self._block
        for each in cheats:
            block.set_account(each)
        if block.is_empty_index:
            return
        self._note_cheat()
        self.mark_changed()
        if len(self._pool):
            self._pool.drop_invalid()
        if block.open_edits >= MOST_OPEN:
            self.flush()

    def _note_cheat(self) -> None:
        first = self._state.first_cheat
        if first is None:
            log.info("chain_has_cheats", block=self._block.number)
        if first is None or not self._state.is_cheated:
            self.change(is_cheated=True, first_cheat=self._block.number if first is None else first)

    def _cheat_before_transactions(self, cheats: Iterable[Cheat], now_ns: int) -> None:
        """Begin the block anew with these, then run its transactions again, in one commit."""
        run, old = BlockRun(self._writer, self._clock, self._block), self._block
        given_up = self._given_up()
        why = "accounts were set before its transactions"
        self._block = run.begin_anew(old.base, self._another_id(old.base), why)
        self._start(self._block)
        run.close_index()
        self._cheat_again(run, old)
        for each in cheats:
            self._block.set_account(each)
        if self._block.is_empty_index:
            run.close()
            self._block = old
            return
        self._note_cheat()
        run.close_index()
        self._ran.clear()
        self._pool.drop_invalid()
        self._put_back(given_up)
        self._fill_whole(run)
        slot = self._slot
        self._commit_run(run, now_ns)
        self._slot = max(slot, self._slot)

    def make_ready(self) -> None:
        """Commit what has to be before an index of cheats, which is then one commit."""
        now_ns = self._clock.monotonic_ns()
        if self._block.open_count or not self._block.index:
            self._announce(self._writer.extend(self._block), now_ns, now_ns)
        if len(self._block.partials) >= MOST_CHEATED and not self.has_transactions:
            self.flush()
            self._put_together(now_ns)

    def account(self, address: bytes) -> Account | None:
        """An account after all that has run."""
        return self._block.account(address)

    def _put_together(self, now_ns: int) -> None:
        """Begin the block anew, with its cheats in one index."""
        run, old = BlockRun(self._writer, self._clock, self._block), self._block
        self._start(run.begin_anew(old.base, self._another_id(old.base), "it was put together"))
        run.close_index()
        self._cheat_again(run, old)
        self._commit_run(run, now_ns)

    def _commit_run(self, run: BlockRun, now_ns: int) -> None:
        *before, last = run.commit()
        for flashblock in before:
            self._publish(flashblock)
        self._go_on_with(run.block, last, now_ns, now_ns)

    def _regain(self, cheats: Sequence[Cheat]) -> None:
        for portion in in_portions(cheats):
            self.cheat(portion)
            self.flush()

    def _cheat_again(self, run: BlockRun, given_up: BlockInProgress) -> None:
        if self._state.is_cheated:
            super()._cheat_again(run, given_up)
