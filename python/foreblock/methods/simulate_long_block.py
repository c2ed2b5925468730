"""A block of eth_simulateV1 that is too long to be decoded at once.

Its calls are read in portions, and of too many no more than are allowed; the rest is only
counted. Overrides of accounts are left as they are.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Raw, Struct
from msgspec.json import Decoder

from foreblock.ledger.simulation.simulation_request import PlainCalls
from foreblock.long_json import LongPart, Portions, is_long
from foreblock.methods.block_overrides import BlockOverridesObject
from foreblock.methods.call_object import CallObject
from foreblock.methods.long_params import array_portions, read_members
from foreblock.methods.params import DECODING, decode
from foreblock.scheduling.steps import Pace, Steps

MEMBERS: Final = frozenset({"calls", "stateOverrides", "blockOverrides"})
NULL: Final = Raw(b"null")
NO_CALLS: Final = Raw(b"[]")

Calls = PlainCalls | Sequence[CallObject]

_decode_objects = Decoder(list[CallObject]).decode
_decode_items = Decoder(list[Raw]).decode


class LongBlock(Struct, frozen=True):
    """A block to be simulated, its overrides not looked at."""

    calls: Calls
    count: int  # of calls, also of those that were left out
    state_overrides: Raw
    block_overrides: BlockOverridesObject | None


def read_long_block(raw: Raw, path: str, most_calls: int, pace: Pace) -> Steps[LongBlock]:
    """A block, with so many of its calls and a few more."""
    members = yield from read_members(raw, MEMBERS, 0, path, pace)
    calls, count = yield from _read_calls(
        members.get("calls", NO_CALLS), f"{path}.calls", most_calls, pace
    )
    block: BlockOverridesObject | None = decode(
        members.get("blockOverrides", NULL),
        BlockOverridesObject | None,
        0,
        f"{path}.blockOverrides",
    )
    return LongBlock(calls, count, members.get("stateOverrides", NULL), block)


def _read_calls(raw: Raw, path: str, most: int, pace: Pace) -> Steps[tuple[Calls, int]]:
    """Plain calls if all are, and their number."""
    if not is_long(raw):
        calls: Calls | None = PlainCalls.read(raw)
        if calls is None:
            calls = decode(raw, list[CallObject] | None, 0, path) or []
        return calls, len(calls)
    found = array_portions(raw, 0, path)
    plain: PlainCalls | None = yield from _read_plain_calls(found, most, pace)
    if plain is None:
        found = array_portions(raw, 0, path)
        calls = yield from _decode_calls(found, path, most, pace)
    else:
        calls = plain
    while not found.done:
        found.pass_over()
        if pace.is_over():
            yield None
    return calls, found.count


def _read_plain_calls(found: Portions, most: int, pace: Pace) -> Steps[PlainCalls | None]:
    calls = PlainCalls()
    while not found.done and len(calls) <= most:
        portion = found.take()
        if isinstance(portion, LongPart):
            portion = b"[%b]" % portion.value
        if portion is not None and not calls.read_more(portion):
            return None
        if pace.is_over():
            yield None
    return calls


def _decode_calls(found: Portions, path: str, most: int, pace: Pace) -> Steps[list[CallObject]]:
    calls: list[CallObject] = []
    while not found.done and len(calls) <= most:
        portion = found.take()
        if isinstance(portion, LongPart):
            calls.append(decode(portion.value, CallObject, 0, f"{path}[{len(calls)}]"))
        elif portion is not None:
            calls += _decode_portion(portion, path, len(calls))
        if pace.is_over():
            yield None
    return calls


def _decode_portion(portion: bytes, path: str, first: int) -> list[CallObject]:
    try:
        return _decode_objects(portion)
    except DECODING:
        items = enumerate(_decode_items(portion), first)
        return [decode(item, CallObject, 0, f"{path}[{index}]") for index, item in items]
