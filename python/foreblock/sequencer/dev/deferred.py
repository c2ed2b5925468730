"""Commands that wait to be carried out together. No I/O.

Accounts that are set one after the other become one step, and what comes between a snapshot and
the way back to it is never carried out: nobody has seen it.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from foreblock.bus.commands import AddBalance, Revert, SetAccount
from foreblock.ledger.storage.deferred_row import KEY, CarriedOut, encode_carried_out
from foreblock.sequencer.dev import branches, cheats
from foreblock.sequencer.dev.branching import BranchingSequencer


class TimeAhead(NamedTuple):
    """A step: time is `offset` seconds ahead from then on."""

    offset: int


# Accounts to set, the id of a snapshot to take, a way back, or another time.
Step = list[SetAccount | AddBalance] | int | Revert | TimeAhead


class DeferredCommands:
    """What waits, in its order."""

    def __init__(self, next_snapshot: int) -> None:
        """The ids of snapshots go on with this one."""
        self._steps: Final[list[Step]] = []
        self.next_snapshot = next_snapshot
        self.count = 0  # of commands

    @property
    def steps(self) -> Sequence[Step]:
        """What is to be carried out."""
        return self._steps

    @property
    def goes_back(self) -> bool:
        """Whether that takes the chain back."""
        return bool(self._steps) and isinstance(self._steps[0], Revert)

    @property
    def offset(self) -> int | None:
        """By how much time is ahead after all of it; none where it stays as it is."""
        ahead = (each.offset for each in reversed(self._steps) if isinstance(each, TimeAhead))
        return next(ahead, None)

    def set_offset(self, offset: int) -> None:
        """Let time be so much ahead."""
        self.count += 1
        if self._steps and isinstance(self._steps[-1], TimeAhead):
            self._steps.pop()
        self._steps.append(TimeAhead(offset))

    @property
    def snapshots(self) -> int:
        """How many snapshots are to be taken."""
        return sum(isinstance(each, int) for each in self._steps)

    def set_account(self, command: SetAccount | AddBalance) -> None:
        """Set an account."""
        self.count += 1
        if self._steps and isinstance(self._steps[-1], list):
            self._steps[-1].append(command)
        else:
            self._steps.append([command])

    def take_snapshot(self, number: int | None = None) -> int:
        """Take a snapshot, under this id if one is given; gives its id."""
        self.count += 1
        number = self.next_snapshot if number is None else number
        self.next_snapshot = number + 1
        self._steps.append(number)
        return number

    def has_snapshot(self, number: int, *, is_stored: bool) -> bool:
        """Whether there is a snapshot with this id; the chain has it where it `is_stored`."""
        if number in self._steps:
            return True
        first = self._steps[0] if self._steps else None
        return is_stored and not (isinstance(first, Revert) and number >= first.id)

    def revert(self, command: Revert) -> None:
        """Go back to a snapshot that there is."""
        self.count += 1
        if command.id in self._steps:
            del self._steps[self._steps.index(command.id) :]
        else:
            self._steps[:] = [command]


def carry_out(
    sequencer: BranchingSequencer,
    deferred: DeferredCommands,
    batch: int,
    done: int = 0,
    *,
    is_followed: bool = False,
) -> None:
    """Carry out what waits, but for the first steps that are `done`.

    The commit of each step says so: who is killed goes on with the next. A last step without a
    commit of its own goes with the one that comes next, where it `is_followed` by one at once:
    the block that this seals has the time that was asked for.
    """
    writer = sequencer.writer
    if deferred.next_snapshot > sequencer.state.next_snapshot:
        sequencer.change(next_snapshot=deferred.next_snapshot)
    for place, step in enumerate(deferred.steps[done:], done + 1):
        sequencer.make_ready()
        writer.put_extra_row(KEY, encode_carried_out(CarriedOut(batch, place)))
        if isinstance(step, list):
            cheats.set_accounts(sequencer, step)
        elif isinstance(step, int):
            branches.remember(sequencer, step)
        elif isinstance(step, TimeAhead):
            sequencer.set_offset(step.offset)
            if place < len(deferred.steps):
                sequencer.begin_at(None)
        else:
            branches.revert(sequencer, step)
    if not is_followed:
        commit_end(sequencer, deferred)


def commit_end(sequencer: BranchingSequencer, deferred: DeferredCommands) -> None:
    """Commit the last step where it has made no commit."""
    last = deferred.steps[-1] if deferred.steps else None
    if isinstance(last, TimeAhead):
        sequencer.begin_at(None)
    elif isinstance(last, int):
        sequencer.commit_state()
