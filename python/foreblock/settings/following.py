"""A network that follows a public chain, from its settings: checked before anything starts. No I/O.

Whether the chain is known, and what its endpoints can do, is found out when it is begun.
"""

import re
from collections.abc import Sequence
from typing import Final

from foreblock.errors import BadSetting
from foreblock.settings import FollowSettings
from foreblock.settings.networks import Network, NetworkSettings

ANCHORS: Final = ("latest", "safe", "finalized")
NO_FEED: Final = "off"  # in place of feeds: those that the chain is known to have are not used
_NAMED: Final = re.compile(r"0x[0-9a-fA-F]{64}|0x[0-9a-fA-F]{1,16}|[0-9]{1,19}")
_UPSTREAMS: Final = ("http://", "https://")
_FEEDS: Final = ("ws://", "wss://", "poll+http://", "poll+https://")


def followed_network(wanted: NetworkSettings) -> Network:
    """The network. Raises `BadSetting`."""
    check_followed(wanted)
    return wanted.network("follow", follow=wanted.follow)


def check_followed(wanted: NetworkSettings | FollowSettings) -> None:
    """Raise `BadSetting` for what can never be followed."""
    if wanted.anchor not in ANCHORS and not _NAMED.fullmatch(wanted.anchor):
        raise BadSetting("anchor", f"expected {', '.join(ANCHORS)}, a number or a hash")
    _check_urls("upstream", wanted.upstream, _UPSTREAMS)
    _check_urls("feed", [each for each in wanted.feed if each != NO_FEED], _FEEDS)
    _check_urls("send", [wanted.send] if wanted.send else [], _UPSTREAMS)


def _check_urls(name: str, urls: Sequence[str], schemes: Sequence[str]) -> None:
    for url in urls:
        if not url.startswith(tuple(schemes)) or url in schemes:
            raise BadSetting(name, f"expected a URL that begins with {', '.join(schemes)}")
