"""Commands about accounts, the pool and the console output of a chain."""

from typing import Final

from foreblock.bus.commands import (
    DropTransactions,
    Impersonate,
    ImpersonateAll,
    SendUnsigned,
    SetConsoleOutput,
)
from foreblock.errors import PoolRefusal, RefusedCommand
from foreblock.sequencer.commands.execution import executes
from foreblock.sequencer.sequencer import Sequencer

MOST_IMPERSONATED: Final = 1_000  # accounts; they are in a row that many commits write
NO_SIGNER: Final = "No Signer available"  # anvil's words, which tools read


@executes(Impersonate)
def impersonate(command: Impersonate, sequencer: Sequencer) -> None:
    """Accept transactions of an account without a signature, or stop doing so."""
    before, who = sequencer.mining.state.impersonated, command.address
    if command.is_on == (who in before):
        return
    if command.is_on and len(before) >= MOST_IMPERSONATED:
        raise RefusedCommand(
            f"{len(before)} accounts are impersonated, which is the most; "
            "anvil_autoImpersonateAccount impersonates all"
        )
    after = (*before, who) if command.is_on else tuple(each for each in before if each != who)
    sequencer.mining.change(impersonated=after)
    sequencer.changes.mark()


@executes(ImpersonateAll)
def impersonate_all(command: ImpersonateAll, sequencer: Sequencer) -> None:
    """Accept transactions of every account without a signature, or stop doing so."""
    if sequencer.mining.state.impersonates_all != command.is_on:
        sequencer.mining.change(impersonates_all=command.is_on)
        sequencer.changes.mark()


@executes(SendUnsigned)
def send_unsigned(command: SendUnsigned, sequencer: Sequencer) -> bytes | str:
    """Add a transaction without a signature; returns its hash, or the reason of the pool."""
    state, sender = sequencer.mining.state, command.sender
    if not (command.is_allowed or state.impersonates_all or sender in state.impersonated):
        raise RefusedCommand(NO_SIGNER)
    try:
        transaction = sequencer.submit_unsigned(command)
    except PoolRefusal as refusal:
        return str(refusal)
    sequencer.settle()
    return transaction.hash


@executes(DropTransactions)
def drop_transactions(command: DropTransactions, sequencer: Sequencer) -> list[bytes]:
    """Drop transactions that wait: one, those of a sender, or all; returns their hashes."""
    return sequencer.drop(command.hash, command.sender)


@executes(SetConsoleOutput)
def set_console_output(command: SetConsoleOutput, sequencer: Sequencer) -> None:
    """Turn console output on or off; None leaves a setting unchanged."""
    state = sequencer.mining.state
    sequencer.mining.change(
        prints=state.prints if command.is_on is None else command.is_on,
        prints_traces=state.prints_traces if command.traces is None else command.traces,
    )
    sequencer.changes.mark()
