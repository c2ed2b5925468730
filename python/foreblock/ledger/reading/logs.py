"""Which logs match: addresses, and topics by position."""

from collections.abc import Sequence
from typing import Final

from foreblock._engine import Log


class LogFilter:
    """Addresses, and topics by position; where none are given, all match."""

    def __init__(self, addresses: Sequence[bytes], topics: Sequence[Sequence[bytes]]) -> None:
        self._addresses: Final = frozenset(addresses)
        self._topics: Final = tuple(map(frozenset, topics))

    def matches(self, log: Log) -> bool:
        """Whether its address and its topics match; it must have a topic for each position."""
        if self._addresses and log.address not in self._addresses:
            return False
        if len(log.topics) < len(self._topics):
            return False
        return all(
            not wanted or found in wanted
            for wanted, found in zip(self._topics, log.topics, strict=False)
        )
