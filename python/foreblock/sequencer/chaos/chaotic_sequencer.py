"""A sequencer whose chain has faults: it gives up announced blocks, or contradicts itself.

Each fault of the chain happens instead of, or beside, one step of the plain sequencer: a
restart instead of an index, a reorganisation or a cut tail instead of a seal, another
flashblock beside the one that is announced. Users lose nothing: transactions of what is
given up go back to the pool, and accounts that they have set are set again. Faults of the
feed are elsewhere (`feed_faults`).
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Final

import structlog

from foreblock.clock import Clock
from foreblock.errors import InvalidTransaction, PoolRefusal
from foreblock.ledger.building.block_in_progress import BlockInProgress
from foreblock.ledger.building.chain_rewriting import BlockRun
from foreblock.ledger.building.commit_builder import CommitBuilder
from foreblock.ledger.building.ledger_writer import LedgerWriter
from foreblock.ledger.building.parent_state import on_sealed
from foreblock.ledger.building.resume_block import resume, transactions_in
from foreblock.ledger.rules.transaction_rules import is_from_user
from foreblock.ledger.storage.chain_head import partials_of_sealed, read_header
from foreblock.ledger.storage.dev_rows import DevState, in_portions, merged, read_cheats
from foreblock.sequencer.attributes import (
    payload_id,
    stray_deposit,
)
from foreblock.sequencer.chaos.faults import FaultKind, Faults
from foreblock.sequencer.load import Load
from foreblock.sequencer.sequencer import Sequencer
from foreblock.sequencer.unsigned import run_in_turn
from foreblock.settings import ChainSettings
from foreblock.types import Base, Cheat, Flashblock, Header, Transaction

LONGEST_REORG: Final = 3  # sealed blocks that are given up at once

log = structlog.get_logger()


class ChaoticSequencer(Sequencer):
    """Builds the blocks of one network, with faults."""

    def __init__(  # noqa: PLR0913, PLR0917, of the chain, and its faults
        self,
        writer: LedgerWriter,
        clock: Clock,
        chain: ChainSettings,
        state: DevState,
        publish: Callable[[Flashblock], None],
        load: Load | None,
        faults: Faults,
        contradict: Callable[[Flashblock], None],
    ) -> None:
        """`contradict` gets another flashblock for the place that is published next."""
        super().__init__(writer, clock, chain, state, publish, load)
        self._faults = faults
        self._contradict: Final = contradict
        self._last_struck: Final[dict[FaultKind, int]] = {}  # the last height, by kind

    @property
    def _stores_quietly(self) -> bool:
        """Faults are about partials, so each index has one where there are faults."""
        return not self._faults

    # --- Where faults strike -----------------------------------------------------------

    def _end_index(self, slot: int, now_ns: int) -> None:
        if slot > self._slot and self._strikes(FaultKind.RESTART):
            due_ns = self._index_due_ns
            self._slot = slot
            self._restart(now_ns, due_ns)
        else:
            super()._end_index(slot, now_ns)

    def _turn_over(self, now_ns: int, builder: CommitBuilder | None = None) -> None:
        if self._writer.latest.number >= LONGEST_REORG and self._strikes(FaultKind.REORG):
            self._reorg(now_ns, self._schedule.end_ns)
        elif len(self._block.partials) > 1 and self._strikes(FaultKind.TAIL):
            self._turn_over_without_tail(now_ns)
        else:
            super()._turn_over(now_ns, builder)

    def _announce(self, flashblock: Flashblock, now_ns: int, due_ns: int) -> None:
        if self._faults.happens(FaultKind.EQUIVOCATE, flashblock.block_number, flashblock.index):
            other = self._other_flashblock()
            if other != flashblock:
                self._contradict(other)
        super()._announce(flashblock, now_ns, due_ns)

    def _strikes(self, kind: FaultKind) -> bool:
        """Return True if a fault happens now; each kind happens at most once per height."""
        number = self._block.number
        if self._last_struck.get(kind, 0) >= number:
            return False
        if not self._faults.happens(kind, number, self._block.index):
            return False
        self._last_struck[kind] = number
        log.info("fault", kind=kind.value, block=number, index=self._block.index)
        return True

    # --- Faults ------------------------------------------------------------------------

    def _other_flashblock(self) -> Flashblock:
        """The last flashblock with other transactions: one less, or one more; it is not stored."""
        block = self._block
        # On a chain without deposits nothing runs that nobody has signed.
        has_strays = block.rules.optimism is not None
        stray = [stray_deposit(block.base, self._chain.seed)] if has_strays else []
        if block.empty_indexes:
            return self._instead_of_last(block.partials, stray)
        with self._writer.store.view() as view:
            last = transactions_in(view, block.number, block.partials[-1:])
        if len(block.partials) > 1 and last:
            return self._instead_of_last(block.partials[:-1], last[:-1])
        return self._instead_of_last(block.partials[:-1], [*last, *stray])

    def _instead_of_last(
        self, before: tuple[int, ...], transactions: list[Transaction]
    ) -> Flashblock:
        """The last index after these partials, with these transactions."""
        store, profile, block = self._writer.store, self._writer.profile, self._block
        if before:
            other = resume(store, profile, before[-1])
        else:
            parent_state = on_sealed(store, profile, block.number - 1)
            chosen = self._writer.chooses_bases
            other = BlockInProgress.begin(parent_state, block.base, block.payload_id, chosen=chosen)
        try:
            other.index = block.index - 1
            for transaction in transactions:
                other.run(transaction)
            return other.close_index(CommitBuilder(store).next).flashblock()
        finally:
            other.close()

    def _restart(self, now_ns: int, due_ns: int, base: Base | None = None) -> None:
        """Give the block up and begin it anew as another job, in one commit."""
        block, slot, base = self._block, self._slot, base or self._block.base
        given_up = self._given_up()
        run = BlockRun(self._writer, self._clock, block)
        again = run.begin_anew(base, self._another_id(base), "its job was begun anew")
        self._start(again)
        run.close_index()
        self._cheat_again(run, block)
        *before, flashblock = run.commit()
        for each in before:
            self._publish(each)
        self._ran.clear()
        self._go_on_with(again, flashblock, now_ns, due_ns)
        self._slot = max(slot, self._slot)
        self._put_back(given_up)

    def _given_up(self) -> list[Transaction]:
        """The users' transactions in the block in progress, those that are not committed too."""
        block = self._block
        return [*self._transactions_of(block.number, block.partials), *self._ran.values()]

    def _cheat_again(self, run: BlockRun, given_up: BlockInProgress) -> None:
        """Let the block that replaces another one have its cheats, in indices of their own."""
        for portion in in_portions(self._cheats_in(given_up.number, given_up.partials)):
            for each in portion:
                run.block.set_account(each)
            run.close_index()

    def _regain(self, cheats: Sequence[Cheat]) -> None:
        """Set accounts again that were set in what was given up."""

    def _cheats_in(self, block: int, partials: tuple[int, ...] | None = None) -> Sequence[Cheat]:
        """The cheats in these partials, or in all of a sealed block."""
        with self._writer.store.view() as view:
            parts = partials_of_sealed(view, block) if partials is None else partials
            return read_cheats(view, block, parts)

    def _another_id(self, base: Base) -> bytes:
        """A payload id for the block in progress that it does not have."""
        return payload_id(base, self._chain.seed, attempt=self._block.index)

    def _turn_over_without_tail(self, now_ns: int) -> None:
        """Seal the block without its last index."""
        writer, whole = self._writer, self._block
        tail = self._transactions_of(whole.number, whole.partials[-1:])
        cheats = self._cheats_in(whole.number, whole.partials[-1:])
        builder = CommitBuilder(writer.store)
        builder.drop(whole.partials[-1:], "not in the sealed block")
        whole.close()
        self._block = writer.current = resume(writer.store, writer.profile, whole.partials[-2])
        self._block.skip_to(whole.index - 1 - whole.empty_indexes)
        super()._turn_over(now_ns, builder)
        self._regain(cheats)
        self._put_back(tail)

    def _reorg(self, now_ns: int, due_ns: int) -> None:
        """Replace some sealed blocks and the one in progress by others, and begin the next.

        In the new branch transactions stand one block higher than they stood: its first
        block has none, and those of the block in progress go back to the pool.
        """
        writer, seed, latest = self._writer, self._chain.seed, self._writer.latest.number
        depth = 1 + int(self._faults.draw(FaultKind.REORG, "depth", latest, 0) * LONGEST_REORG)
        fork = latest - depth
        self._give_up_above(fork)
        old = [self._sealed_header(number) for number in range(fork + 1, latest + 1)]
        times = [*(header.timestamp for header in old), self._block.base.timestamp]
        given_up = [self._transactions_of(header.number) for header in old]
        cheats = [each for header in old for each in self._cheats_in(header.number)]
        cheats += self._cheats_in(self._block.number, self._block.partials)
        left = self._transactions_of(self._block.number, self._block.partials)
        branch = BlockRun.replacing(writer, self._clock, fork, self._block)
        for timestamp, moved in zip(times, [[], *given_up], strict=True):
            base = self._next_base(branch.latest, timestamp, old[0].hash)
            job = payload_id(base, seed, int.from_bytes(base.prev_randao[:7]))
            left = [*self._build(branch, base, job, moved), *left]
            branch.seal()
        base = self._base_on(branch.latest)
        following = branch.begin(base, self._id_of(base))
        self._start(following)
        branch.close_index()
        *before, last = branch.commit()
        for flashblock in before:
            self._publish(flashblock)
        self._go_on_with(following, last, now_ns, due_ns)
        self._regain(merged(cheats))
        self._put_back(left)

    def _give_up_above(self, block: int) -> None:
        """Sealed blocks above this one are about to be replaced."""

    def _build(
        self, branch: BlockRun, base: Base, job: bytes, transactions: list[Transaction]
    ) -> list[Transaction]:
        """Add a block with all of these that can run to a branch; gives those that cannot."""
        block, left = branch.begin(base, job), []
        self._start(block)
        branch.close_index()
        for transaction in transactions:
            try:
                run_in_turn(block, transaction)
            except InvalidTransaction:
                left.append(transaction)
        if transactions:
            branch.close_index()
        return left

    def _sealed_header(self, number: int) -> Header:
        with self._writer.store.view() as view:
            return read_header(view, number)[0]

    def _transactions_of(
        self, block: int, partials: tuple[int, ...] | None = None
    ) -> list[Transaction]:
        """The users' transactions in these partials, or in all of a sealed block."""
        with self._writer.store.view() as view:
            parts = partials_of_sealed(view, block) if partials is None else partials
            found = transactions_in(view, block, parts)
        return [each for each in found if is_from_user(each)]

    def _put_back(self, transactions: Iterable[Transaction]) -> None:
        for transaction in transactions:
            with suppress(PoolRefusal):
                self._pool.add(transaction)
