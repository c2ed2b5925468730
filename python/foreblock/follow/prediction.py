"""What a call will read, as an upstream says: its access list. A hint, and never a value.

Each round of fetching brings what a run has come to; a call whose reads depend on each other has
many. An endpoint that has all of the state says at once what such a call touches, so that the rest
comes in one round. Who is wrong here makes others fetch too much, or too little, and nothing else.
"""

import asyncio
from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec
from msgspec import Raw, Struct

from foreblock.errors import EndpointError
from foreblock.ledger.calls.predicted_calls import MissedCall, PredictedCalls
from foreblock.ledger.storage.state_keys import StateKeys
from foreblock.primitives import parse_address, parse_data, parse_hash
from foreblock.rpc.fetching import Missed
from foreblock.upstream.old_blocks import AskUpstream

OVERRIDES_AT: Final = 2  # in the arguments: a state that the upstream does not have


class _Access(Struct, rename="camel"):
    address: str
    storage_keys: list[str]


class _AccessList(Struct, rename="camel"):
    access_list: list[_Access]


_decode: Final = msgspec.json.Decoder(_AccessList).decode
_decode_params: Final = msgspec.json.Decoder(list[Raw]).decode


async def access_hint(ask: AskUpstream, params: Raw) -> StateKeys:
    """The keys that a call with these arguments touches; none where nobody says so."""
    try:
        given = _decode_params(params)
        if len(given) > OVERRIDES_AT and given[OVERRIDES_AT] != Raw(b"null"):
            return StateKeys()
        text = await ask("eth_createAccessList", b'[%b,"latest"]' % bytes(given[0]))
        listed = _decode(text).access_list
        slots = {
            parse_address(each.address): frozenset(
                int.from_bytes(parse_hash(key)) for key in each.storage_keys
            )
            for each in listed
        }
    except (EndpointError, ValueError, msgspec.MsgspecError):
        return StateKeys()
    return StateKeys(frozenset(slots), slots)


NOBODY: Final = bytes(20)


class CallMessage(NamedTuple):
    """A call; without `to` it creates a contract."""

    sender: bytes
    to: bytes | None
    data: bytes


class _Message(Struct, rename={"sender": "from"}):
    sender: str | None = None
    to: str | None = None
    input: str | None = None
    data: str | None = None


_decode_call_params: Final = msgspec.json.Decoder(list[Raw]).decode
_decode_message: Final = msgspec.json.Decoder(_Message).decode


def call_message(params: Raw) -> CallMessage | None:
    """The call in the first parameter; none where it has not its form."""
    try:
        message = _decode_message(_decode_call_params(params)[0])
        sender = parse_address(message.sender) if message.sender else NOBODY
        to = parse_address(message.to) if message.to else None
        return CallMessage(sender, to, parse_data(message.input or message.data or "0x"))
    except (ValueError, IndexError, msgspec.MsgspecError):
        return None


HINTED: Final = frozenset({"eth_call", "eth_estimateGas"})
MOST_HINTED: Final = 4  # of one body that are asked about


async def call_hints(ask: AskUpstream, missed: Sequence[Missed]) -> StateKeys:
    """The keys that these calls touch, as far as an upstream says so; raises nothing."""
    calls = [each for each in missed if each.method in HINTED][:MOST_HINTED]
    return StateKeys.union(await asyncio.gather(*(access_hint(ask, each.params) for each in calls)))


CALLS: Final = frozenset({"eth_call", "eth_createAccessList", "eth_estimateGas"})
MOST_CALLS: Final = 16  # of one body that are looked at


def predicted_keys(calls: PredictedCalls, missed: Sequence[Missed]) -> StateKeys:
    """What these requests will read, and is not known yet; what they missed is learned."""
    found = []
    for each in [each for each in missed if each.method in CALLS][:MOST_CALLS]:
        message = call_message(each.params)
        if message is not None:
            found.append(MissedCall(*message, each.why.misses))
    slots = calls.slots(found) if found else {}
    return StateKeys(slots={address: frozenset(keys) for address, keys in slots.items()})
