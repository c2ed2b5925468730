"""Predict the keys that calls will read, so that they are fetched in fewer rounds.

Each round of fetching returns the keys that a run has reached; a call with dependent reads has many
rounds. Two sources name keys in advance. Templates, learned from earlier runs, say where calls of
one kind find their slots (`ledger.following.call_templates`). The access list of an upstream that
has all of the state says what one call touches. Both are hints, and never values: the only effect
of a wrong one is that a worker fetches too much or too little.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Final, NamedTuple

import msgspec
from msgspec import Raw, Struct

from foreblock.errors import EndpointError
from foreblock.ledger.following.call_templates import (
    CallTemplates,
    call_of,
    is_unknown,
    read_templates,
)
from foreblock.ledger.reading.view import Ledger
from foreblock.ledger.storage.state_keys import StateKeys
from foreblock.primitives import parse_address, parse_data, parse_hash
from foreblock.rpc.fetching_dispatcher import Missed
from foreblock.types import MissingKeys
from foreblock.upstream.old_blocks import AskUpstream

PREDICTED: Final = frozenset({"eth_call", "eth_createAccessList", "eth_estimateGas"})
MOST_PREDICTED: Final = 16  # calls of one body
HINTED: Final = frozenset({"eth_call", "eth_estimateGas"})
MOST_HINTED: Final = 4  # calls of one body, each a request to an upstream
OVERRIDES_AT: Final = 2  # in the parameters: a state that the upstream does not have
NOBODY: Final = bytes(20)


class CallMessage(NamedTuple):
    """A call; without `to` it creates a contract."""

    sender: bytes
    to: bytes | None
    data: bytes


class MissedCall(NamedTuple):
    """A call and the keys that it missed."""

    message: CallMessage
    misses: MissingKeys


class _Message(Struct, rename={"sender": "from"}):
    sender: str | None = None
    to: str | None = None
    input: str | None = None
    data: str | None = None


class _Access(Struct, rename="camel"):
    address: str
    storage_keys: list[str]


class _AccessList(Struct, rename="camel"):
    access_list: list[_Access]


_decode_params: Final = msgspec.json.Decoder(list[Raw]).decode
_decode_message: Final = msgspec.json.Decoder(_Message).decode
_decode_access_list: Final = msgspec.json.Decoder(_AccessList).decode


def call_message(params: Raw) -> CallMessage | None:
    """Return the call in the first parameter; None if it is malformed."""
    try:
        message = _decode_message(_decode_params(params)[0])
        sender = parse_address(message.sender) if message.sender else NOBODY
        to = parse_address(message.to) if message.to else None
        return CallMessage(sender, to, parse_data(message.input or message.data or "0x"))
    except (ValueError, IndexError, msgspec.MsgspecError):
        return None


class PredictedCalls:
    """The templates of one network in one process; called on its loop.

    A process learns from the runs of its own calls, and begins with the templates that the writer
    has stored.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger: Final = ledger
        self._templates: Final = CallTemplates()
        self._has_begun = False

    def slots(self, calls: Sequence[MissedCall]) -> Mapping[bytes, set[int]]:
        """Learn from missed calls; return the unknown slots that they will read, by account."""
        slots: dict[bytes, set[int]] = {}
        with closing(self._ledger.view()) as view:
            if not self._has_begun:
                self._has_begun = True
                self._templates.take(read_templates(view.stored))
            state = view.state(view.latest)
            for message, misses in calls:
                call = call_of(state.account, *message)
                if call is None:
                    continue
                self._templates.learn([call], misses.slots, misses.hashed)
                for address, slot in self._templates.predict(
                    call, lambda key: is_unknown(state.storage, key)
                ):
                    slots.setdefault(address, set()).add(slot)
        return slots


def predicted_keys(calls: PredictedCalls, missed: Sequence[Missed]) -> StateKeys:
    """Return the keys that these requests will read by their templates, and that are unknown."""
    found = []
    for each in [each for each in missed if each.method in PREDICTED][:MOST_PREDICTED]:
        message = call_message(each.params)
        if message is not None:
            found.append(MissedCall(message, each.why.misses))
    slots = calls.slots(found) if found else {}
    return StateKeys(slots={address: frozenset(keys) for address, keys in slots.items()})


async def call_hints(
    ask: AskUpstream, missed: Sequence[Missed], block: bytes = b'"latest"'
) -> StateKeys:
    """Return the keys that these calls touch at a block, by an upstream; raises nothing."""
    calls = [each for each in missed if each.method in HINTED][:MOST_HINTED]
    return StateKeys.union(
        await asyncio.gather(*(_access(ask, each.params, block) for each in calls))
    )


async def _access(ask: AskUpstream, params: Raw, block: bytes) -> StateKeys:
    """Return the access list of a call with these parameters; no keys if there is none."""
    try:
        given = _decode_params(params)
        if len(given) > OVERRIDES_AT and given[OVERRIDES_AT] != Raw(b"null"):
            return StateKeys()
        text = await ask("eth_createAccessList", b"[%b,%b]" % (bytes(given[0]), block))
        slots = {
            parse_address(each.address): frozenset(
                int.from_bytes(parse_hash(key)) for key in each.storage_keys
            )
            for each in _decode_access_list(text).access_list
        }
    except (EndpointError, ValueError, msgspec.MsgspecError):
        return StateKeys()
    return StateKeys(frozenset(slots), slots)
