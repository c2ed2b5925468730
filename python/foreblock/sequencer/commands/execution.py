"""The execution of commands: which function, and when its changes are committed."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

from foreblock.bus.commands import (
    AddBalance,
    ChainProgress,
    Command,
    DropTransactions,
    Impersonate,
    ImpersonateAll,
    LoadState,
    SendUnsigned,
    SetAccount,
    SetAccounts,
    SetConsoleOutput,
)
from foreblock.errors import RefusedCommand
from foreblock.sequencer.sequencer import Sequencer

SHORT_BLOCKS: Final = 4
# Commands that a mirror executes; all others are about blocks, their time or their order.
ON_A_MIRROR: Final = (
    *(SetAccount, AddBalance, SetAccounts, LoadState),
    *(SendUnsigned, Impersonate, ImpersonateAll, DropTransactions, SetConsoleOutput),
)
MIRRORS: Final = "the chain is a mirror (--mirror): its blocks and their time are the real chain's"


FUNCTIONS: Final[dict[type[Command], Callable[[Any, Sequencer], Any]]] = {}

F = TypeVar("F", bound=Callable[[Any, Sequencer], Any])


def executes(*kinds: type[Command]) -> Callable[[F], F]:
    """Make a function the one that executes commands of these classes."""

    def register(function: F) -> F:
        FUNCTIONS.update(dict.fromkeys(kinds, function))
        return function

    return register


def execute(sequencer: Sequencer, command: Command, *, lazily: bool = False) -> Any:  # noqa: ANN401, its own
    """Execute a command; raises `RefusedCommand`.

    It is committed when this returns or, `lazily`, by the next flush.
    """
    function = FUNCTIONS.get(type(command))
    if function is None:
        raise RefusedCommand(f"{type(command).__name__} is not available")
    if sequencer.mining.mirrors and not isinstance(command, ON_A_MIRROR):
        raise RefusedCommand(MIRRORS)
    if not command.joins_uncommitted:
        sequencer.changes.flush()
    try:
        result = function(command, sequencer)
    except RefusedCommand:  # of several accounts, some may have been set
        if not lazily:
            sequencer.changes.flush()
        raise
    if not lazily:
        sequencer.changes.flush()
    return result


def is_short(sequencer: Sequencer, command: Command) -> bool:
    """Return True if a command takes at most a millisecond, not counting the disk.

    Nothing is executed, for the first time or again, few blocks are added or abandoned, and edits
    are not merged.
    """
    builder = sequencer.builder
    if builder.waiting or builder.has_transactions:
        return False
    partials, merges_edits = len(builder.block.partials), sequencer.changes.merges_next
    progress = ChainProgress(partials, sequencer.rewriter.blocks_since, merges_edits=merges_edits)
    return command.blocks_of_work(progress) <= SHORT_BLOCKS
