"""The writer's deadlines on a replica's clock, with offset and drift."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from foreblock.log.clock_offset import RENEW_NS, RETRY_NS, WriterClock
from foreblock.log.position import HeadAnnouncement

SECOND = 10**9
BOOT = b"w" * 16
OFFSETS = st.integers(-(10**5) * SECOND, 10**5 * SECOND)  # a time namespace of a day and more
DRIFTS = st.integers(-100, 100)  # ppm, of the writer relative to the replica
TRIPS = st.integers(0, SECOND)
FAR = 10**6 * SECOND


def answer(epoch: int, said: int, boot: bytes = BOOT) -> HeadAnnouncement:
    return HeadAnnouncement(epoch, 9, 9, bytes(32), boot, said)


class Clocks:
    """Two exact clocks: the writer's time at a replica's time, and back."""

    def __init__(self, offset: int, ppm: int) -> None:
        self._offset = offset
        self._rate = 1 + Fraction(ppm, 10**6)

    def writer(self, local: int) -> int:
        return int(self._offset + FAR + (local - FAR) * self._rate)

    def local(self, writer: int) -> Fraction:
        return FAR + (writer - self._offset - FAR) / self._rate


@given(OFFSETS, DRIFTS, TRIPS, TRIPS, st.integers(0, 4 * SECOND), st.integers(0, RENEW_NS))
def test_a_deadline_is_never_late_and_early_by_a_round_trip_at_most(
    offset: int, ppm: int, there: int, back: int, ahead: int, age: int
) -> None:
    """`ahead` is the distance of a deadline when it is set, `age` the age of the response then."""
    clocks = Clocks(offset, ppm)
    clock = WriterClock()
    asked = FAR
    clock.answered(asked, answer(1, clocks.writer(asked + there)))
    deadline = clocks.writer(asked + there + back + age) + ahead
    local = clock.local_deadline_ns(1, BOOT, deadline)
    true = clocks.local(deadline)
    assert local is not None
    assert local <= true + 2  # readings are whole nanoseconds
    drift = (ahead + age + there + back) * 2 / 10_000
    assert local >= true - there - drift - 3


def test_it_needs_an_answer_of_the_same_epoch_and_the_same_start_of_the_machine() -> None:
    clock = WriterClock()
    assert clock.local_deadline_ns(1, BOOT, 5) is None
    clock.answered(100, answer(1, 1000))
    assert clock.local_deadline_ns(1, BOOT, 1000) == 100
    assert clock.local_deadline_ns(2, BOOT, 1000) is None
    assert clock.local_deadline_ns(1, b"other" + bytes(11), 1000) is None
    clock.answered(200, answer(2, 5000, b"other" + bytes(11)))
    assert clock.local_deadline_ns(1, BOOT, 1000) is None
    assert clock.local_deadline_ns(2, b"other" + bytes(11), 5000) == 200


def test_a_late_answer_of_an_older_epoch_changes_nothing() -> None:
    clock = WriterClock()
    clock.answered(100, answer(2, 1000))
    clock.answered(50, answer(1, 400))
    assert clock.local_deadline_ns(2, BOOT, 1000) == 100


def test_the_writer_is_asked_at_once_then_every_ten_seconds_and_again_soon_if_silent() -> None:
    clock = WriterClock()
    assert clock.next_request_ns(1) == 0
    clock.requested(1000)
    assert clock.next_request_ns(1) == 1000 + RETRY_NS
    clock.answered(1000, answer(1, 7))
    assert clock.next_request_ns(1) == 1000 + RENEW_NS
    clock.requested(1000 + RENEW_NS)
    assert clock.next_request_ns(1) == 1000 + RENEW_NS + RETRY_NS
    clock.answered(1000 + RENEW_NS, answer(1, 7))
    assert clock.next_request_ns(1) == 1000 + 2 * RENEW_NS
    assert clock.next_request_ns(2) == 0  # a new writer, immediately


@given(st.lists(st.tuples(st.integers(1, 3 * SECOND), TRIPS, TRIPS), min_size=1, max_size=20))
def test_each_renewal_keeps_the_promise(rounds: list[tuple[int, int, int]]) -> None:
    clocks, clock, now = Clocks(12345, 100), WriterClock(), FAR
    for wait, there, back in rounds:
        now += wait
        clock.answered(now, answer(1, clocks.writer(now + there)))
        now += there + back
        deadline = clocks.writer(now) + 2 * SECOND
        local = clock.local_deadline_ns(1, BOOT, deadline)
        assert local is not None
        assert local <= clocks.local(deadline) + 2
