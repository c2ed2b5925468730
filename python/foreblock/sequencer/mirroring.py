"""Take blocks of another chain over, the real one, and keep local transactions on top of them.

A block of a mirror has the transactions of the real block of its number, and local transactions
among them: each runs once, on all that came before it. Real transactions have run on the real
state; only their effects are taken over, but for keys that were written locally. So local keys stop
following the real chain, and every other key has the real value.

    extend      the real block has more transactions
    seal        the next real block begins, so this one ends; it becomes `latest`
    restart     the real block is another one: its local transactions and edits are made again
    roll_back   the same, for blocks that are sealed

Each is one commit, which also stores what was written locally. A local transaction that does not
run again is dropped with a reason (`BlockBuilder.note_dropped`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from msgspec import structs

from foreblock.ledger.building.block_in_progress import BlockInProgress
from foreblock.ledger.building.chain_rewriting import BlockRun
from foreblock.ledger.building.real_index import RealIndex, changed_keys
from foreblock.ledger.rules.l1 import L1_BLOCK
from foreblock.ledger.rules.transaction_rules import DEPOSIT
from foreblock.ledger.storage.dev_rows import in_portions, merged, read_edits
from foreblock.ledger.storage.mirror_rows import (
    StateKey,
    encode_number,
    read_written,
    real_block_key,
    real_hash,
    real_index,
    written_key,
)
from foreblock.sequencer.block_builder import BlockBuilder
from foreblock.sequencer.block_changes import BlockChanges
from foreblock.types import Base, StateEdit, Transaction

KEPT_HASHES: Final = 8_192  # of real blocks, for a reorganisation
REPLACED: Final = "the real block was replaced"


class Mirroring:
    """The blocks of one mirror."""

    def __init__(self, builder: BlockBuilder, changes: BlockChanges) -> None:
        self._builder: Final = builder
        self._changes: Final = changes
        self._open: set[StateKey] = set()  # written in the block in progress
        self._seen = 0  # its partials that were searched for these
        with builder.writer.store.view() as view:
            self._written: Final = dict(read_written(view))  # in sealed blocks

    # --- The position ------------------------------------------------------------------

    @property
    def block(self) -> int:
        """The number of the block in progress."""
        return self._builder.block.number

    @property
    def taken(self) -> bytes | None:
        """The end of the real transactions that the block in progress has."""
        block = self._builder.block
        with self._builder.writer.store.view() as view:
            found = (real_index(view, block.number, each) for each in reversed(block.partials))
            return next((each for each in found if each is not None), None)

    def real_hash(self, number: int) -> bytes | None:
        """The hash of the real block that a sealed block mirrors."""
        with self._builder.writer.store.view() as view:
            return real_hash(view, number)

    def is_local(self, key: StateKey) -> bool:
        """Return True if an account or a slot was written locally."""
        return key in self._written or key in self._open

    def written(self) -> Iterable[StateKey]:
        """The accounts and slots that were written locally."""
        self._search()
        return self._written.keys() | self._open

    # --- Steps -------------------------------------------------------------------------

    def extend(self, real: RealIndex) -> None:
        """Add transactions to the block in progress."""
        builder = self._builder
        self._end_local_index()
        builder.block.take_over(real, self.is_local)
        builder.commit_index(builder.clock.monotonic_ns())
        self._resume_local()

    def seal(self, real_hash: bytes, base: Base, real: RealIndex) -> None:
        """End the block in progress, which mirrors the block of this hash, and begin the next."""
        builder, writer = self._builder, self._builder.writer
        self._end_local_index()
        block, sealed = builder.block, writer.header_if_sealed(builder.block)
        builder.mining.end_block()
        base = replace(base, parent_hash=sealed.hash)
        following = writer.begin_next(block, sealed, base, builder.mining.id_of(base))
        try:
            following.take_over(real, self.is_local)
            self._note_sealed(block.number, real_hash)
            self._note_attributes(real)
            flashblock = writer.seal_and_extend(block, sealed, following)
        except BaseException:
            following.close()
            raise
        self._open.clear()
        self._seen = 0
        builder.adopt(following, (flashblock,), builder.clock.monotonic_ns())
        self._resume_local()

    def restart(self, base: Base, real: RealIndex) -> None:
        """Replace the block in progress by one that begins with these transactions."""
        builder = self._builder
        self._changes.flush()
        old, waiting = builder.block, builder.open_transactions()
        edits = self._changes.edits_of(old.number, old.partials)
        self._open.clear()
        base = replace(base, parent_hash=builder.parent.hash)
        run = BlockRun(builder.writer, builder.clock, old)
        block = run.begin_again(base, builder.mining.another_id(base), REPLACED)
        self._begin_again(run, block, real, edits, waiting)

    def roll_back(self, fork: int, base: Base, real: RealIndex) -> None:
        """Abandon the sealed blocks above this one; the next begins with these transactions."""
        builder, writer = self._builder, self._builder.writer
        self._changes.flush()
        old = range(fork + 1, writer.latest.number + 1)
        waiting = [each for number in old for each in builder.transactions_of(number)]
        waiting += builder.open_transactions()
        edits = [each for number in old for each in self._changes.edits_of(number)]
        edits += self._changes.edits_of(self.block, builder.block.partials)
        self._open.clear()
        for key in [key for key, block in self._written.items() if block > fork]:
            del self._written[key]
            writer.delete_with_next(written_key(key))
        for number in old:
            writer.delete_with_next(real_block_key(number))
        builder.mining.begin_branch()
        run = BlockRun.replacing(writer, builder.clock, fork, builder.block)
        base = replace(base, parent_hash=run.latest.hash)
        block = run.begin(base, builder.mining.another_id(base))
        self._begin_again(run, block, real, merged(edits), waiting)

    # --- Steps of these ----------------------------------------------------------------

    def _end_local_index(self) -> None:
        """Commit what is in the open index, and note what it has written."""
        builder = self._builder
        self._changes.flush()
        if builder.block.open_count or builder.block.open_edits:
            builder.commit_index(builder.clock.monotonic_ns())
        self._search()

    def _resume_local(self) -> None:
        """Let local transactions run that can now, and drop those that cannot any more."""
        if len(self._builder.pool):
            self._builder.pool.drop_invalid()
        if self._builder.writer.has_extra_rows:
            self._builder.writer.refresh()
        self._builder.close_soon()

    def _begin_again(
        self,
        run: BlockRun,
        block: BlockInProgress,
        real: RealIndex,
        edits: Sequence[StateEdit],
        waiting: Sequence[Transaction],
    ) -> None:
        builder = self._builder
        block.take_over(real, self.is_local)
        self._note_attributes(real)
        run.close_index()
        for portion in in_portions(edits):
            for each in portion:
                block.set_account(each)
            run.close_index()
        builder.block = block
        builder.ran.clear()
        builder.pool.begin_block(builder.mining.terms_of(block))
        builder.put_back(waiting)
        builder.pool.drop_invalid()
        builder.fill_whole(run)
        self._seen = 0
        builder.adopt(run.block, run.commit(), builder.clock.monotonic_ns())
        self._resume_local()

    def _search(self) -> None:
        """Note what the local indices of the block in progress have written.

        A key that an edit sets counts even if it had that value.
        """
        block = self._builder.block
        partials = block.partials
        if self._seen == len(partials):
            return
        with self._builder.writer.store.view() as view:
            for at in range(self._seen, len(partials)):
                partial, since = partials[at], partials[at - 1] if at else None
                if real_index(view, block.number, partial) is None:
                    self._open.update(changed_keys(view.changes_of_partial(partial, since)))
                    for edit in read_edits(view, block.number, (partial,)):
                        self._open.update(_keys_of(edit))
        self._seen = len(partials)

    def _note_sealed(self, number: int, block_hash: bytes) -> None:
        """Store what a block mirrors and what it has written, with the commit that seals it."""
        writer = self._builder.writer
        writer.put_extra_row(real_block_key(number), block_hash)
        if number > KEPT_HASHES:
            writer.delete_with_next(real_block_key(number - KEPT_HASHES))
        for key in self._open:
            if key not in self._written:
                self._written[key] = number
                writer.put_extra_row(written_key(key), encode_number(number))

    def _note_attributes(self, real: RealIndex) -> None:
        """Let fees of L1 be those of the real block, whose first transaction has them."""
        mining = self._builder.mining
        first = next(iter(real.transactions), None)
        if mining.state.fork is None or first is None or first.type != DEPOSIT:
            return
        if first.to == L1_BLOCK and first.input != mining.state.fork.attributes:
            mining.change(fork=structs.replace(mining.state.fork, attributes=first.input))


def _keys_of(edit: StateEdit) -> Iterable[StateKey]:
    if any(each is not None for each in (edit.balance, edit.nonce, edit.code)):
        yield edit.address, None
    for slot, _ in edit.storage:
        yield edit.address, slot
