"""The highest commit that an endpoint has shown, and when to ask it again. No I/O.

Behind one address there may be several instances, of which some are behind. A request demands
the highest commit seen from its address, so that no answer is older than one before; an instance
that is behind answers 503 and names a time to ask again. Servers that are not foreblock show no
commit, and nothing is demanded of them.
"""

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

SNAPSHOT: Final = "Foreblock-Snapshot"
MIN_COMMIT: Final = "Foreblock-Min-Commit"
TRIES: Final = 4  # of one request, until an instance has the commit
LONGEST_PAUSE: Final = 2.0  # seconds; where a longer one is wanted, it is not asked again

_COMMIT: Final = re.compile(r"\bcommit=([0-9]{1,20})(?![0-9])")
_SECONDS: Final = re.compile(r"[0-9]{1,3}")


class ShownCommit:
    """What one address has shown."""

    __slots__ = ("highest",)

    def __init__(self) -> None:
        self.highest = 0

    def demand(self) -> dict[str, str]:
        """The header of a request that accepts nothing older."""
        return {MIN_COMMIT: str(self.highest)} if self.highest else {}

    def see(self, headers: Mapping[str, str]) -> None:
        """Take note of the snapshot of an answer."""
        found = _COMMIT.search(_value(headers, SNAPSHOT))
        if found is not None:
            self.highest = max(self.highest, int(found[1]))

    def give_up(self, answer: bytes) -> None:
        """Accept any commit again if it was refused for good: the chain may be a new one."""
        if answer.startswith(b"commit %d is not here yet" % self.highest):
            self.highest = 0


def pause_before_next(status: int, headers: Mapping[str, str]) -> float | None:
    """Seconds after which to ask again; none where this is the answer."""
    if status != HTTPStatus.SERVICE_UNAVAILABLE:
        return None
    named = _value(headers, "Retry-After")
    if not _SECONDS.fullmatch(named) or int(named) > LONGEST_PAUSE:
        return None
    return float(named)


def _value(headers: Mapping[str, str], name: str) -> str:
    """The value of a header; proxies may write its name in lower case."""
    return next((each for key, each in headers.items() if key.lower() == name.lower()), "")
