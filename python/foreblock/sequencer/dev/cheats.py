"""Commands that set accounts by hand.

No transaction makes such a change, so nobody who follows the chain can verify it; the sealed
root covers it all the same. A nonce never falls: transactions that wait would be wrong then.
"""

from typing import Final

from foreblock.bus.commands import AddBalance, SetAccount
from foreblock.errors import RefusedCommand
from foreblock.sequencer.dev.dev_sequencer import DevSequencer
from foreblock.types import Cheat

LARGEST: Final = 2**256 - 1


def set_account(sequencer: DevSequencer, command: SetAccount) -> None:
    """Set fields of an account."""
    if command.nonce is not None:
        _check_nonce(sequencer, command.address, command.nonce)
    sequencer.cheat((_cheat(command),))


def add_balance(sequencer: DevSequencer, command: AddBalance) -> None:
    """Add to a balance, up to the largest that there is."""
    account = sequencer.account(command.address)
    balance = int.from_bytes(command.amount) + (0 if account is None else account.balance)
    sequencer.cheat((Cheat(command.address, min(balance, LARGEST)),))


def _cheat(command: SetAccount) -> Cheat:
    balance, storage = command.balance, command.storage or {}
    return Cheat(
        command.address,
        None if balance is None else int.from_bytes(balance),
        command.nonce,
        command.code,
        tuple((int.from_bytes(slot), int.from_bytes(value)) for slot, value in storage.items()),
    )


def _check_nonce(sequencer: DevSequencer, address: bytes, nonce: int) -> None:
    """The words are Hardhat's."""
    account = sequencer.account(address)
    now = 0 if account is None else account.nonce
    if nonce < now:
        raise RefusedCommand(
            f"New nonce ({nonce}) must not be smaller than the existing nonce ({now})"
        )
