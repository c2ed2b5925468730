"""State overrides: accounts as a call asks to see them.

They are laid over the state as if a transaction had just finished; slots not named
stay as they are, except under `state`, which replaces all. The order of their addresses
decides which refusal speaks. A precompile that is overridden in any way no longer answers
at its address; it may be moved to another one.
"""

from collections.abc import Mapping, MutableMapping
from functools import partial
from typing import Final, TypeVar

from msgspec import Struct

from foreblock._engine import Overlay, Precompiles, Slots
from foreblock.errors import NotAPrecompile, RefusedOverride
from foreblock.ledger.rules.addresses import checksum_address
from foreblock.ledger.rules.forks import Rules
from foreblock.scheduling.steps import Pace, Steps

__all__ = ["AccountOverride", "Slots", "apply", "apply_in_steps", "forget"]

K = TypeVar("K")
V = TypeVar("V")

# Precompiles have small addresses; overrides of all others leave them as they are.
ORDINARY: Final = bytes(18) + b"\x10\0"
LONG_CODE: Final = 64 * 1024  # bytes that are hashed and analysed elsewhere
PORTION: Final = 64  # accounts that are laid over the state between two looks at the time


class AccountOverride(Struct, frozen=True, gc=False):
    """Fields of one account; None leaves one as it is."""

    balance: int | None = None
    nonce: int | None = None
    code: bytes | None = None
    state: Slots | None = None
    state_diff: Slots | None = None
    move_precompile_to: bytes | None = None
    further: tuple[Slots, ...] = ()  # the rest of either, where there are very many slots


class _Found(Struct, gc=False):
    """What was seen of overrides that were laid over a state."""

    small: list[bytes]  # those of addresses that may be precompiles'
    moves: list[tuple[bytes, bytes]]  # from such addresses
    refused: bytes | None = None  # the lowest address of overrides that cannot be meant


def apply(
    overrides: Mapping[bytes, AccountOverride], overlay: Overlay, rules: Rules
) -> Precompiles | None:
    """Lay overrides over a state; gives the precompiles they leave, where they touch any.

    Raises `RefusedOverride`, after which the overlay is of no use.
    """
    found = _Found([], [])
    for address, account in overrides.items():
        _lay(address, account, overlay, found)
        for slots in account.further:
            overlay.set(address, state_diff=slots)
    return _precompiles(overrides, found, rules)


def apply_in_steps(
    overrides: Mapping[bytes, AccountOverride], overlay: Overlay, rules: Rules, pace: Pace
) -> Steps[Precompiles | None]:
    """The same, others having their turn in between."""
    found = _Found([], [])
    for index, (address, account) in enumerate(overrides.items(), 1):
        if account.code is not None and len(account.code) > LONG_CODE:
            yield partial(_lay_elsewhere, address, account, overlay, found)
        else:
            _lay(address, account, overlay, found)
        for slots in account.further:
            if pace.is_over():
                yield None
            overlay.set(address, state_diff=slots)
        if not index % PORTION and pace.is_over():
            yield None
    return _precompiles(overrides, found, rules)


def forget(many: MutableMapping[K, V], pace: Pace) -> Steps[None]:
    """Let go of very many of them, or of their texts, which takes milliseconds at once."""
    while many:
        for _ in range(min(len(many), PORTION)):
            many.popitem()
        if pace.is_over():
            yield None


def _lay_elsewhere(
    address: bytes, account: AccountOverride, overlay: Overlay, found: _Found, **_limits: int | None
) -> None:
    """It cannot be stopped, and takes longer the more code there is."""
    _lay(address, account, overlay, found)


def _lay(address: bytes, account: AccountOverride, overlay: Overlay, found: _Found) -> None:
    moved_to = account.move_precompile_to
    if address < ORDINARY:
        found.small.append(address)
        if moved_to is not None:
            found.moves.append((address, moved_to))
            moved_to = None
    if moved_to is not None or (account.state is not None and account.state_diff is not None):
        found.refused = address if found.refused is None else min(found.refused, address)
        return
    overlay.set(
        address,
        balance=account.balance,
        nonce=account.nonce,
        code=account.code,
        state=account.state,
        state_diff=account.state_diff,
    )


def _precompiles(
    overrides: Mapping[bytes, AccountOverride], found: _Found, rules: Rules
) -> Precompiles | None:
    """What is left of the precompiles; raises the refusal of the lowest address."""
    if found.moves or found.refused is not None:
        doubtful = {address for address, _ in found.moves}
        if found.refused is not None:
            doubtful.add(found.refused)
        for address in sorted(doubtful):
            _check(address, overrides, rules)
    if not found.small:
        return None
    return Precompiles(rules.engine_name, found.small, found.moves)


def _check(address: bytes, overrides: Mapping[bytes, AccountOverride], rules: Rules) -> None:
    account = overrides[address]
    if account.move_precompile_to is not None:
        _check_move(address, account.move_precompile_to, overrides, rules)
    if account.state is not None and account.state_diff is not None:
        who = checksum_address(address)
        raise RefusedOverride(f"account {who} has both 'state' and 'stateDiff'")


def _check_move(
    source: bytes, to: bytes, overrides: Mapping[bytes, AccountOverride], rules: Rules
) -> None:
    try:
        Precompiles(rules.engine_name, [], [(source, to)])
    except NotAPrecompile:
        raise RefusedOverride(f"account {checksum_address(source)} is not a precompile") from None
    if to in overrides:
        raise RefusedOverride(f"account {checksum_address(to)} is already overridden")
