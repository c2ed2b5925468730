"""Commands that take the chain back or replace a part of it: snapshots, reset, reorganisation."""

import secrets
from collections import defaultdict

from foreblock.bus.commands import (
    Reorganize,
    Reset,
    ResetFork,
    Revert,
    Rollback,
    SetForkUrl,
    SetHead,
    TakeSnapshot,
)
from foreblock.errors import RefusedCommand
from foreblock.ledger.storage.dev_rows import MOST
from foreblock.sequencer.commands.execution import executes
from foreblock.sequencer.sequencer import Sequencer
from foreblock.types import Transaction, decode_transactions


@executes(TakeSnapshot)
def take_snapshot(_: TakeSnapshot, sequencer: Sequencer) -> int:
    """Take a snapshot of the chain; returns its id."""
    if len(sequencer.rewriter.snapshots) >= MOST:
        raise RefusedCommand(f"there are {MOST} snapshots, which is the most; revert to one first")
    return sequencer.rewriter.take_snapshot()


@executes(Revert)
def revert(command: Revert, sequencer: Sequencer) -> bool:
    """Return the chain to a snapshot; returns False if there is none."""
    return sequencer.rewriter.revert(command.id)


@executes(Reset)
def reset(_: Reset, sequencer: Sequencer) -> None:
    """Restart the chain at its first block, as another instance, with an empty pool."""
    _check_kept(sequencer, sequencer.builder.writer.first)
    sequencer.rewriter.reset(secrets.token_bytes(32))
    sequencer.run_immediate()


@executes(ResetFork, SetForkUrl)
def change_fork(command: ResetFork | SetForkUrl, sequencer: Sequencer) -> None:
    """Restart a fork at another block, or replace its endpoint."""
    sequencer.change_fork(command)


@executes(Rollback)
def roll_back(command: Rollback, sequencer: Sequencer) -> None:
    """Abandon sealed blocks with what is in them; what is not sealed yet waits again."""
    sequencer.rewriter.roll_back(_fork(sequencer, command.depth, "Rollback"))
    sequencer.run_immediate()


@executes(SetHead)
def set_head(command: SetHead, sequencer: Sequencer) -> None:
    """Abandon sealed blocks above one, as a rollback does."""
    latest = sequencer.builder.parent.number
    if command.number > latest:
        raise RefusedCommand(f"block {command.number} is above the latest block, {latest}")
    if command.number < latest:
        roll_back(Rollback(latest - command.number), sequencer)


@executes(Reorganize)
def reorganize(command: Reorganize, sequencer: Sequencer) -> None:
    """Replace sealed blocks by others; unsealed transactions go back to the pool."""
    _fork(sequencer, command.depth, "Reorg")
    if command.depth:
        placed = _placed(command)
        sequencer.rewriter.reorganize(command.depth, placed, put_back=command.put_back)
        sequencer.run_immediate()


def _fork(sequencer: Sequencer, depth: int, what: str) -> int:
    """The block that stays the last; the words are anvil's."""
    latest = sequencer.builder.parent.number
    if depth > latest:
        raise RefusedCommand(
            f"{what} depth must not exceed current chain height: "
            f"current height {latest}, depth {depth}"
        )
    _check_kept(sequencer, latest - depth)
    return latest - depth


def _check_kept(sequencer: Sequencer, block: int) -> None:
    with sequencer.builder.writer.store.view() as view:
        earliest = view.heads.earliest
    if block < earliest:
        raise RefusedCommand(
            f"the chain cannot go back to block {block}: states from {earliest} on are kept"
        )


def _placed(command: Reorganize) -> dict[int, list[Transaction]]:
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
