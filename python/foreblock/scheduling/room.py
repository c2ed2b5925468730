"""Bounds of what all requests of a worker hold: waiting requests, bytes in, bytes out.

One `Room` for each worker, shared by all its networks. A waiting request holds a
`WaitingPlace`, the body of a long request `ReceivedBytes` from its announcement to its
answer, and a long answer a `LongText`. Each counts for as long as the object lives, so that
it is released however the request ends: answered, cancelled, never started.

A request that waits for a later commit may do so for a minute. It holds a `LongPlace` as well,
of which there are fewer, so that other waiting requests always find a place.

A request that waits for a commit which another instance has seen holds a `CommitPlace` instead,
of which there are as few, so that nobody who asks for commits of the future takes the places of
others.

A long answer counts by its pieces, each for its whole length until all of it is sent; a piece
that several answers share, such as the text of a block, counts once. Short answers are never
refused. Bytes that the system takes at once are not counted: counting them makes a block of
200 transactions a fifth slower.
"""

from collections import deque
from collections.abc import Iterable
from typing import Final

from foreblock.scheduling.thresholds import THRESHOLDS

DEFAULT_PLACES: Final = 1024
DEFAULT_BYTES: Final = 256 * 1024 * 1024
DEFAULT_RECEIVED: Final = 64 * 1024 * 1024
LONG_SHARE: Final = 4  # a fourth of all places may be held by requests that wait long


class Room:
    """The places and bytes that are left."""

    __slots__ = (
        "_holders", "bytes_left", "commit_places_left", "filters_left", "limit", "long_places",
        "long_places_left", "places", "places_left", "received", "received_left", "wanted",
    )  # fmt: skip

    def __init__(
        self,
        places: int = DEFAULT_PLACES,
        limit: int = DEFAULT_BYTES,
        received: int = DEFAULT_RECEIVED,
    ) -> None:
        self.places: Final = places
        self.places_left = places
        self.long_places: Final = places // LONG_SHARE
        self.long_places_left = self.long_places
        self.commit_places_left = self.long_places
        self.limit: Final = limit
        self.bytes_left = limit  # negative when an answer could not be refused any more
        self.received: Final = received
        self.received_left = received  # bytes of long requests that are not answered yet
        self.filters_left = THRESHOLDS.worker_filters_bytes  # for filters of subscriptions
        self.wanted = False  # whether an answer was refused since this was cleared
        self._holders: dict[int, int] = {}  # of each piece, by its identity

    @property
    def held(self) -> int:
        """Bytes of answers that are held now."""
        return self.limit - self.bytes_left

    def place(self) -> "WaitingPlace | None":
        """A place to wait in; None when all are taken."""
        return WaitingPlace(self) if self.places_left > 0 else None

    def long_place(self) -> "LongPlace | None":
        """A place to wait in for long; None when all are taken."""
        return LongPlace(self) if self.long_places_left > 0 else None

    def commit_place(self) -> "CommitPlace | None":
        """A place to wait in for a commit; None when all are taken."""
        return CommitPlace(self) if self.commit_places_left > 0 else None

    def receive(self, size: int) -> "ReceivedBytes | None":
        """Room for the body of a request; None when there is not enough."""
        return ReceivedBytes(self, size) if size <= self.received_left else None

    def has_for(self, pieces: Iterable[bytes]) -> bool:
        """Whether these pieces may be added to an answer; sets `wanted` if not."""
        holders = self._holders
        if sum(len(each) for each in pieces if id(each) not in holders) <= self.bytes_left:
            return True
        self.wanted = True
        return False

    def hold(self, piece: bytes) -> None:
        """Count one more holder of a piece."""
        holders = self._holders.get(id(piece), 0)
        self._holders[id(piece)] = holders + 1
        if not holders:
            self.bytes_left -= len(piece)

    def release(self, piece: bytes) -> None:
        """Count one holder less."""
        holders = self._holders.pop(id(piece))
        if holders > 1:
            self._holders[id(piece)] = holders - 1
        else:
            self.bytes_left += len(piece)


class WaitingPlace:
    """The place of one request that waits."""

    __slots__ = ("_room",)

    def __init__(self, room: Room) -> None:
        self._room: Final = room
        room.places_left -= 1

    def __del__(self) -> None:
        self._room.places_left += 1


class LongPlace:
    """The place of one request that waits for a later commit."""

    __slots__ = ("_room",)

    def __init__(self, room: Room) -> None:
        self._room: Final = room
        room.long_places_left -= 1

    def __del__(self) -> None:
        self._room.long_places_left += 1


class CommitPlace:
    """The place of one request that waits for a commit it has heard of."""

    __slots__ = ("_room",)

    def __init__(self, room: Room) -> None:
        self._room: Final = room
        room.commit_places_left -= 1

    def __del__(self) -> None:
        self._room.commit_places_left += 1


class ReceivedBytes:
    """The body of a request that is received or waits for its answer."""

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
        self.size = 0  # bytes that are not taken yet
        self.add(pieces)

    @classmethod
    def going(cls, room: Room, pieces: Iterable[bytes]) -> "LongText":
        """A text that was handed to the transport and is not sent yet."""
        text = cls(room, pieces)
        while text.take():
            pass
        return text

    def add(self, pieces: Iterable[bytes]) -> None:
        """Append pieces; the caller has asked whether there is room."""
        for piece in pieces:
            self._room.hold(piece)
            self._pieces.append(piece)
            self.size += len(piece)

    def take(self) -> list[bytes]:
        """The next pieces to send, about `piece_bytes`; none at the end."""
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
        """Release all that was taken."""
        for piece in self._going:
            self._room.release(piece)
        self._going.clear()

    def __del__(self) -> None:
        for piece in (*self._going, *self._pieces):
            self._room.release(piece)
