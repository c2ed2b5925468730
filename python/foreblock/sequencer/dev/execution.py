"""Which function carries out which command."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from foreblock.bus import commands
from foreblock.bus.commands import AnyCommand
from foreblock.errors import RefusedCommand
from foreblock.sequencer.dev import accidents, accounts, branches, cheats, mining
from foreblock.sequencer.dev.branching import BranchingSequencer

_TABLE: Final[dict[type, Callable[[BranchingSequencer, Any], Any]]] = {
    commands.Mine: mining.mine,
    commands.SetMining: mining.set_mining,
    commands.SetFlashblockInterval: mining.set_flashblock_interval,
    commands.IncreaseTime: mining.increase_time,
    commands.SetTime: mining.set_time,
    commands.SetNextTimestamp: mining.set_next_timestamp,
    commands.SetTimestampInterval: mining.set_timestamp_interval,
    commands.NextBlock: mining.next_block,
    commands.TakeSnapshot: branches.take_snapshot,
    commands.Revert: branches.revert,
    commands.Reset: branches.reset,
    commands.Rollback: branches.roll_back,
    commands.SetHead: branches.set_head,
    commands.Reorganize: branches.reorganize,
    commands.CloseFlashblock: accidents.close_flashblock,
    commands.RestartBlock: accidents.restart_block,
    commands.DropTail: accidents.drop_tail,
    commands.Equivocate: accidents.equivocate,
    commands.SetFaults: accidents.set_faults,
    commands.Impersonate: accounts.impersonate,
    commands.ImpersonateAll: accounts.impersonate_all,
    commands.SendUnsigned: accounts.send_unsigned,
    commands.DropTransactions: accounts.drop_transactions,
    commands.SetAccount: cheats.set_account,
    commands.AddBalance: cheats.set_account,
    commands.LoadState: cheats.load_state,
}


def execute_together(
    sequencer: BranchingSequencer, wanted: Sequence[commands.SetAccount | commands.AddBalance]
) -> list[RefusedCommand | None]:
    """Carry out commands that set accounts, in one commit; gives which were refused."""
    return cheats.set_accounts(sequencer, wanted)


def execute(sequencer: BranchingSequencer, command: AnyCommand) -> Any:  # noqa: ANN401, its own
    """Carry out a command, committed when this returns; raises `RefusedCommand`."""
    carry_out = _TABLE.get(type(command))
    if carry_out is None:
        raise RefusedCommand(f"{type(command).__name__} is not available")
    return carry_out(sequencer, command)
