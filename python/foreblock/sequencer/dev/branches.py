"""Commands that take the chain back or replace a part of it: snapshots, reset, reorganisation.

Each is one commit. What is given up can be reached by no name any more, and snapshots of it are
gone. The block in progress that follows is always a new job, so that those who follow the feed
take it for a restart.
"""

import secrets
from collections import defaultdict
from collections.abc import Sequence

from foreblock.bus.commands import Reorganize, Reset, Revert, Rollback, SetHead, TakeSnapshot
from foreblock.errors import RefusedCommand
from foreblock.ledger.building.chain_rewriting import BlockRun, SnapshotPosition, take_back
from foreblock.ledger.storage.chain_head import read_header
from foreblock.ledger.storage.dev_rows import MOST, ChainSnapshot
from foreblock.sequencer.dev.branching import BranchingSequencer
from foreblock.types import Cheat, Transaction, decode_transactions


def take_snapshot(sequencer: BranchingSequencer, _: TakeSnapshot) -> int:
    """Remember the chain as it is; gives the id of the snapshot."""
    if len(sequencer.snapshots) >= MOST:
        raise RefusedCommand(f"there are {MOST} snapshots, which is the most; revert to one first")
    sequencer.flush_block()
    block = sequencer.block
    snapshot = ChainSnapshot(
        partial=block.partials[-1],
        index=block.index - 1,
        time=sequencer.time,
        state=sequencer.state,
        waiting=tuple((each.raw, each.sender) for each in sequencer.pooled()),
    )
    number = sequencer.state.next_snapshot
    sequencer.snapshots.add(number, snapshot)
    sequencer.change(next_snapshot=number + 1)
    sequencer.mark_changed()
    return number


def revert(sequencer: BranchingSequencer, command: Revert) -> bool:
    """Make the chain what it was at a snapshot; gives whether there is such a snapshot."""
    writer, snapshot = sequencer.writer, sequencer.snapshots.get(command.id)
    if snapshot is None:
        return False
    if sequencer.stands_at(snapshot):
        sequencer.snapshots.forget_from(command.id)
        sequencer.discard_uncommitted()
        sequencer.restore(snapshot.state, snapshot.time)
        sequencer.reschedule()
        return True
    with writer.store.view() as view:
        place = SnapshotPosition(view, snapshot.partial, snapshot.index)
    sequencer.snapshots.forget_from(command.id)
    sequencer.restore(snapshot.state, snapshot.time)
    job = sequencer.another_id(place.base)
    block = take_back(writer, sequencer.block, place, job, sequencer.clock.wall_ns())
    raws, senders = [raw for raw, _ in snapshot.waiting], [who for _, who in snapshot.waiting]
    waiting = decode_transactions(raws, senders=senders)
    sequencer.go_on_with(block, place.flashblocks(job), waiting)
    return True


def reset(sequencer: BranchingSequencer, _: Reset) -> None:
    """Begin the chain anew on its genesis, as another instance, with an empty pool."""
    _check_kept(sequencer, 0)
    sequencer.restore_first(secrets.token_bytes(32))
    sequencer.snapshots.forget_from(0)
    _go_back(sequencer, 0, [])


def roll_back(sequencer: BranchingSequencer, command: Rollback) -> None:
    """Give up sealed blocks with what is in them; what is not sealed yet waits again."""
    fork = _fork(sequencer, command.depth, "Rollback")
    waiting = [*_unsealed(sequencer), *sequencer.pooled()]
    sequencer.change(branches=sequencer.state.branches + 1)
    _go_back(sequencer, fork, waiting)


def set_head(sequencer: BranchingSequencer, command: SetHead) -> None:
    """Give up sealed blocks above one, as a rollback does."""
    latest = sequencer.parent.number
    if command.number > latest:
        raise RefusedCommand(f"block {command.number} is above the latest block, {latest}")
    if command.number < latest:
        roll_back(sequencer, Rollback(latest - command.number))


