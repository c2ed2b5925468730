"""Read from a head which state a request demands at least. No I/O.

    Foreblock-Min-Commit: 56
    Foreblock-Min-Commit: 56; wait=100
    Foreblock-Min-Place: 0x37.4

Browsers cannot set headers of a handshake, so a request for WebSocket may have the same values
as the parameters `min_commit` and `min_place` of its query.
"""

import re
from typing import Final
from urllib.parse import unquote_to_bytes

from foreblock.scheduling.minimum import Minimum
from foreblock.server.answers import Answer, bad_request
from foreblock.server.head import RequestHead

MIN_COMMIT: Final = b"foreblock-min-commit"
MIN_PLACE: Final = b"foreblock-min-place"
NAMES: Final = frozenset({MIN_COMMIT, MIN_PLACE})
_PARAMETERS: Final = {b"min_commit": MIN_COMMIT, b"min_place": MIN_PLACE}

# Numbers of up to 64 bits, in decimal or as quantities; the wait in milliseconds.
_NUMBER: Final = rb"(0x[0-9a-fA-F]{1,16}|[0-9]{1,20})"
_WAIT: Final = rb"(?:[ \t]*;[ \t]*wait=([0-9]{1,9}))?"
_COMMIT: Final = re.compile(_NUMBER + _WAIT)
_PLACE: Final = re.compile(rb"(0x[0-9a-fA-F]{1,16})\.([0-9]{1,20})" + _WAIT)
_LARGEST: Final = 2**64 - 1

_BAD_COMMIT: Final = bad_request(
    "Foreblock-Min-Commit is not the number of a commit, as in 56 or 56; wait=100"
)
_BAD_PLACE: Final = bad_request(
    "Foreblock-Min-Place is not the place of a flashblock, as in 0x37.4 or 0x37.4; wait=100"
)
_TWICE: Final = bad_request("more than one minimum of a kind")


def read_minimum(head: RequestHead, query: bytes = b"") -> Minimum | Answer | None:
    """The minimum of a request, none if it has none, or the refusal of an unreadable one."""
    given = [each for each in head.headers if each[0] in NAMES]
    if query:
        given += _from_query(query)
    if not given:
        return None
    values = dict(given)
    if len(values) < len(given):
        return _TWICE
    commit = _COMMIT.fullmatch(values.get(MIN_COMMIT, b"0"))
    place = _PLACE.fullmatch(values.get(MIN_PLACE, b"0x0.0"))
    if commit is None or (number := _number(commit[1])) > _LARGEST:
        return _BAD_COMMIT
    if place is None or (index := int(place[2])) > _LARGEST:
        return _BAD_PLACE
    waits = [int(each) for each in (commit[2], place[3]) if each is not None]
    at = (_number(place[1]), index) if MIN_PLACE in values else None
    return Minimum(number, at, min(waits, default=None))


def _from_query(query: bytes) -> list[tuple[bytes, bytes]]:
    pairs = (each.partition(b"=") for each in query.split(b"&"))
    return [
        (_PARAMETERS[name], unquote_to_bytes(value))
        for name, _, value in pairs
        if name in _PARAMETERS
    ]


def _number(text: bytes) -> int:
    return int(text, 16 if text.startswith(b"0x") else 10)
