"""State overrides as JSON: accounts by address, each with the fields to be seen otherwise.

There may be tens of thousands of accounts and slots in one request. So where one stood is
put into words only when it is refused, and many are read in steps. Texts that are too long
to be decoded at once are for `long_overrides`.
"""

from collections.abc import Mapping
from itertools import islice
from typing import Final

from msgspec import Raw, Struct
from msgspec.json import Decoder

from foreblock._engine import read_address
from foreblock.ledger.calls.overrides import AccountOverride
from foreblock.methods.params import (
    DECODING,
    address,
    data,
    decode,
    quantity,
    refuse,
    slots,
)
from foreblock.scheduling.steps import Pace, Steps

ABSENT: Final = Raw(b"null")


class AccountObject(Struct, rename="camel", gc=False, frozen=True):
    """An account's override. `storage` is another name of `stateDiff`."""

    balance: str | None = None
    nonce: str | None = None
    code: str | None = None
    state: Raw = ABSENT
    state_diff: Raw = ABSENT
    storage: Raw = ABSENT
    move_precompile_to_address: str | None = None


PORTION: Final = 64  # accounts that are read between two looks at the time

_decode_account = Decoder(AccountObject | None).decode


def read_overrides(
    given: Mapping[str, Raw | AccountObject | None], argument: int
) -> dict[bytes, AccountOverride]:
    """The overrides by address, decoded or not; one that is null changes nothing."""
    overrides = {}
    for text, found in given.items():
        who = read_address(text)
        if who is None:
            who = address(text, argument, path_of(text))
        account = _decode(found, argument, text) if isinstance(found, Raw) else found
        if account is not None:
            overrides[who] = read_account(account, argument, text)
    return overrides


def read_many_overrides(
    given: Mapping[str, Raw | AccountObject | None], argument: int, pace: Pace
) -> Steps[dict[bytes, AccountOverride]]:
    """The same in steps."""
    overrides: dict[bytes, AccountOverride] = {}
    rest = iter(given.items())
    while portion := dict(islice(rest, PORTION)):
        overrides |= read_overrides(portion, argument)
        if pace.is_over():
            yield None
    return overrides


def path_of(text: str) -> str:
    """Where an account stands, by the text of its address."""
    return f"$.{text[:42]}"


def _decode(raw: Raw, argument: int, text: str) -> AccountObject | None:
    found: AccountObject | None
    try:
        found = _decode_account(raw)
    except DECODING:
        found = decode(raw, AccountObject | None, argument, path_of(text))
    return found


def read_account(given: AccountObject, argument: int, text: str) -> AccountOverride:
    """One override; the text is its address."""
    balance, nonce, code = given.balance, given.nonce, given.code
    moved = given.move_precompile_to_address
    path = path_of(text)
    state = diff = alias = None
    if given.state is not ABSENT:
        state = slots(given.state, argument, f"{path}.state")
    if given.state_diff is not ABSENT:
        diff = slots(given.state_diff, argument, f"{path}.stateDiff")
    if given.storage is not ABSENT:
        alias = slots(given.storage, argument, f"{path}.storage")
    if diff is not None and alias is not None and diff != alias:
        refuse(argument, path, "stateDiff and storage are two names of one field and differ")
    return AccountOverride(
        balance=None if balance is None else quantity(balance, 256, argument, f"{path}.balance"),
        nonce=None if nonce is None else quantity(nonce, 64, argument, f"{path}.nonce"),
        code=None if code is None else data(code, argument, f"{path}.code"),
        state=state,
        state_diff=alias if diff is None else diff,
        move_precompile_to=(
            None if moved is None else address(moved, argument, f"{path}.movePrecompileToAddress")
        ),
    )
