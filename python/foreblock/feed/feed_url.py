"""The URL of a feed, as clients make it and servers read it. No I/O.

    /ws                        text frames of JSON
    /ws?compression=brotli     binary frames of brotli
    /ws?from=<block>-<index>   first what is kept of the current job, from that flashblock on

Parameters may be combined; unknown ones are ignored. `from` is an extension of foreblock:
clients send it only to a server whose `Server` header names foreblock.
"""

import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from foreblock.errors import InvalidArgument
from foreblock.primitives import parse_number
from foreblock.types import FlashblockId

OURS: Final = "foreblock"  # in the header `Server` of our feeds
PATH: Final = "/ws"
_FROM: Final = "from"
_MOST_PARAMETERS: Final = 16
_ID: Final = re.compile(r"(0|[1-9][0-9]{0,19})-(0|[1-9][0-9]{0,19})", re.ASCII)


def check_url(url: str) -> None:
    """Raise `InvalidArgument` unless this is the URL of a WebSocket."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("ws", "wss") and bool(parts.hostname) and parts.port != 0
        if usable:
            assert parts.hostname is not None
            parts.hostname.encode("idna")
    except ValueError as why:
        raise InvalidArgument(f"{url!r} is not a URL: {why}") from why
    if not usable or parts.fragment:
        raise InvalidArgument(f"{url!r} is not a URL of the form ws://HOST:PORT/PATH")


def has_start(url: str) -> bool:
    """Whether a URL already has a `from`."""
    return any(name == _FROM for name, _ in parse_qsl(urlsplit(url).query))


def resume_after(url: str, after: FlashblockId | None) -> str:
    """The URL that asks for the flashblocks after this one, or for all that are kept."""
    if has_start(url):
        return url
    wanted = FlashblockId(0, 0) if after is None else _next(after)
    parts = urlsplit(url)
    query = [*parse_qsl(parts.query, keep_blank_values=True), (_FROM, format_flashblock_id(wanted))]
    return urlunsplit(parts._replace(query=urlencode(query)))


def _next(after: FlashblockId) -> FlashblockId:
    return FlashblockId(after.block_number, after.index + 1)


@dataclass(frozen=True, slots=True)
class Subscription:
    """The encoding that a client wants, and the flashblock to start at."""

    brotli: bool
    since: FlashblockId | None


@dataclass(frozen=True, slots=True)
class Refusal:
    """An HTTP answer instead of a connection."""

    status: HTTPStatus
    text: str


def parse_target(target: str) -> Subscription | Refusal:
    """Read the target of a request."""
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
        since = parse_flashblock_id(parameters["from"]) if "from" in parameters else None
    except ValueError as why:
        return Refusal(HTTPStatus.BAD_REQUEST, f"from: {why}")
    return Subscription(compression == "brotli", since)


def parse_flashblock_id(text: str) -> FlashblockId:
    """Read `<block>-<index>`, both decimal, as in ``7-3``. Raises `ValueError`."""
    found = _ID.fullmatch(text)
    if not found:
        raise ValueError("expected <block>-<index>")
    return FlashblockId(parse_number(found[1], 64), parse_number(found[2], 64))


def format_flashblock_id(flashblock: FlashblockId) -> str:
    return f"{flashblock.block_number}-{flashblock.index}"
