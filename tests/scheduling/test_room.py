"""Places and bytes are counted for as long as somebody has what they were given for."""

from foreblock.scheduling.room import LongText, Room
from foreblock.scheduling.thresholds import THRESHOLDS

PORTION = THRESHOLDS.piece_bytes


def test_places_come_back_with_whoever_had_them() -> None:
    room = Room(places=2)
    taken = [room.place(), room.place()]
    assert None not in taken
    assert room.place() is None
    taken.pop()
    assert room.place() is not None


def test_a_text_counts_until_nobody_has_it() -> None:
    room = Room(limit=100)
    text = LongText(room, [b"a" * 60, b"b" * 20])
    assert (text.size, room.held) == (80, 80)
    text.add([b"c" * 20])
    assert (text.size, room.held) == (100, 100)
    del text
    assert room.held == 0


def test_what_is_taken_counts_until_it_is_sent() -> None:
    room = Room(limit=10 * PORTION)
    text = LongText(room, [b"a" * (PORTION - 1), b"b", b"}", b"c" * 5000])
    assert [len(piece) for piece in text.take()] == [PORTION - 1, 1, 1], "small ones go along"
    assert (text.size, room.held) == (5000, PORTION + 5001)
    text.sent()
    assert room.held == 5000
    assert text.take() == [b"c" * 5000]
    assert text.take() == []
    assert room.held == 5000
    del text
    assert room.held == 0


def test_a_piece_that_texts_share_counts_once() -> None:
    room = Room(limit=100)
    shared, other = b"s" * 80, b"o" * 30
    first = LongText(room, [shared])
    assert room.has_for([shared, b"x" * 20])
    assert not room.has_for([other])
    second = LongText(room, [shared, shared])
    assert room.held == 80
    del first
    assert room.held == 80
    del second
    assert room.held == 0
    assert room.has_for([other])


def test_a_refusal_is_noted() -> None:
    room = Room(limit=100)
    assert room.has_for([b"x" * 100])
    assert not room.wanted
    assert not room.has_for([b"x" * 101])
    assert room.wanted
