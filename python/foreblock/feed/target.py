"""Where a feed is, and how it is asked to begin at a place. No I/O.

To begin at a place is an extension of ours: only a server that says it is one of ours is
asked for it.
"""

from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from foreblock.errors import InvalidArgument
from foreblock.feed.places import format_place
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