def reorganize(sequencer: BranchingSequencer, command: Reorganize) -> None:
    """Replace sealed blocks by as many others; what is not sealed yet waits again."""
    depth = command.depth
    fork = _fork(sequencer, depth, "Reorg")
    if not depth:
        return
    placed = _placed(command)
    with sequencer.writer.store.view() as view:
        old = [read_header(view, fork + 1 + each)[0] for each in range(depth)]
    named = {each.hash for some in placed.values() for each in some}
    given_up, cheats = _unsealed(sequencer), list[Cheat]()
    if command.put_back:
        cheats = [each for header in old for each in sequencer.cheats_of(header.number)]
        cheats += sequencer.cheats_of(sequencer.block.number, sequencer.block.partials)
        sealed = [each for header in old for each in sequencer.transactions_of(header.number)]
        given_up = [*sealed, *given_up]
    waiting = [each for each in (*given_up, *sequencer.pooled()) if each.hash not in named]
    run = _branch(sequencer, fork)
    for offset, header in enumerate(old):
        left = sequencer.add_sealed(run, header.timestamp, old[0].hash, placed[offset])
        if left:
            run.close()
            raise RefusedCommand(f"transaction 0x{left[0].hash.hex()} cannot run in its block")
    sequencer.change(branches=sequencer.state.branches + 1)
    _finish(sequencer, run, fork, waiting, cheats)


def _branch(sequencer: BranchingSequencer, fork: int) -> BlockRun:
    """A run on this block; no name finds what was above it afterwards."""
    writer, clock, block = sequencer.writer, sequencer.clock, sequencer.block
    return BlockRun.replacing(writer, clock, fork, block, findable=False)


def _go_back(sequencer: BranchingSequencer, fork: int, waiting: list[Transaction]) -> None:
    """Give up all sealed blocks above this one, and begin the next."""
    run = _branch(sequencer, fork)
    _finish(sequencer, run, fork, waiting)


def _finish(
    sequencer: BranchingSequencer,
    run: BlockRun,
    fork: int,
    waiting: list[Transaction],
    cheats: Sequence[Cheat] = (),
) -> None:
    """Begin the block in progress of a run, and make the run the chain."""
    sequencer.snapshots.forget_above(fork)
    sequencer.change(keeps_time=False, is_cheated=False)
    sequencer.begin_branch(run)
    sequencer.go_on_with(run.block, run.commit(), waiting)
    sequencer.set_again(cheats)
    sequencer.settle()


def _unsealed(sequencer: BranchingSequencer) -> list[Transaction]:
    """The users' transactions in the closed indices of the block in progress."""
    block = sequencer.block
    return sequencer.transactions_of(block.number, block.partials)


def _fork(sequencer: BranchingSequencer, depth: int, what: str) -> int:
    """The block that stays the last; the words are anvil's."""
    latest = sequencer.parent.number
    if depth > latest:
        raise RefusedCommand(
            f"{what} depth must not exceed current chain height: "
            f"current height {latest}, depth {depth}"
        )
    _check_kept(sequencer, latest - depth)
    return latest - depth


def _check_kept(sequencer: BranchingSequencer, block: int) -> None:
    with sequencer.writer.store.view() as view:
        earliest = view.heads.earliest
    if block < earliest:
        raise RefusedCommand(
            f"the chain cannot go back to block {block}: states from {earliest} on are kept"
        )


def _placed(command: Reorganize) -> defaultdict[int, list[Transaction]]:
    """The transactions for each block of the new branch."""
    placed: defaultdict[int, list[Transaction]] = defaultdict(list)
    for offset, raw, sender in command.placed:
        if offset >= command.depth:
            raise RefusedCommand(
                "Block number for reorg tx will exceed the reorged chain height. "
                f"Block number {offset} must not exceed (depth-1) {command.depth - 1}"
            )
        placed[offset] += decode_transactions([raw], senders=[sender])
    return placed
