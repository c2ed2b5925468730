"""What a worker does, once a second, about what its clients hold.

When an answer was refused for want of room, clients that do not keep pace go first: those
that took less than 64 KiB in each of the last two seconds, the largest of them first, until a
quarter of the room is free. Who reads steadily is not touched.
"""

from collections.abc import Iterable
from typing import Final, Protocol

from foreblock.scheduling.room import Room
from foreblock.server.memory import FreedMemory

SLOW_SECONDS: Final = 2
FREE_PART: Final = 4


class Holder(Protocol):
    """A connection, as far as it holds answers."""

    @property
    def slow_seconds(self) -> int:
        """For how long its client has not kept pace."""

    @property
    def held(self) -> int:
        """The bytes that it holds."""

    def abort(self) -> None:
        """End at once."""


class Pressure:
    """Makes room, and sees to freed memory."""

    def __init__(self, room: Room, freed: FreedMemory) -> None:
        self._room: Final = room
        self._freed: Final = freed

    def relieve(self, holders: Iterable[Holder]) -> None:
        """A second has passed."""
        room = self._room
        if room.wanted:
            room.wanted = False
            self._make_room([each for each in holders if each.slow_seconds >= SLOW_SECONDS])
        self._freed.look(max(0, room.held))

    def _make_room(self, slow: list[Holder]) -> None:
        missing = self._room.limit // FREE_PART - self._room.bytes_left
        for each in sorted(slow, key=lambda each: each.held, reverse=True):
            if missing <= 0:
                return
            missing -= each.held
            each.abort()
