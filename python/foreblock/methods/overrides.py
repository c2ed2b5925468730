"""State overrides as JSON: accounts by address, each with the fields to be seen otherwise.

There may be tens of thousands of accounts and slots in one request, and nothing else is
served while they are read. So where one stood is put into words only when it is refused.
"""

from msgspec import Raw, Struct
from msgspec.json import Decoder

from foreblock._engine import read_address, read_hash
from foreblock.ledger.overrides import AccountOverride
from foreblock.methods.params import DECODING, address, data, decode, hash32, quantity, refuse

Slots = dict[str, str]


class AccountObject(Struct, rename="camel", gc=False, frozen=True):
    """An account's override. `storage` is another name of `stateDiff`."""

    balance: str | None = None
    nonce: str | None = None
    code: str | None = None
    state: Slots | None = None
    state_diff: Slots | None = None
    storage: Slots | None = None
    move_precompile_to_address: str | None = None


_decode = Decoder(AccountObject | None).decode


def read_overrides(given: dict[str, Raw] | None, argument: int) -> dict[bytes, AccountOverride]:
    """The overrides by address; one that is null changes nothing."""
    overrides = {}
    for text, raw in (given or {}).items():
        who = read_address(text)
        if who is None:
            who = address(text, argument, _path(text))
        try:
            account = _decode(raw)
        except DECODING:
            account = decode(raw, AccountObject | None, argument, _path(text))
        if account is not None:
            overrides[who] = _read(account, argument, text)
    return overrides


def _path(text: str) -> str:
    return f"$.{text[:42]}"


def _read(given: AccountObject, argument: int, text: str) -> AccountOverride:
    balance, nonce, code = given.balance, given.nonce, given.code
    moved = given.move_precompile_to_address
    path = _path(text)
    diff = _slots(given.state_diff, argument, path, "stateDiff")
    alias = _slots(given.storage, argument, path, "storage")
    if diff is not None and alias is not None and diff != alias:
        refuse(argument, path, "stateDiff and storage are two names of one field and differ")
    return AccountOverride(
        balance=None if balance is None else quantity(balance, 256, argument, f"{path}.balance"),
        nonce=None if nonce is None else quantity(nonce, 64, argument, f"{path}.nonce"),
        code=None if code is None else data(code, argument, f"{path}.code"),
        state=_slots(given.state, argument, path, "state"),
        state_diff=alias if diff is None else diff,
        move_precompile_to=(
            None if moved is None else address(moved, argument, f"{path}.movePrecompileToAddress")
        ),
    )


def _slots(given: Slots | None, argument: int, path: str, field: str) -> dict[int, int] | None:
    if given is None:
        return None
    slots, number = {}, int.from_bytes
    for slot, value in given.items():
        key, word = read_hash(slot), read_hash(value)
        if key is None or word is None:
            place = f"{path}.{field}.{slot[:66]}"
            key, word = hash32(slot, argument, place), hash32(value, argument, place)
        slots[number(key, "big")] = number(word, "big")
    return slots
