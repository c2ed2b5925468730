"""Puts off commands of a dev chain that one process serves and writes.

A commit costs as much for one account that is set by hand as for a hundred. So those that set
accounts or the time, snapshots and ways back to them are written to a journal, answered, and
carried out together: before anything else reads or changes the chain, when none has come for
`PAUSE` seconds, or after `LONGEST` of them. Nobody sees the chain without them, and who is killed
carries them out when it begins again.

All of it is on the loop. Only what is short is put off, where commits wait for no disk, nothing
waits in the pool, and no thread works on the chain.

While one command waits, those that follow it are taken by the engine from the bytes of their
requests, if they are of the usual kinds (`CommandQueue`): what may be put off cannot change before
the first of them is carried out. They are heard of here when something else comes.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from foreblock.bus.commands import (
    AddBalance,
    AnyCommand,
    IncreaseTime,
    Revert,
    SetAccount,
    TakeSnapshot,
)
from foreblock.bus.deferral import NOT_PUT_OFF, DoneHere, NotPutOff
from foreblock.errors import RefusedCommand
from foreblock.ledger.storage.deferred_row import CommandQueue, read_carried_out
from foreblock.ledger.storage.dev_rows import MOST
from foreblock.sequencer.dev.branching import BranchingSequencer
from foreblock.sequencer.dev.deferred import DeferredCommands, carry_out, commit_end
from foreblock.sequencer.dev.execution import is_short
from foreblock.sequencer.dev.mining import increased_offset
from foreblock.sources.command_journal import (
    CommandJournal,
    JournaledCommand,
    decode_commands,
)

PAUSE: Final = 0.01  # seconds
LONGEST: Final = 0.1
MOST_COMMANDS: Final = 1024  # that are carried out together, in ten milliseconds


class DeferredChanges:
    """What was put off on one chain, and its journal."""

    def __init__(
        self,
        sequencer: BranchingSequencer,
        journal: CommandJournal,
        catch_up: Callable[[], None] = lambda: None,
        called: Callable[[str, int], None] = lambda name, times: None,  # noqa: ARG005, nobody
    ) -> None:
        """Carry out what the journal has and the chain has not.

        `catch_up` is called before the chain is taken back, by who reads what is given up.
        `called` hears which methods were called whose commands the engine has taken.
        """
        self._called: Final = called
        self._catch_up: Final = catch_up
        self._sequencer: Final = sequencer
        self._journal: Final = journal
        with sequencer.writer.store.view() as view:
            carried_out = read_carried_out(view)
        batch, recorded = journal.read()
        self._deferred = DeferredCommands(sequencer.state.next_snapshot)
        if recorded and batch >= carried_out.batch:
            for each in recorded:
                self._take(each)
            done = carried_out.steps if batch == carried_out.batch else 0
            carry_out(sequencer, self._deferred, batch, done)
        self._batch = max(batch, carried_out.batch)
        self._commit = 0  # the last one when what waited was carried out
        self._begin()

    @property
    def count(self) -> int:
        """How many commands wait."""
        return self._deferred.count + self.queue.count

    @property
    def queue(self) -> CommandQueue:
        """Takes commands from requests, while it is open."""
        return self._journal.queue

    def hear(self) -> None:
        """Hear of the commands that the queue has taken."""
        if not self.queue.count:
            return
        taken, names = self.queue.take()
        for each in decode_commands(taken):
            self._take(each)
        for name, times in names:
            self._called(name, times)

    def put_off(self, command: AnyCommand) -> Any:  # noqa: ANN401, its own
        """The result of a command that will be carried out, or `NOT_PUT_OFF`."""
        self.hear()
        if not self._deferred.count:  # snapshots may have been taken at once since it began
            self._deferred.next_snapshot = self._sequencer.state.next_snapshot
        result, recorded = self._result(command), None
        if result is NOT_PUT_OFF or result is False:
            return result
        if isinstance(command, SetAccount | AddBalance | Revert):
            recorded = JournaledCommand(command)
        elif isinstance(command, TakeSnapshot | IncreaseTime):
            recorded = JournaledCommand(command, result)
        assert recorded is not None, "no other command has a result"
        try:
            self._journal.add(self._batch, recorded)
        except OSError:
            return NOT_PUT_OFF  # whoever commits says why
        self._take(recorded)
        self._open()
        return result

    def carry_out(self, *, is_followed: bool = False) -> bool:
        """Carry out what waits; gives whether the chain was taken back.

        Where a change of the chain follows, which is committed, `end` has to be called after it.
        """
        self.queue.close()
        self.hear()
        deferred = self._deferred
        if deferred.goes_back:
            self._catch_up()
        carry_out(self._sequencer, deferred, self._batch, is_followed=is_followed)
        self._commit = self._sequencer.writer.last_commit
        if not is_followed:
            self._begin()
        return deferred.goes_back

    def end(self) -> None:
        """Commit what was to go with a change that has come to nothing."""
        if self._sequencer.writer.last_commit == self._commit:
            commit_end(self._sequencer, self._deferred)
        self._begin()

    def close(self) -> None:
        """Take nothing any more."""
        self._journal.close()

    def _open(self) -> None:
        """Let the queue take what may be put off, until something is carried out."""
        sequencer, deferred = self._sequencer, self._deferred
        snapshots = 0
        if _is_short(sequencer, TakeSnapshot()):
            snapshots = max(0, MOST - len(sequencer.snapshots) - deferred.snapshots)
        self.queue.open(
            self._batch,
            commands=max(0, MOST_COMMANDS - deferred.count),
            accounts=_is_short(sequencer, SetAccount(b"")),
            snapshots=snapshots,
            next_snapshot=deferred.next_snapshot,
            waiting=[each for each in deferred.steps if isinstance(each, int)],
        )

    def _begin(self) -> None:
        """Begin the next batch."""
        self._batch += 1
        self._journal.begin()
        self._deferred = DeferredCommands(self._sequencer.state.next_snapshot)

    def _result(self, command: AnyCommand) -> Any:  # noqa: ANN401, its own
        """What a command will give, if that is certain and takes little."""
        sequencer, deferred = self._sequencer, self._deferred
        if isinstance(command, IncreaseTime):
            return self._offset_after(command)
        is_uncertain = isinstance(command, SetAccount) and command.nonce is not None
        if is_uncertain or not isinstance(command, SetAccount | AddBalance | TakeSnapshot | Revert):
            return NOT_PUT_OFF  # a nonce may be too low
        if isinstance(command, Revert):
            is_stored = sequencer.snapshots.block_of(command.id) is not None
            if not deferred.has_snapshot(command.id, is_stored=is_stored):
                return False
        if not _is_short(sequencer, command):
            return NOT_PUT_OFF
        if isinstance(command, TakeSnapshot):
            is_room = len(sequencer.snapshots) + deferred.snapshots < MOST
            return deferred.next_snapshot if is_room else NOT_PUT_OFF
        return True if isinstance(command, Revert) else None

    def _offset_after(self, command: IncreaseTime) -> int | NotPutOff:
        """By how much time will be ahead, where the next transaction or block makes it seen."""
        sequencer, deferred = self._sequencer, self._deferred
        is_automine = sequencer.state.mining == "automine"
        if not is_automine or deferred.goes_back or not is_short(sequencer, command):
            return NOT_PUT_OFF
        offset = sequencer.state.offset if deferred.offset is None else deferred.offset
        try:
            return increased_offset(sequencer, offset, command)
        except RefusedCommand:
            return NOT_PUT_OFF

    def _take(self, recorded: JournaledCommand) -> None:
        command = recorded.command
        if isinstance(command, TakeSnapshot):
            self._deferred.take_snapshot(recorded.result)
        elif isinstance(command, IncreaseTime):
            assert recorded.result is not None, "it is written with its result"
            self._deferred.set_offset(recorded.result)
        elif isinstance(command, Revert):
            self._deferred.revert(command)
        else:
            self._deferred.set_account(command)


def _is_short(sequencer: BranchingSequencer, command: AnyCommand) -> bool:
    if isinstance(command, TakeSnapshot):  # which commits nothing else
        return not (sequencer.waiting or sequencer.has_transactions)
    return is_short(sequencer, command)


class LoopDeferral:
    """The `Deferral` of a chain, on the loop that serves and writes it."""

    def __init__(
        self,
        changes: Callable[[], DeferredChanges | None],
        is_at_rest: Callable[[], bool],
        settled: Callable[[bool], None],
        failed: Callable[[BaseException], None],
        here: DoneHere,
    ) -> None:
        """`settled` hears whether the chain was taken back.

        `changes` gives none while commits may take long, and `failed` gets why one failed.
        """
        self._changes: Final = changes
        self._is_at_rest: Final = is_at_rest
        self._settled: Final = settled
        self._failed: Final = failed
        self._begun: DeferredChanges | None = None  # that has something waiting
        self._timer: asyncio.TimerHandle | None = None
        self._counted = 0  # commands that waited when the timer was set
        self._until = 0.0  # they wait for a pause, on the loop's clock
        self._watching: Final[list[Callable[[bool], None]]] = []
        self.here: Final = here
        self.may_put_off = False
        self.is_alone = False

    def watch(self, call: Callable[[bool], None]) -> None:
        """Say whether something waits when that changes."""
        self._watching.append(call)

    def hear(self) -> None:
        """Hear of the commands that the engine has put off by itself."""
        if self._begun is not None:
            self._begun.hear()

    def put_off(self, command: AnyCommand) -> Any:  # noqa: ANN401, its own
        """The result of a command that is carried out later, or `NOT_PUT_OFF`."""
        may_put_off, self.may_put_off = self.may_put_off, False
        changes = self._begun or self._changes()
        if changes is None or not may_put_off or not self._is_at_rest():
            return NOT_PUT_OFF
        result = changes.put_off(command)
        if not changes.count:
            return result
        if self._begun is None:
            self._begun = changes
            self._until = asyncio.get_running_loop().time() + LONGEST
            self._await_pause(changes.count)
            self._say(is_waiting=True)
        elif changes.count >= MOST_COMMANDS:
            self.settle()
        return result

    @contextmanager
    def joined(self) -> Iterator[None]:
        """Carry out what was put off, its last commit together with that of a change."""
        changes = self._begun
        self.settle(is_followed=True)
        yield
        if changes is not None:
            changes.end()

    def settle(self, *, is_followed: bool = False) -> None:
        """Carry out what was put off."""
        changes, timer = self._begun, self._timer
        if changes is None or timer is None:
            return
        self._begun = self._timer = None
        timer.cancel()
        try:
            taken_back = changes.carry_out(is_followed=is_followed)
        except BaseException as error:
            self._failed(error)
            raise
        self._settled(taken_back)
        self._say(is_waiting=False)

    def _say(self, *, is_waiting: bool) -> None:
        for call in self._watching:
            call(is_waiting)

    def _await_pause(self, count: int) -> None:
        self._counted = count
        self._timer = asyncio.get_running_loop().call_later(PAUSE, self._settle_late)

    def _settle_late(self) -> None:
        """Carry out what was put off, unless more is still coming."""
        count = 0 if self._begun is None else self._begun.count
        if count > self._counted and asyncio.get_running_loop().time() < self._until:
            self._await_pause(count)
            return
        with suppress(Exception):  # the network fails with it
            self.settle()
