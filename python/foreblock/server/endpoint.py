"""What all connections to one address share: its handler, its rules, the heads it knows.

A network has one. All endpoints of a worker share its ticker, its limit of
connections and the room for answers.
"""

from enum import Enum, auto
from typing import Final

from foreblock.scheduling.room import Room
from foreblock.server.checks import Rules
from foreblock.server.head_cache import HeadCache
from foreblock.server.reply import Served
from foreblock.server.sweep import Swept, Ticker

# Connections beyond the limit that may wait to read why they are refused.
REFUSED_AT_ONCE: Final = 64


class Admission(Enum):
    """What becomes of a new connection."""

    ADMITTED = auto()
    REFUSED = auto()  # with an answer
    DROPPED = auto()  # without one


class Endpoint:
    """What the connections of one address share."""

    def __init__(
        self,
        served: Served,
        rules: Rules,
        ticker: Ticker,
        connections: int,
        room: Room,
    ) -> None:
        self.handler: Final = served.answer
        self.readiness: Final = served.readiness
        self.rules: Final = rules
        self.ticker: Final = ticker
        self.fast_path: Final = served.fast_path.answer
        self.heads: Final = HeadCache(served.fast_path)
        self.room: Final = room
        self._connections: Final = connections

    def admit(self, connection: Swept) -> Admission:
        """Count a new connection in, and say what is to become of it."""
        self.ticker.add(connection)
        beyond = self.ticker.count - self._connections
        if beyond <= 0:
            return Admission.ADMITTED
        return Admission.REFUSED if beyond <= REFUSED_AT_ONCE else Admission.DROPPED

    def forget(self, connection: Swept) -> None:
        """Count a connection out."""
        self.ticker.discard(connection)
