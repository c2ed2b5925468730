"""Frames counted by their headers, for any segmentation."""

import os

from hypothesis import given
from hypothesis import strategies as st

from foreblock.feed.rate_limits import FrameScan, Scanned
from support.each_case import each_case
from support.servers.feed_servers import frame

HEAD = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"
PONG = frame(b"", 10)


def masked(payload: bytes, opcode: int) -> bytes:
    """A client's frame; short payloads only."""
    return bytes([0x80 | opcode, 0x80 | len(payload)]) + bytes(4) + payload


def scan(data: bytes, most: int = 10**9) -> Scanned:
    found = FrameScan().scan(HEAD + data, 0, most)
    return found._replace(bytes=found.bytes - len(HEAD))


@each_case("size", [0, 1, 125, 126, 127, 65_535, 65_536, 300_000])
def test_frames_of_every_length_are_counted(size: int) -> None:
    data = frame(bytes(size)) + frame(b"x", 9) + frame(bytes(size), 1) + PONG
    assert scan(data) == Scanned(len(data), 4, 2)


def test_frames_of_clients_are_counted() -> None:
    data = masked(b"", 10) * 5 + masked(b"hello", 1)
    assert scan(data) == Scanned(len(data), 6, 5)


def test_it_ends_before_the_frame_that_is_one_too_many() -> None:
    assert scan(PONG * 100, 7) == Scanned(14, 7, 7)
    assert scan(frame(bytes(1000)) + PONG, 1) == Scanned(1004, 1, 0)
    assert scan(PONG, 0) == Scanned(0, 0, 0)


def test_it_goes_on_where_it_ended() -> None:
    scan, data = FrameScan(), HEAD + frame(bytes(70_000)) + PONG * 3
    first = scan.scan(data, 0, 2)
    second = scan.scan(data, first.bytes, 2)
    assert (first.frames, first.control) == (2, 1)
    assert (second.frames, second.control) == (2, 2)
    assert first.bytes + second.bytes == len(data)


def test_a_handshake_has_no_frames() -> None:
    scan = FrameScan()
    assert scan.scan(b"\x8a\x00" * 1000, 0, 5) == Scanned(2000, 0, 0)
    assert scan.in_handshake
    assert scan.scan(b"\r\n\r", 0, 5) == Scanned(3, 0, 0)
    assert scan.scan(b"\n" + PONG, 0, 5) == Scanned(3, 1, 1)
    assert not scan.in_handshake


def test_a_length_beyond_everything_is_one_frame() -> None:
    data = b"\x82\x7f" + b"\xff" * 8 + os.urandom(5_000)
    assert scan(data) == Scanned(len(data), 1, 0)


@given(
    st.lists(st.tuples(st.sampled_from([0, 1, 2, 8, 9, 10]), st.integers(0, 200)), max_size=20),
    st.lists(st.integers(1, 50), min_size=1, max_size=20),
)
def test_it_counts_the_same_however_bytes_are_cut(
    frames: list[tuple[int, int]], cuts: list[int]
) -> None:
    data = HEAD + b"".join(frame(bytes(size), opcode) for opcode, size in frames)
    scan, at, count, control, turn = FrameScan(), 0, 0, 0, 0
    while at < len(data):
        part = data[at : at + cuts[turn % len(cuts)]]
        found = scan.scan(part, 0, 10**9)
        assert found.bytes == len(part)
        at, turn = at + len(part), turn + 1
        count, control = count + found.frames, control + found.control
    assert count == len(frames)
    assert control == sum(opcode >= 8 for opcode, _ in frames)
