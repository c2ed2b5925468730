"""What the requests of one worker may hold together: places to wait, and bytes either way.

One `Room` for each worker, shared by all its networks. What was given is counted for as long
as the object that stands for it lives, a `Place` or a `LongText`, and given back when nobody
has it any more, however that comes about: answered, cancelled, never begun. The same is so
for the bodies of long requests, as `Received`, from their announcement to their answer.

Only long answers are counted by their pieces, each for its whole length until all of it is
sent; a piece that several answers share, such as the text of a block, is counted once.
Short ones go out however little room there is. What the system takes at once is never
counted: to do so costs a block of 200 transactions a fifth of its time.
"""

from collections import deque
from collections.abc import Iterable
from typing import Final

from foreblock.scheduling.thresholds import THRESHOLDS

DEFAULT_PLACES: Final = 1024
DEFAULT_BYTES: Final = 256 * 1024 * 1024
DEFAULT_RECEIVED: Final = 64 * 1024 * 1024


class Room:
    """How many requests may wait, and how many bytes of answers and requests there may be."""

    __slots__ = (
        "_holders", "bytes_left", "limit", "places", "places_left", "received_left", "wanted",
    )  # fmt: skip

    def __init__(
        self,
        places: int = DEFAULT_PLACES,
        limit: int = DEFAULT_BYTES,
        received: int = DEFAULT_RECEIVED,
    ) -> None:
        self.places: Final = places
        self.places_left = places
        self.limit: Final = limit
        self.bytes_left = limit  # below zero where answers could not be refused any more
        self.received_left = received  # of long requests that were not answered yet
        self.wanted = False  # whether an answer was refused since this was last set
        self._holders: dict[int, int] = {}  # of each piece, by its identity while it lives

    @property
    def held(self) -> int:
        """Bytes of answers that are held now."""
        return self.limit - self.bytes_left

    def place(self) -> "Place | None":
        """A place to wait in, unless all are taken."""
        return Place(self) if self.places_left > 0 else None

    def receive(self, size: int) -> "Received | None":
        """Room for so many bytes of a request, if there is."""
        return Received(self, size) if size <= self.received_left else None

    def has_for(self, pieces: Iterable[bytes]) -> bool:
        """Whether these may be added to an answer; that they may not is noted."""
        holders = self._holders
        if sum(len(each) for each in pieces if id(each) not in holders) <= self.bytes_left:
            return True
        self.wanted = True
        return False

    def hold(self, piece: bytes) -> None:
        """Count a piece that somebody has from now on."""
        holders = self._holders.get(id(piece), 0)
        self._holders[id(piece)] = holders + 1
        if not holders:
            self.bytes_left -= len(piece)

    def release(self, piece: bytes) -> None:
        """Somebody who has a piece lets go of it."""
        holders = self._holders.pop(id(piece))
        if holders > 1:
            self._holders[id(piece)] = holders - 1
        else:
            self.bytes_left += len(piece)


class Place:
    """One request that waits."""

    __slots__ = ("_room",)

    def __init__(self, room: Room) -> None:
        self._room: Final = room
        room.places_left -= 1

    def __del__(self) -> None:
        self._room.places_left += 1


class Received:
    """Bytes of a request that comes in or waits for its answer."""

    __slots__ = ("_room", "size")

    def __init__(self, room: Room, size: int) -> None:
        self._room: Final = room
        self.size: Final = size
        room.received_left -= size

    def __del__(self) -> None:
        self._room.received_left += self.size


class LongText:
    """A long answer in pieces, counted until each of them is sent."""

    __slots__ = ("_going", "_pieces", "_room", "size")

    def __init__(self, room: Room, pieces: Iterable[bytes] = ()) -> None:
        self._room: Final = room
        self._pieces: Final[deque[bytes]] = deque()
        self._going: list[bytes] = []
        self.size = 0  # bytes that were not taken yet
        self.add(pieces)

    @classmethod
    def going(cls, room: Room, pieces: Iterable[bytes]) -> "LongText":
        """One that was handed over and is not sent yet."""
        text = cls(room, pieces)
        while text.take():
            pass
        return text

    def add(self, pieces: Iterable[bytes]) -> None:
        """Add to its end. Whether there is room is for the caller to ask first."""
        for piece in pieces:
            self._room.hold(piece)
            self._pieces.append(piece)
            self.size += len(piece)

    def take(self) -> list[bytes]:
        """The next pieces, about a portion, which are going from now on; none at its end."""
        taken, size = [], 0
        most, small = THRESHOLDS.piece_bytes, THRESHOLDS.small_piece_bytes
        while self._pieces and (size < most or len(self._pieces[0]) < small):
            piece = self._pieces.popleft()
            taken.append(piece)
            size += len(piece)
        self._going += taken
        self.size -= size
        return taken

    def sent(self) -> None:
        """All that was taken is sent, and nobody needs it any more."""
        for piece in self._going:
            self._room.release(piece)
        self._going.clear()

    def __del__(self) -> None:
        for piece in (*self._going, *self._pieces):
            self._room.release(piece)
