from hypothesis import given
from hypothesis import strategies as st

from foreblock.feed.feed_options import FeedServerOptions
from foreblock.feed.messages import decode, encode
from foreblock.feed.outgoing import Backlog, CurrentJob, Outgoing, frame_size
from foreblock.feed.wire import decompress
from foreblock.types import FlashblockId
from support.payloads.flashblocks import first, hash_of, later, with_transactions

OPTIONS = FeedServerOptions()


def outgoing(block: int, index: int, payload: str = "job", size: int = 1) -> Outgoing:
    flashblock = (
        first(block, payload, hash_of("parent"), hash_of("x"))
        if index == 0
        else later(block, payload, index, hash_of("x"))
    )
    return Outgoing(with_transactions(flashblock, bytes([1]) * size), OPTIONS)


def places(messages: list[Outgoing]) -> list[tuple[int, int]]:
    return [(message.place.block_number, message.place.index) for message in messages]


def test_both_forms_are_the_same_flashblock() -> None:
    flashblock = first(7, "job", hash_of("six"), hash_of("7.0"), FlashblockId(6, 4))
    message = Outgoing(flashblock, OPTIONS)
    assert message.text == encode(flashblock)
    assert decompress(message.compressed, 10_000) == message.text
    assert message.compressed is message.compressed


def test_the_dialect_before_predecessors_can_be_chosen() -> None:
    flashblock = first(7, "job", hash_of("six"), hash_of("7.0"), FlashblockId(6, 4))
    message = Outgoing(flashblock, FeedServerOptions(predecessor=False))
    assert message.text == encode(flashblock, predecessor=False)
    assert decode(message.text) != flashblock


def test_a_job_is_kept_from_any_place_on() -> None:
    job = CurrentJob(10**6)
    for index in range(4):
        job.add(outgoing(7, index))
    assert places(job.since(FlashblockId(7, 2))) == [(7, 2), (7, 3)]
    assert places(job.since(FlashblockId(6, 9))) == [(7, 0), (7, 1), (7, 2), (7, 3)]
    assert places(job.since(FlashblockId(7, 4))) == []
    assert places(job.since(FlashblockId(8, 0))) == []


def test_another_job_takes_the_place_of_the_one_before() -> None:
    job = CurrentJob(10**6)
    for message in (outgoing(7, 0), outgoing(7, 1), outgoing(7, 0, "other")):
        job.add(message)
    assert places(job.since(FlashblockId(0, 0))) == [(7, 0)]


@given(st.lists(st.integers(1, 2_000), max_size=30), st.integers(1_000, 10_000))
def test_what_is_kept_stays_below_its_limit_and_is_the_newest(sizes: list[int], limit: int) -> None:
    job = CurrentJob(limit)
    messages = [outgoing(7, index, size=size) for index, size in enumerate(sizes)]
    for message in messages:
        job.add(message)
    kept = job.since(FlashblockId(0, 0))
    assert kept == messages[len(messages) - len(kept) :]
    assert sum(len(message.text) for message in kept) <= limit
    if len(kept) < len(messages):
        assert sum(len(at.text) for at in messages[len(messages) - len(kept) - 1 :]) > limit


def test_a_frame_has_its_header_before_the_payload() -> None:
    """RFC 6455, 5.2: two bytes, and two or eight more for longer payloads."""
    assert [frame_size(size) for size in (0, 125, 126, 65_535, 65_536)] == [
        2, 127, 130, 65_539, 65_546,
    ]  # fmt: skip


def test_who_has_taken_everything_has_room_for_anything() -> None:
    backlog = Backlog(1, 10)
    backlog.wrote(1_000)
    assert backlog.has_room(0, 10**9)


def test_room_ends_at_the_number_of_messages() -> None:
    backlog = Backlog(3, 10_000)
    for count in range(3):
        assert backlog.has_room(100 * count, 100)
        backlog.wrote(100)
    assert not backlog.has_room(300, 100)
    assert not backlog.has_room(201, 100)
    assert backlog.has_room(200, 100)


def test_room_ends_at_the_number_of_bytes() -> None:
    backlog = Backlog(100, 1_000)
    backlog.wrote(900)
    assert backlog.has_room(900, 100)
    assert not backlog.has_room(900, 101)


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(0, 80)), max_size=40), st.integers(1, 5))
def test_the_count_is_that_of_a_plain_buffer(steps: list[tuple[int, int]], most: int) -> None:
    """A buffer of letters, each the number of its message; the client reads some at a time."""
    backlog = Backlog(most, 10**9)
    buffer: list[int] = []
    for number, (size, taken) in enumerate(steps):
        expected = not buffer or len(set(buffer)) < most
        assert backlog.has_room(len(buffer), size) == expected
        backlog.wrote(size)
        buffer += [number] * size
        del buffer[:taken]
