"""The writer's deadlines on the clock of a replica: never late, hardly early. No I/O.

A deadline of the pending block is a time of the writer's monotonic clock, which means nothing on
another machine, and something wrong in a time namespace with the same boot id. So the replica
requests the writer's time: it sends a request at its own time `sent`, and the response contains
the writer's time `read`. The writer read its clock after `sent`, so

    local deadline = sent + (deadline - read)

is early by at most the round trip, and never late. Clocks run apart by up to 100 ppm, which is
subtracted for the time between `read` and the deadline. The request is repeated every ten seconds,
and for each new epoch; without a response of the epoch there is no deadline, and so no pending
block.
"""

from typing import Final

from msgspec import Struct

from foreblock.clock import SECOND_NS
from foreblock.log.position import HeadAnnouncement

RENEW_NS: Final = 10 * SECOND_NS
RETRY_NS: Final = SECOND_NS // 4  # after a request without a response
DRIFT: Final = 10_000  # one part in: 100 ppm


class _Sample(Struct, frozen=True):
    epoch: int
    boot_id: bytes
    asked_ns: int  # of this machine
    said_ns: int  # of the writer

    def local_ns(self, writer_ns: int) -> int:
        """A time of the writer on this machine, or a little before."""
        distance = writer_ns - self.said_ns
        drift = -(-abs(distance) // DRIFT)  # rounded up
        return self.asked_ns + distance - drift


class WriterClock:
    """The clock of the writer, as a replica knows it."""

    def __init__(self) -> None:
        self._sample: _Sample | None = None
        self._tried_ns: int | None = None

    def next_request_ns(self, epoch: int) -> int:
        """When to send a request to the writer of this epoch; 0 for at once."""
        sample = self._sample
        if sample is not None and sample.epoch == epoch:
            due = sample.asked_ns + RENEW_NS
            tried = self._tried_ns
            return due if tried is None or tried < due else tried + RETRY_NS
        return 0 if self._tried_ns is None else self._tried_ns + RETRY_NS

    def requested(self, now_ns: int) -> None:
        """A request was sent; until its response, the next one is due a little later."""
        self._tried_ns = now_ns

    def answered(self, asked_ns: int, answer: HeadAnnouncement) -> None:
        """The response to a request that was sent at this time of the replica."""
        new = _Sample(answer.epoch, answer.boot_id, asked_ns, answer.monotonic_ns)
        old = self._sample
        if old is not None and new.epoch < old.epoch:
            return
        self._tried_ns = None
        self._sample = new

    def local_deadline_ns(self, epoch: int, boot_id: bytes, deadline_ns: int) -> int | None:
        """A deadline of the writer of an epoch, on the clock of this machine.

        None if the writer of this epoch has not responded, or the deadline is of another.
        """
        sample = self._sample
        if sample is None or sample.epoch != epoch or sample.boot_id != boot_id:
            return None
        return sample.local_ns(deadline_ns)
