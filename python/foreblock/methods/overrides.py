"""State overrides as JSON: accounts by address, each with the fields to be seen otherwise."""

from msgspec import Raw, Struct

from foreblock.ledger.overrides import AccountOverride
from foreblock.methods.params import address, data, decode, hash32, quantity, refuse

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


def read_overrides(given: dict[str, Raw] | None, argument: int) -> dict[bytes, AccountOverride]:
    """The overrides by address; one that is null changes nothing."""
    overrides = {}
    for text, raw in (given or {}).items():
        path = f"$.{text[:42]}"
        who = address(text, argument, path)
        account: AccountObject | None = decode(raw, AccountObject | None, argument, path)
        if account is not None:
            overrides[who] = _read(account, argument, path)
    return overrides


def _read(given: AccountObject, argument: int, path: str) -> AccountOverride:
    balance, nonce, code = given.balance, given.nonce, given.code
    moved = given.move_precompile_to_address
    diff = _slots(given.state_diff, argument, f"{path}.stateDiff")
    alias = _slots(given.storage, argument, f"{path}.storage")
    if diff is not None and alias is not None and diff != alias:
        refuse(argument, path, "stateDiff and storage are two names of one field and differ")
    return AccountOverride(
        balance=None if balance is None else quantity(balance, 256, argument, f"{path}.balance"),
        nonce=None if nonce is None else quantity(nonce, 64, argument, f"{path}.nonce"),
        code=None if code is None else data(code, argument, f"{path}.code"),
        state=_slots(given.state, argument, f"{path}.state"),
        state_diff=alias if diff is None else diff,
        move_precompile_to=(
            None if moved is None else address(moved, argument, f"{path}.movePrecompileToAddress")
        ),
    )


def _slots(given: Slots | None, argument: int, path: str) -> dict[int, int] | None:
    if given is None:
        return None
    return {
        int.from_bytes(hash32(slot, argument, f"{path}.{slot[:66]}")): int.from_bytes(
            hash32(value, argument, f"{path}.{slot[:66]}")
        )
        for slot, value in given.items()
    }
