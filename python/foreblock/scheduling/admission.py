"""Admission of requests to a worker: waiting requests, bytes in, bytes out.

One `WorkerBudget` for each worker, shared by all its networks. A waiting request and the body of a
long request, from its announcement to its response, each hold a `Lease` of a `Quota`; a long
response is a `LongText`. Each counts for as long as the object lives, so that it is released
however the request ends: answered, cancelled, never started.

A request that waits for a later commit may do so for a minute. It holds a lease of `long_waits` as
well, of which there are fewer, so that other requests can always wait. A request that waits for a
commit which another instance has seen holds a lease of `commit_waits` instead, so that clients
that request commits of the future do not keep others from waiting.

A long answer counts by its pieces, each for its whole length until all of it is sent; a piece that
several answers share, such as the text of a block, counts once. Short responses are never refused.
Bytes that the system takes at once are not counted: counting them makes a block of 200 transactions
a fifth slower.
"""

from collections import deque
from collections.abc import Iterable
from typing import Final

from foreblock.scheduling.fair_queue import Priority
from foreblock.scheduling.thresholds import THRESHOLDS

DEFAULT_WAITS: Final = 1024
DEFAULT_BYTES: Final = 256 * 1024 * 1024
DEFAULT_RECEIVED: Final = 64 * 1024 * 1024
LONG_SHARE: Final = 4  # a fourth of all waiting requests may wait long


class Quota:
    """A number of units of which some are leased."""

    __slots__ = ("left", "total")

    def __init__(self, total: int) -> None:
        self.total: Final = total
        self.left = total

    def lease(self, size: int = 1) -> "Lease | None":
        """Lease some units; None if fewer are left."""
        return Lease(self, size) if size <= self.left else None


class QuotaPart(Quota):
    """A quota that keeps a part for others."""

    __slots__ = ("_kept", "_whole")

    def __init__(self, whole: Quota, part: float) -> None:
        """All may lease this part of it."""
        super().__init__(whole.total)
        self._whole: Final = whole
        self._kept: Final = round(whole.total * (1 - part))

    def lease(self, size: int = 1) -> "Lease | None":
        """Lease some units of the whole; None if fewer are left than are kept."""
        return self._whole.lease(size) if self._whole.left >= size + self._kept else None


class Lease:
    """Some units of a quota, until this is deleted."""

    __slots__ = ("_quota", "size")

    def __init__(self, quota: Quota, size: int) -> None:
        self._quota: Final = quota
        self.size: Final = size
        quota.left -= size

    def __del__(self) -> None:
        self._quota.left += self.size


class WorkerBudget:
    """The requests and bytes that a worker may hold."""

    __slots__ = (
        "_holders", "bytes_left", "commit_waits", "filters_left", "limit", "long_waits", "received",
        "waits", "wanted",
    )  # fmt: skip

    def __init__(
        self,
        waits: int = DEFAULT_WAITS,
        limit: int = DEFAULT_BYTES,
        received: int = DEFAULT_RECEIVED,
    ) -> None:
        self.waits: Final = Quota(waits)
        self.long_waits: Final = Quota(waits // LONG_SHARE)
        self.commit_waits: Final = Quota(waits // LONG_SHARE)
        self.received: Final = Quota(received)  # bytes of long requests that are not answered yet
        self.limit: Final = limit
        self.bytes_left = limit  # negative when a response could not be refused any more
        self.filters_left = THRESHOLDS.worker_filters_bytes  # for filters of subscriptions
        self.wanted = False  # a response was refused since this was cleared
        self._holders: dict[int, int] = {}  # of each piece, by its identity

    @property
    def held(self) -> int:
        """Bytes of responses that are held now."""
        return self.limit - self.bytes_left

    def waits_of(self, priority: Priority) -> Quota:
        """The waiting requests of a priority: lower ones leave some for higher ones."""
        part = THRESHOLDS.waits_parts[priority]
        return self.waits if part == 1 else QuotaPart(self.waits, part)

    def has_for(self, pieces: Iterable[bytes]) -> bool:
        """Return whether these pieces may be added to a response; sets `wanted` if not."""
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


class LongText:
    """A long answer in pieces, counted until each of them is sent."""

    __slots__ = ("_budget", "_going", "_pieces", "size")

    def __init__(self, budget: WorkerBudget, pieces: Iterable[bytes] = ()) -> None:
        self._budget: Final = budget
        self._pieces: Final[deque[bytes]] = deque()
        self._going: list[bytes] = []
        self.size = 0  # unsent bytes
        self.add(pieces)

    @classmethod
    def going(cls, budget: WorkerBudget, pieces: Iterable[bytes]) -> "LongText":
        """A text that was handed to the transport and is not sent yet."""
        text = cls(budget, pieces)
        while text.next_pieces():
            pass
        return text

    def add(self, pieces: Iterable[bytes]) -> None:
        """Append pieces; the caller has checked the budget."""
        for piece in pieces:
            self._budget.hold(piece)
            self._pieces.append(piece)
            self.size += len(piece)

    def next_pieces(self) -> list[bytes]:
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
            self._budget.release(piece)
        self._going.clear()

    def __del__(self) -> None:
        for piece in (*self._going, *self._pieces):
            self._budget.release(piece)
