"""State overrides in a text that is too long to be decoded at once, read as `Steps`.

Accounts are decoded and read in portions. One that is long by itself has long code or very
many slots, and of the slots of one account each portion stays by itself. Where something is
wrong, null or there twice, all are taken out of the text before the first is read: of equal
keys the last counts, and what is wrong with another one is nobody's concern.
"""

from contextlib import suppress
from typing import Final

from msgspec import Raw, structs
from msgspec.json import Decoder

from foreblock.errors import BadArgument
from foreblock.ledger.calls.overrides import AccountOverride, Slots, forget
from foreblock.long_json import LongPart, Portions, is_long
from foreblock.methods.long_params import object_portions, read_members
from foreblock.methods.overrides import (
    ABSENT,
    AccountObject,
    path_of,
    read_account,
    read_overrides,
)
from foreblock.methods.params import address, decode, hash32, slots
from foreblock.scheduling.steps import Pace, Steps

TEXTS: Final = ("balance", "nonce", "code", "movePrecompileToAddress")
SLOTS: Final = ("state", "stateDiff", "storage")

_decode_accounts = Decoder(dict[str, Raw]).decode


def read_long_overrides(raw: Raw, argument: int, pace: Pace) -> Steps[dict[bytes, AccountOverride]]:
    """The overrides by address."""
    overrides: dict[bytes, AccountOverride] = {}
    found = object_portions(raw, argument, "$")
    with suppress(BadArgument):
        yield from _read_portions(found, overrides, argument, pace)
        if len(overrides) == found.count:
            return overrides
    yield from forget(overrides, pace)
    given = yield from read_members(raw, None, argument, "$", pace)
    for text, account in given.items():
        if is_long(account):
            who = address(text, argument, path_of(text))
            overrides[who] = yield from _read_long(account, argument, text, pace)
        else:
            overrides |= read_overrides({text: account}, argument)
        if pace.is_over():
            yield None
    yield from forget(given, pace)
    return overrides


def _read_portions(
    found: Portions, overrides: dict[bytes, AccountOverride], argument: int, pace: Pace
) -> Steps[None]:
    while not found.done:
        portion = found.take()
        if isinstance(portion, LongPart):
            who = address(portion.key, argument, path_of(portion.key))
            overrides[who] = yield from _read_long(portion.value, argument, portion.key, pace)
        elif portion is not None:
            overrides |= read_overrides(_decode_accounts(portion), argument)
        if pace.is_over():
            yield None


def _read_long(raw: Raw, argument: int, text: str, pace: Pace) -> Steps[AccountOverride]:
    """An override with long code, or with very many slots."""
    path = path_of(text)
    members = yield from read_members(raw, {*TEXTS, *SLOTS}, argument, path, pace)
    texts: dict[str, str | None] = {}
    for name in (name for name in members if name in TEXTS):
        texts[name] = decode(members[name], str | None, argument, f"{path}.{name}")
        if pace.is_over():
            yield None
    many = [name for name in SLOTS if name in members and is_long(members[name])]
    if len(many) > 1 or {"stateDiff", "storage"} <= members.keys():
        many = []  # all of them are needed to see that two names of one field agree
    read: list[Slots] = []
    for name in many:
        read = yield from _read_many_slots(members[name], argument, f"{path}.{name}", pace)
    slots = {name: members[name] for name in members.keys() & SLOTS if name not in many}
    account = read_account(
        AccountObject(
            balance=texts.get("balance"),
            nonce=texts.get("nonce"),
            code=texts.get("code"),
            state=slots.get("state", ABSENT),
            state_diff=slots.get("stateDiff", ABSENT),
            storage=slots.get("storage", ABSENT),
            move_precompile_to_address=texts.get("movePrecompileToAddress"),
        ),
        argument,
        text,
    )
    if not many:
        return account
    first, *rest = read
    if many == ["state"]:
        return structs.replace(account, state=first, further=tuple(rest))
    return structs.replace(account, state_diff=first, further=tuple(rest))


def _read_many_slots(raw: Raw, argument: int, path: str, pace: Pace) -> Steps[list[Slots]]:
    read: list[Slots] = []
    found = object_portions(raw, argument, path)
    while not found.done:
        portion = found.take()
        if isinstance(portion, LongPart):
            place = f"{path}.{portion.key[:66]}"
            slot = hash32(portion.key, argument, place)
            value = hash32(decode(portion.value, str, argument, place), argument, place)
            read.append(Slots({int.from_bytes(slot): int.from_bytes(value)}))
        elif portion is not None:
            some = slots(Raw(portion), argument, path)
            assert some is not None, "a portion is an object"
            read.append(some)
        if pace.is_over():
            yield None
    return read or [Slots({})]
