"""Queues before a source: bounded, in order, and never read without a notification."""

from hypothesis import given
from hypothesis import strategies as st

from foreblock.bus.messages import BusCall, BusRequest, Failed, Started, Submit, ToWorker, failed
from foreblock.errors import SequencerBusy, SequencerUnavailable
from foreblock.sources.call_queues import PORTION, SubmissionQueue

GONE = "sequencer not available"


class Worker:
    """A worker that receives immediately, or one whose messages are all still in transit."""

    def __init__(self, *, hears: bool = True) -> None:
        self.hears = hears
        self.messages: list[ToWorker] = []

    def respond(self, message: ToWorker) -> bool:
        self.messages.append(message)
        return self.hears

    def submitted(self, number: int, size: int = 1, deadline_ns: int = 10) -> BusRequest:
        call = BusCall(number, "main", Submit(bytes(size), bytes(20)), deadline_ns)
        return BusRequest(call, self.respond)


def test_each_worker_hears_what_is_taken_up_before_it_is() -> None:
    queue, one, other = SubmissionQueue(), Worker(), Worker()
    for each in (one.submitted(1), other.submitted(1), one.submitted(2)):
        queue.put(each, 0)
    assert [each.call.id for each in queue.start(0)] == [1, 1, 2]
    assert one.messages == [Started((1, 2))]
    assert other.messages == [Started((1,))]


def test_what_a_worker_cannot_be_told_is_not_taken_up() -> None:
    queue, deaf, other = SubmissionQueue(), Worker(hears=False), Worker()
    for each in (deaf.submitted(1), other.submitted(2)):
        queue.put(each, 0)
    assert [each.call.id for each in queue.start(0)] == [2]
    assert deaf.messages == [Started((1,)), failed(1, SequencerUnavailable())]


def test_what_is_late_is_refused_and_not_taken_up() -> None:
    queue, worker = SubmissionQueue(), Worker()
    queue.put(worker.submitted(1, deadline_ns=10), 0)
    queue.put(worker.submitted(2, deadline_ns=11), 0)
    assert [each.call.id for each in queue.start(10)] == [2]
    assert worker.messages == [failed(1, SequencerUnavailable()), Started((2,))]


def test_what_is_late_makes_room() -> None:
    queue, worker = SubmissionQueue(most=1), Worker()
    for number, now_ns in ((1, 0), (2, 9), (3, 10)):
        queue.put(worker.submitted(number, deadline_ns=now_ns + 10), now_ns)
    assert worker.messages == [failed(2, SequencerBusy()), failed(1, SequencerUnavailable())]
    assert [each.call.id for each in queue.start(10)] == [3]


def test_not_more_than_a_portion_is_taken_up_at_once() -> None:
    queue, worker = SubmissionQueue(), Worker()
    for number in range(PORTION + 1):
        queue.put(worker.submitted(number), 0)
    assert len(queue.start(0)) == PORTION
    assert len(queue) == 1


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 5), st.booleans()), max_size=60),
    st.integers(1, 8),
    st.integers(0, 100),
)
def test_the_bounds_hold_and_everybody_hears_one_thing(
    steps: list[tuple[int, int, bool]], most: int, most_bytes: int
) -> None:
    queue, worker, now_ns = SubmissionQueue(most, most_bytes), Worker(), 0
    sizes: dict[int, int] = {}
    taken: list[int] = []
    for number, (size, later, takes) in enumerate(steps):
        now_ns += later
        sizes[number] = size
        queue.put(worker.submitted(number, size, now_ns + 8), now_ns)
        if takes:
            taken.extend(each.call.id for each in queue.start(now_ns))
        ended = {each.id for each in worker.messages if isinstance(each, Failed)}
        waiting = set(sizes) - ended - set(taken)
        assert len(waiting) == len(queue) <= most
        assert sum(sizes[each] for each in waiting) <= most_bytes
    queue.refuse_all()
    refused = [each.id for each in worker.messages if isinstance(each, Failed)]
    told = [number for each in worker.messages if isinstance(each, Started) for number in each.ids]
    assert told == taken == sorted(taken)
    assert sorted([*refused, *taken]) == sorted(sizes)
