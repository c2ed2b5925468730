"""State overrides: accounts as a call asks to see them.

They are laid over the state as if a transaction had just finished; slots not named
stay as they are, except under `state`, which replaces all. Accounts are taken in the
order of their addresses, which decides which refusal speaks. A precompile that is
overridden in any way no longer answers at its address; it may be moved to another one.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from foreblock._engine import Overlay, Precompiles, Slots
from foreblock.errors import NotAPrecompile, RefusedOverride
from foreblock.ledger.checksum import checksum_address
from foreblock.ledger.forks import Rules

__all__ = ["AccountOverride", "Slots", "apply"]


# Precompiles have small addresses; overrides of all others leave them as they are.
ORDINARY: Final = bytes(17) + b"\1" + bytes(2)


class AccountOverride(Struct, frozen=True):
    """Fields of one account; None leaves one as it is."""

    balance: int | None = None
    nonce: int | None = None
    code: bytes | None = None
    state: Slots | None = None
    state_diff: Slots | None = None
    move_precompile_to: bytes | None = None


def apply(
    overrides: Mapping[bytes, AccountOverride], overlay: Overlay, rules: Rules
) -> Precompiles | None:
    """Lay overrides over a state; gives the precompiles they leave, where they touch any."""
    moves, small = [], []
    for address in sorted(overrides):
        account = overrides[address]
        if address < ORDINARY:
            small.append(address)
        if account.move_precompile_to is not None:
            _check_move(address, account.move_precompile_to, overrides, rules)
            moves.append((address, account.move_precompile_to))
        if account.state is not None and account.state_diff is not None:
            who = checksum_address(address)
            raise RefusedOverride(f"account {who} has both 'state' and 'stateDiff'")
        overlay.set(
            address,
            balance=account.balance,
            nonce=account.nonce,
            code=account.code,
            state=account.state,
            state_diff=account.state_diff,
        )
    return Precompiles(rules.engine_name, small, moves) if small or moves else None


def _check_move(
    source: bytes, to: bytes, overrides: Mapping[bytes, AccountOverride], rules: Rules
) -> None:
    try:
        Precompiles(rules.engine_name, [], [(source, to)])
    except NotAPrecompile:
        raise RefusedOverride(f"account {checksum_address(source)} is not a precompile") from None
    if to in overrides:
        raise RefusedOverride(f"account {checksum_address(to)} is already overridden")
