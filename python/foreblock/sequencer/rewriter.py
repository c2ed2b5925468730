"""Changes of the sealed chain: a tail dropped, blocks replaced, a return to an earlier block.

Each is one commit. Faults and commands use the same operations. A fault loses nothing of the
users: transactions of abandoned blocks go back to the pool, and state edits are made again. After
a command the abandoned blocks are found by no name any more, their snapshots are gone, and the
sequencer remembers nothing of the abandoned branch: neither its pool, nor the signed load, nor
where faults have happened.

The block in progress that follows is always a new job, so that followers of the feed take it for
a restart. Payload ids never repeat.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from foreblock.errors import InvalidTransaction, RefusedCommand
from foreblock.ledger.building.block_in_progress import BlockInProgress
from foreblock.ledger.building.chain_rewriting import (
    BlockRun,
    SnapshotPosition,
    Snapshots,
    take_back,
)
from foreblock.ledger.building.closed_index import base_of
from foreblock.ledger.building.commit_builder import CommitBuilder
from foreblock.ledger.storage.chain_head import read_header
from foreblock.ledger.storage.dev_rows import ChainSnapshot, merged
from foreblock.sequencer.block_builder import BlockBuilder, run_in_turn
from foreblock.sequencer.block_changes import BlockChanges
from foreblock.sequencer.load import Load
from foreblock.types import Flashblock, Header, StateEdit, Transaction, decode_transactions


class BlockToReplay(NamedTuple):
    """The first block of a fork: that of the other chain, and its transactions up to one."""

    header: Header
    transactions: Sequence[Transaction]


class Rewriter:
    """Rewrites one chain."""

    def __init__(
        self,
        builder: BlockBuilder,
        changes: BlockChanges,
        load: Load | None,
        first_block: BlockToReplay | None = None,
    ) -> None:
        self._builder: Final = builder
        self._changes: Final = changes
        self._mining: Final = builder.mining
        self._writer: Final = builder.writer
        self._load: Final = load
        self._first_block: Final = first_block
        self.snapshots: Final = Snapshots(builder.writer)

    # --- As faults do ------------------------------------------------------------------

    def drop_tail(self, now_ns: int) -> None:
        """Seal the block in progress without its last stored index and what came after it."""
        builder, writer, whole = self._builder, self._writer, self._builder.block
        tail = builder.transactions_of(whole.number, whole.partials[-1:])
        edits = self._changes.edits_of(whole.number, whole.partials[-1:])
        steps = CommitBuilder(writer.store)
        steps.drop(whole.partials[-1:], "not in the sealed block")
        whole.close()
        builder.block = writer.current = writer.resume(whole.partials[-2])
        builder.block.skip_to(whole.index - 1 - whole.empty_indexes)
        builder.seal(now_ns, steps)
        self._changes.edit_again(edits)
        builder.put_back(tail)

    def shift(self, depth: int, now_ns: int, due_ns: int) -> None:
        """Replace sealed blocks and the one in progress by others, and begin the next.

        In the new branch transactions are one block higher than before: its first block has
        none, and those of the block in progress go back to the pool.
        """
        builder, fork = self._builder, self._writer.latest.number - depth
        self.snapshots.forget_above(fork)
        old = self._headers_above(fork)
        times = [*(each.timestamp for each in old), builder.base.timestamp]
        moved = [[], *(builder.transactions_of(each.number) for each in old)]
        edits, left = self._edits_above(old), self._unsealed()
        run = BlockRun.replacing(self._writer, builder.clock, fork, builder.block)
        for timestamp, transactions in zip(times, moved, strict=True):
            left = [*self._add_sealed(run, timestamp, old[0].hash, transactions), *left]
        base = builder.base_on(run.latest)
        builder.start(run.begin(base, self._mining.id_of(base)))
        run.close_index()
        builder.adopt(run.block, run.commit(), now_ns, due_ns)
        self._changes.edit_again(edits)
        builder.put_back(left)

    # --- As commands do ----------------------------------------------------------------

    def roll_back(self, fork: int) -> None:
        """Abandon all sealed blocks above this one; what is not sealed yet waits again."""
        waiting = [*self._unsealed(), *self._builder.pooled()]
        self._mining.begin_branch()
        self._finish(self._replacing(fork), fork, waiting)

    def reset(self, instance: bytes) -> None:
        """Restart the chain at its first block, as another instance, with an empty pool.

        Raises `InvalidTransaction` if the first block of a fork cannot be executed.
        """
        self._mining.restore_first()
        self._restore_faults()
        self._mining.change(instance=instance)
        self.snapshots.forget_from(0)
        self.begin()

    def begin(self) -> None:
        """Begin the chain in one commit: on a fork, with its first block."""
        first = self._writer.first
        run = self._replacing(first)
        if self._first_block is not None:
            self._replay(run, self._first_block)
        self._finish(run, first, [])

    def _replay(self, run: BlockRun, replayed: BlockToReplay) -> None:
        """Add the block to a run. Raises `InvalidTransaction` with its index, `EndpointError`."""
        try:
            base = base_of(replayed.header)
            block = run.begin(base, self._mining.another_id(base))
            for index, each in enumerate(replayed.transactions):
                try:
                    block.run([each])
                except InvalidTransaction as invalid:
                    raise InvalidTransaction(index, invalid.why) from None
            run.close_index()
            run.seal()
        except BaseException:
            run.close()
            raise

    def reorganize(
        self, depth: int, placed: Mapping[int, list[Transaction]], *, put_back: bool
    ) -> None:
        """Replace sealed blocks by others; unsealed transactions go back to the pool.

        `placed` are transactions of the new blocks, by offset; `RefusedCommand` if one cannot run
        there. With `put_back`, other transactions of the old blocks wait again, and their edits
        are made again.
        """
        builder, fork = self._builder, self._writer.latest.number - depth
        old = self._headers_above(fork)
        named = {each.hash for some in placed.values() for each in some}
        abandoned = self._unsealed()
        edits = self._edits_above(old) if put_back else ()
        if put_back:
            sealed = [each for header in old for each in builder.transactions_of(header.number)]
            abandoned = [*sealed, *abandoned]
        waiting = [each for each in (*abandoned, *builder.pooled()) if each.hash not in named]
        run = self._replacing(fork)
        for offset, header in enumerate(old):
            some = placed.get(offset, [])
            left = self._add_sealed(run, header.timestamp, old[0].hash, some)
            if left:
                run.close()
                raise RefusedCommand(f"transaction 0x{left[0].hash.hex()} cannot run in its block")
        self._mining.begin_branch()
        self._finish(run, fork, waiting)
        self._changes.edit_again(edits)

    # --- Snapshots ---------------------------------------------------------------------

    def take_snapshot(self) -> int:
        """Take a snapshot of the chain; returns its id."""
        self._changes.commit_block()
        builder, mining = self._builder, self._mining
        snapshot = ChainSnapshot(
            partial=builder.block.partials[-1],
            index=builder.block.index - 1,
            time=mining.time,
            state=mining.state,
            waiting=tuple((each.raw, each.sender) for each in builder.pooled()),
        )
        number = mining.state.next_snapshot
        self.snapshots.add(number, snapshot)
        mining.change(next_snapshot=number + 1)
        self._changes.mark()
        return number

    def revert(self, number: int) -> bool:
        """Return the chain to a snapshot; returns False if there is none."""
        snapshot = self.snapshots.get(number)
        if snapshot is None:
            return False
        if self._is_at(snapshot):
            self.snapshots.forget_from(number)
            self._changes.discard()
            self._restore(snapshot)
            self._builder.reschedule()
            self._changes.mark()
            return True
        writer, builder = self._writer, self._builder
        with writer.store.view() as view:
            position = SnapshotPosition(view, snapshot.partial, snapshot.index)
        self.snapshots.forget_from(number)
        self._restore(snapshot)
        job = self._mining.another_id(position.base)
        block = take_back(writer, builder.block, position, job, builder.clock.wall_ns())
        raws, senders = [raw for raw, _ in snapshot.waiting], [who for _, who in snapshot.waiting]
        waiting = decode_transactions(raws, senders=senders)
        self._switch_to(block, position.flashblocks(job), waiting)
        return True

    def blocks_since(self, snapshot: int) -> int:
        """How many blocks were sealed since a snapshot; 0 if there is none."""
        block = self.snapshots.block_of(snapshot)
        return 0 if block is None else self._builder.parent.number - block

    def _is_at(self, snapshot: ChainSnapshot) -> bool:
        """Return True if nothing was committed to the chain or the pool since a snapshot."""
        block = self._builder.block
        is_there = (block.partials[-1:], block.index - 1) == ((snapshot.partial,), snapshot.index)
        return is_there and not (self._builder.waiting or snapshot.waiting)

    def _restore(self, snapshot: ChainSnapshot) -> None:
        """Make the settings and the time what they were."""
        self._mining.restore(snapshot.state)
        self._restore_faults()
        self._mining.follow_time(snapshot.time)

    def _restore_faults(self) -> None:
        faults = self._mining.state.faults
        self._builder.faults.set(faults)
        self._mining.change(faults=faults)

    # --- Steps of these ----------------------------------------------------------------

    def _replacing(self, fork: int) -> BlockRun:
        """A run on this block; no name finds what was above it afterwards."""
        builder = self._builder
        return BlockRun.replacing(self._writer, builder.clock, fork, builder.block, findable=False)

    def _add_sealed(
        self, run: BlockRun, timestamp: int, instead_of: bytes, transactions: list[Transaction]
    ) -> list[Transaction]:
        """Add a sealed block to a run, instead of another one; returns what could not run."""
        base = self._mining.next_base(run.latest, timestamp, instead_of)
        block, left = run.begin(base, self._mining.another_id(base)), []
        self._builder.start(block)
        run.close_index()
        for transaction in transactions:
            try:
                run_in_turn(block, transaction)
            except InvalidTransaction:
                left.append(transaction)
        if transactions:
            run.close_index()
        run.seal()
        return left

    def _finish(self, run: BlockRun, fork: int, waiting: list[Transaction]) -> None:
        """Begin the block in progress of a run, and make the run the chain."""
        self.snapshots.forget_above(fork)
        self._mining.change(keeps_time=False, is_edited=False)
        base = self._builder.base_on(run.latest)
        self._builder.start(run.begin(base, self._mining.another_id(base)))
        run.close_index()
        self._switch_to(run.block, run.commit(), waiting)

    def _switch_to(
        self,
        block: BlockInProgress,
        flashblocks: Sequence[Flashblock],
        waiting: Sequence[Transaction],
    ) -> None:
        """Continue with the block in progress of another branch; only these transactions wait."""
        builder = self._builder
        self._changes.forget_time()
        builder.faults.forget()
        if self._load is not None:
            self._load.start_again()
        builder.empty_pool()
        builder.adopt(block, flashblocks, builder.clock.monotonic_ns())
        builder.put_back(waiting)

    def _headers_above(self, fork: int) -> list[Header]:
        with self._writer.store.view() as view:
            latest = self._writer.latest.number
            return [read_header(view, number)[0] for number in range(fork + 1, latest + 1)]

    def _edits_above(self, old: Sequence[Header]) -> tuple[StateEdit, ...]:
        """The edits in these blocks and in the one in progress."""
        block, edits_of = self._builder.block, self._changes.edits_of
        edits = [each for header in old for each in edits_of(header.number)]
        return merged([*edits, *edits_of(block.number, block.partials)])

    def _unsealed(self) -> list[Transaction]:
        """The users' transactions in the closed indices of the block in progress."""
        block = self._builder.block
        return self._builder.transactions_of(block.number, block.partials)
