"""Which function carries out which command."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from foreblock.bus import commands
from foreblock.bus.commands import AnyCommand
from foreblock.errors import RefusedCommand
from foreblock.sequencer.dev import accounts, branches, cheats, fault_commands, mining
from foreblock.sequencer.dev.branching import BranchingSequencer
from foreblock.sequencer.dev.cheating import MOST_CHEATED

FEW_BLOCKS: Final = 4
# That take as long to set as a block to mine.
CODE_OF_A_BLOCK: Final = 16_384  # bytes
SLOTS_OF_A_BLOCK: Final = 64

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
    commands.CloseFlashblock: fault_commands.close_flashblock,
    commands.RestartBlock: fault_commands.restart_block,
    commands.DropTail: fault_commands.drop_tail,
    commands.Equivocate: fault_commands.equivocate,
    commands.SetFaults: fault_commands.set_faults,
    commands.Impersonate: accounts.impersonate,
    commands.ImpersonateAll: accounts.impersonate_all,
    commands.SendUnsigned: accounts.send_unsigned,
    commands.DropTransactions: accounts.drop_transactions,
    commands.SetAccount: cheats.set_account,
    commands.AddBalance: cheats.set_account,
    commands.SetAccounts: cheats.set_all,
    commands.LoadState: cheats.load_state,
    commands.SetPrinting: accounts.set_printing,
}


def is_short(sequencer: BranchingSequencer, command: AnyCommand) -> bool:
    """Return True if a command takes at most a millisecond, not counting the disk.

    Nothing runs again or for the first time, no more than a few blocks come or go, and cheats
    are not put together.
    """
    if sequencer.waiting or sequencer.has_transactions:
        return False
    match command:
        case commands.SetAccount(code=code, storage=slots):
            count = len(code or b"") // CODE_OF_A_BLOCK + len(slots or ()) // SLOTS_OF_A_BLOCK
            return len(sequencer.block.partials) < MOST_CHEATED and count <= FEW_BLOCKS
        case commands.AddBalance():
            return len(sequencer.block.partials) < MOST_CHEATED
        case commands.SetAccounts() | commands.LoadState() | commands.Reset():
            return False
        case commands.Mine(blocks=count) | commands.Rollback(count) | commands.Reorganize(count):
            return count <= FEW_BLOCKS
        case commands.Revert(id=number):
            count = sequencer.blocks_since(number)
        case _:
            count = len(sequencer.block.partials)
    return count <= FEW_BLOCKS


def execute_together(
    sequencer: BranchingSequencer, wanted: Sequence[commands.SetAccount | commands.AddBalance]
) -> list[RefusedCommand | None]:
    """Carry out commands that set accounts, in one commit; gives which were refused."""
    refused = cheats.set_accounts(sequencer, wanted)
    sequencer.flush()
    return refused


def execute(sequencer: BranchingSequencer, command: AnyCommand, *, lazily: bool = False) -> Any:  # noqa: ANN401, its own
    """Carry out a command; raises `RefusedCommand`.

    It is committed when this returns or, `lazily`, by the next flush.
    """
    carry_out = _TABLE.get(type(command))
    if carry_out is None:
        raise RefusedCommand(f"{type(command).__name__} is not available")
    if not command.joins_uncommitted:
        sequencer.flush()
    try:
        result = carry_out(sequencer, command)
    except RefusedCommand:  # of several accounts, some may have been set
        if not lazily:
            sequencer.flush()
        raise
    if not lazily:
        sequencer.flush()
    return result
