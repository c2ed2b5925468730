"""URLs of upstreams with a budget: `?units=500` is ours, and not sent. No I/O."""

import re
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from foreblock.errors import InvalidArgument
from foreblock.secret_urls import safe_url

_UNITS: Final = re.compile(r"[0-9]{1,7}")


def split_units(url: str) -> tuple[str, float | None]:
    """The URL without its parameter `units`, and its value. Raises `InvalidArgument`."""
    parts = urlsplit(url)
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    units = [value for name, value in pairs if name == "units"]
    if not units:
        return url, None
    if len(units) > 1 or not _UNITS.fullmatch(units[0]) or int(units[0]) == 0:
        raise InvalidArgument(f"units of {safe_url(url)} is not a number above 0")
    rest = urlencode([each for each in pairs if each[0] != "units"])
    return parts._replace(query=rest).geturl(), float(units[0])
