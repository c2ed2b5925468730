"""Commands about accounts, the pool and the console output of a chain."""

from typing import Final

from foreblock.bus.commands import (
    DropTransactions,
    Impersonate,
    ImpersonateAll,
    SendUnsigned,
    SetPrinting,
)
from foreblock.errors import PoolRefusal, RefusedCommand
from foreblock.sequencer.dev.dev_sequencer import DevSequencer

MOST_IMPERSONATED: Final = 1_000  # accounts; they are in a row that many commits write
NO_SIGNER: Final = "No Signer available"  # anvil's words, which tools read


def impersonate(sequencer: DevSequencer, command: Impersonate) -> None:
    """Take transactions of an account without a signature, or no longer."""
    before, who = sequencer.state.impersonated, command.address
    if command.is_on == (who in before):
        return
    if command.is_on and len(before) >= MOST_IMPERSONATED:
        raise RefusedCommand(
            f"{len(before)} accounts are impersonated, which is the most; "
            "anvil_autoImpersonateAccount impersonates all"
        )
    after = (*before, who) if command.is_on else tuple(each for each in before if each != who)
    sequencer.change(impersonated=after)
    sequencer.mark_changed()


def impersonate_all(sequencer: DevSequencer, command: ImpersonateAll) -> None:
    """Take transactions of every account without a signature, or no longer."""
    if sequencer.state.impersonates_all != command.is_on:
        sequencer.change(impersonates_all=command.is_on)
        sequencer.mark_changed()


def send_unsigned(sequencer: DevSequencer, command: SendUnsigned) -> bytes | str:
    """Take a transaction without a signature; gives its hash, or why the pool refuses it."""
    state, sender = sequencer.state, command.sender
    if not (command.is_allowed or state.impersonates_all or sender in state.impersonated):
        raise RefusedCommand(NO_SIGNER)
    try:
        transaction = sequencer.submit_unsigned(command)
    except PoolRefusal as refusal:
        return str(refusal)
    sequencer.settle()
    return transaction.hash


def drop_transactions(sequencer: DevSequencer, command: DropTransactions) -> list[bytes]:
    """Take transactions out of the pool: one, those of a sender, or all; gives their hashes."""
    return sequencer.drop(command.hash, command.sender)


def set_printing(sequencer: DevSequencer, command: SetPrinting) -> None:
    """Turn console output on or off; None leaves a setting unchanged."""
    state = sequencer.state
    sequencer.change(
        prints=state.prints if command.is_on is None else command.is_on,
        prints_traces=state.prints_traces if command.traces is None else command.traces,
    )
    sequencer.mark_changed()
