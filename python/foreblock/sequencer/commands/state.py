"""Commands that set accounts by hand.

No transaction makes such a change, so no follower can verify it; the sealed root covers it. A
nonce never falls: transactions that wait would be wrong then.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from foreblock.bus.commands import AddBalance, LoadState, SetAccount, SetAccounts
from foreblock.errors import RefusedCommand
from foreblock.ledger.storage.dev_rows import read_loaded
from foreblock.sequencer.commands.execution import executes
from foreblock.sequencer.sequencer import Sequencer
from foreblock.types import StateEdit

LARGEST: Final = 2**256 - 1


def set_accounts(
    sequencer: Sequencer, commands: Sequence[SetAccount | AddBalance]
) -> list[RefusedCommand | None]:
    """Execute these in one index; returns which were refused."""
    refused: list[RefusedCommand | None] = []

    def accepted() -> Iterator[StateEdit]:
        for command in commands:
            try:
                edit = _edit(sequencer, command)
            except RefusedCommand as refusal:
                refused.append(refusal)
                continue
            refused.append(None)
            yield edit

    sequencer.changes.edit(accepted())
    return refused


def execute_together(
    sequencer: Sequencer, commands: Sequence[SetAccount | AddBalance]
) -> list[RefusedCommand | None]:
    """Execute commands that set accounts, in one commit; returns which were refused."""
    refused = set_accounts(sequencer, commands)
    sequencer.changes.flush()
    return refused


@executes(SetAccount, AddBalance)
def set_account(command: SetAccount | AddBalance, sequencer: Sequencer) -> None:
    """Execute one; raises `RefusedCommand`."""
    (refusal,) = set_accounts(sequencer, (command,))
    if refusal is not None:
        raise refusal


@executes(SetAccounts)
def set_all(command: SetAccounts, sequencer: Sequencer) -> None:
    """Execute several in one index; raises `RefusedCommand` for the first that is refused."""
    for refusal in set_accounts(sequencer, command.accounts):
        if refusal is not None:
            raise refusal


@executes(LoadState)
def load_state(command: LoadState, sequencer: Sequencer) -> None:
    """Set all accounts in a file; a nonce that is higher already stays."""
    for portion in read_loaded(Path(command.path)):
        sequencer.changes.edit(_kept_nonce(sequencer, each) for each in portion)
        sequencer.changes.flush()


def _kept_nonce(sequencer: Sequencer, edit: StateEdit) -> StateEdit:
    account = sequencer.builder.block.account(edit.address)
    if account is None or edit.nonce is None or edit.nonce >= account.nonce:
        return edit
    return replace(edit, nonce=None)


def _edit(sequencer: Sequencer, command: SetAccount | AddBalance) -> StateEdit:
    if isinstance(command, AddBalance):
        return _added(sequencer, command)
    return _set(sequencer, command)


def _added(sequencer: Sequencer, command: AddBalance) -> StateEdit:
    """The balance with what is added, up to the largest possible one."""
    account = sequencer.builder.block.account(command.address)
    balance = int.from_bytes(command.amount) + (0 if account is None else account.balance)
    return StateEdit(command.address, min(balance, LARGEST))


def _set(sequencer: Sequencer, command: SetAccount) -> StateEdit:
    if command.nonce is not None:
        _check_nonce(sequencer, command.address, command.nonce)
    balance, storage = command.balance, command.storage or {}
    return StateEdit(
        command.address,
        None if balance is None else int.from_bytes(balance),
        command.nonce,
        command.code,
        tuple((int.from_bytes(slot), int.from_bytes(value)) for slot, value in storage.items()),
    )


def _check_nonce(sequencer: Sequencer, address: bytes, nonce: int) -> None:
    """The words are Hardhat's."""
    account = sequencer.builder.block.account(address)
    now = 0 if account is None else account.nonce
    if nonce < now:
        raise RefusedCommand(
            f"New nonce ({nonce}) must not be smaller than the existing nonce ({now})"
        )
