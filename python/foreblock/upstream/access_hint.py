"""What a call will read, as an upstream says: its access list. A hint, and never a value.

Each round of fetching brings what a run has come to; a call whose reads depend on each other has
many. An endpoint that has all of the state says at once what such a call touches, so that the rest
comes in one round. Who is wrong here makes others fetch too much, or too little, and nothing else.
"""

from typing import Final

import msgspec
from msgspec import Raw, Struct

from foreblock.errors import EndpointError
from foreblock.primitives import parse_address, parse_hash
from foreblock.upstream.old_blocks import AskUpstream
from foreblock.upstream.wanted import Wanted

OVERRIDES_AT: Final = 2  # in the arguments: a state that the upstream does not have


class _Access(Struct, rename="camel"):
    address: str
    storage_keys: list[str]


class _AccessList(Struct, rename="camel"):
    access_list: list[_Access]


_decode: Final = msgspec.json.Decoder(_AccessList).decode
_decode_params: Final = msgspec.json.Decoder(list[Raw]).decode


async def access_hint(ask: AskUpstream, params: Raw) -> Wanted:
    """The keys that a call with these arguments touches; none where nobody says so."""
    try:
        given = _decode_params(params)
        if len(given) > OVERRIDES_AT and given[OVERRIDES_AT] != Raw(b"null"):
            return Wanted()
        text = await ask("eth_createAccessList", b'[%b,"latest"]' % bytes(given[0]))
        listed = _decode(text).access_list
        slots = {
            parse_address(each.address): frozenset(
                int.from_bytes(parse_hash(key)) for key in each.storage_keys
            )
            for each in listed
        }
    except (EndpointError, ValueError, msgspec.MsgspecError):
        return Wanted()
    return Wanted(frozenset(slots), slots)
