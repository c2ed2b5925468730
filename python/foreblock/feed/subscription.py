"""What a client asks for with the target of its request; no I/O.

    /ws                        text frames of JSON
    /ws?compression=brotli     binary frames of brotli
    /ws?from=<block>-<index>   first what is kept of the current job, from that place on

Parameters may be combined; those that are not known are passed over.
"""

from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import parse_qsl, urlsplit

from foreblock.feed.places import parse_place
from foreblock.types import FlashblockId

PATH = "/ws"
_MOST_PARAMETERS = 16


@dataclass(frozen=True, slots=True)
class Subscription:
    """How a client wants its flashblocks, and from which place on."""

    brotli: bool
    since: FlashblockId | None


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer of HTTP instead of a connection."""

    status: HTTPStatus
    text: str


def parse_target(target: str) -> Subscription | Refusal:
    """What the target of a request asks for."""
    try:
        parts = urlsplit(target)
        parameters = dict(
            parse_qsl(parts.query, keep_blank_values=True, max_num_fields=_MOST_PARAMETERS)
        )
    except ValueError as why:
        return Refusal(HTTPStatus.BAD_REQUEST, f"bad request target: {why}")
    if parts.path != PATH:
        return Refusal(HTTPStatus.NOT_FOUND, f"the feed is at {PATH}")
    compression = parameters.get("compression", "none")
    if compression not in {"none", "brotli"}:
        return Refusal(HTTPStatus.BAD_REQUEST, "compression is brotli or none")
    try:
        since = parse_place(parameters["from"]) if "from" in parameters else None
    except ValueError as why:
        return Refusal(HTTPStatus.BAD_REQUEST, f"from: {why}")
    return Subscription(compression == "brotli", since)
