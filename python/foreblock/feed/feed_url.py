"""Where a feed is, and how it is asked to begin at a place. No I/O.

To begin at a place is an extension of ours: only a server that says it is one of ours is
asked for it.
"""

import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from foreblock.errors import InvalidArgument
from foreblock.primitives import parse_number
from foreblock.types import FlashblockId

OURS: Final = "foreblock"  # how our feeds call themselves in the header `Server`
_FROM: Final = "from"


def check_url(url: str) -> None:
    """Raise `InvalidArgument` for what is no address of a WebSocket."""
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


def is_placed(url: str) -> bool:
    """Whether a URL says already where to begin."""
    return any(name == _FROM for name, _ in parse_qsl(urlsplit(url).query))


def begin_after(url: str, place: FlashblockId | None) -> str:
    """The URL that asks for what follows a place, or for all there is."""
    if is_placed(url):
        return url
    wanted = FlashblockId(0, 0) if place is None else _next(place)
    parts = urlsplit(url)
    query = [*parse_qsl(parts.query, keep_blank_values=True), (_FROM, format_place(wanted))]
    return urlunsplit(parts._replace(query=urlencode(query)))


def _next(place: FlashblockId) -> FlashblockId:
    return FlashblockId(place.block_number, place.index + 1)


_PLACE: Final = re.compile(r"(0|[1-9][0-9]{0,19})-(0|[1-9][0-9]{0,19})", re.ASCII)


def parse_place(text: str) -> FlashblockId:
    """The place; a `ValueError` where the text is none."""
    found = _PLACE.fullmatch(text)
    if not found:
        raise ValueError("expected <block>-<index>")
    return FlashblockId(parse_number(found[1], 64), parse_number(found[2], 64))


def format_place(place: FlashblockId) -> str:
    """The place as text."""
    return f"{place.block_number}-{place.index}"


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
