"""URLs of upstreams with a budget: `?units=500` is ours, and not sent. No I/O."""

import re
from ipaddress import ip_address
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from foreblock.errors import InvalidArgument
from foreblock.secret_urls import safe_url
from foreblock.upstream.budget import DEFAULT_UNITS, LOCAL_UNITS

_UNITS: Final = re.compile(r"[0-9]{1,7}")
_PRIVATE_SUFFIXES: Final = (".localhost", ".local", ".internal")


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


def default_units(url: str) -> float:
    """The units per second of an upstream for which none are set."""
    return LOCAL_UNITS if _is_private(urlsplit(url).hostname or "") else DEFAULT_UNITS


def _is_private(host: str) -> bool:
    """Return True for this machine, a private address, and a name that no public DNS has."""
    try:
        address = ip_address(host)
    except ValueError:
        return "." not in host or host.endswith(_PRIVATE_SUFFIXES)
    return address.is_private or address.is_loopback or address.is_link_local
