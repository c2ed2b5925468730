from hypothesis import given
from hypothesis import strategies as st

from foreblock.feed.backlog import Backlog, frame_size


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
    """A buffer of letters, each the number of its message; the client takes some at a time."""
    backlog = Backlog(most, 10**9)
    buffer: list[int] = []
    for number, (size, taken) in enumerate(steps):
        expected = not buffer or len(set(buffer)) < most
        assert backlog.has_room(len(buffer), size) == expected
        backlog.wrote(size)
        buffer += [number] * size
        del buffer[:taken]
