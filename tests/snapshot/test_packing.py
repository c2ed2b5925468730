"""The bytes of a snapshot: a faithful round trip, and rejection of everything else."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from foreblock.errors import DamagedSnapshot, SnapshotError, UnfitSnapshot
from foreblock.snapshot.packing import (
    FORMAT,
    HEADER,
    PAGE,
    STORE_FORMAT,
    Packer,
    SnapshotHeader,
    Unpacker,
    check_header,
    decode_header,
)
from support.each_case import each_case

HEAD = SnapshotHeader(9, 3, 7, b"s" * 16, b"l" * 32, 1 << 20)


def packed(pieces: list[bytes]) -> bytes:
    packer = Packer(HEAD)
    return packer.start + b"".join(map(packer.add, pieces)) + packer.finish()


def unpacked(data: bytes, size: int = 1 << 16) -> bytes:
    unpacker = Unpacker()
    cut = (data[at : at + size] for at in range(0, len(data), size))
    found = b"".join(piece for some in cut for piece in unpacker.add(some))
    unpacker.finish()
    assert unpacker.header == HEAD
    return found


@given(st.lists(st.binary(max_size=300), max_size=9), st.integers(1, 400))
def test_what_is_packed_is_unpacked_however_it_is_cut(pieces: list[bytes], size: int) -> None:
    assert unpacked(packed(pieces), size) == b"".join(pieces)


@given(st.binary(min_size=1, max_size=2_000), st.data())
def test_a_changed_byte_is_found_or_changes_nothing(content: bytes, data: st.DataObject) -> None:
    """zstd's header has bits that only affect memory."""
    whole = packed([content])
    at = data.draw(st.integers(0, len(whole) - 1))
    change = data.draw(st.integers(1, 255))
    damaged = bytearray(whole)
    damaged[at] ^= change
    try:
        assert unpacked(bytes(damaged)) == content
    except SnapshotError:
        return
    assert HEADER.size <= at < HEADER.size + 6


def test_each_field_of_the_header_is_covered_by_the_hash() -> None:
    whole = packed([b"content"])
    for at in range(16, HEADER.size):
        damaged = bytearray(whole)
        damaged[at] ^= 1
        unpacker = Unpacker()
        list(unpacker.add(bytes(damaged)))
        with pytest.raises(DamagedSnapshot, match="SHA-256"):
            unpacker.finish()


@given(st.data())
def test_a_snapshot_that_is_cut_off_or_goes_on_is_found(data: st.DataObject) -> None:
    whole = packed([bytes(1_000), b"content" * 99])
    with pytest.raises(DamagedSnapshot):
        unpacked(whole[: data.draw(st.integers(0, len(whole) - 1))])
    with pytest.raises(DamagedSnapshot, match="follows"):
        unpacked(whole + b"\0")


def test_a_few_bytes_that_stand_for_many_are_unpacked_in_turn() -> None:
    """160 MB of zeros are some 10 kB, which are not unpacked at once."""
    whole = packed([bytes(1 << 20)] * 160)
    assert len(whole) < 1 << 16
    largest = max(map(len, Unpacker().add(whole)))
    assert largest <= 128 << 20


def test_the_header_is_as_documented() -> None:
    assert HEAD.encode() == struct.pack(
        ">4sBBBBIIQQQ16s32sQ",
        b"FBSN", 1, HEAD.is_little, 2, 0, PAGE, 0, 9, 3, 7, b"s" * 16, b"l" * 32, 1 << 20,
    )  # fmt: skip
    assert len(HEAD.encode()) == HEADER.size == 96
    assert decode_header(HEAD.encode()) == HEAD


@each_case(
    ("at", "value", "words"),
    [
        (0, 0, "FBSN"),
        (4, 0, "not used"),
        (5, 2, "not used"),
        (7, 1, "not used"),
        (15, 1, "not used"),
    ],
)
def test_a_header_that_is_none_is_refused(at: int, value: int, words: str) -> None:
    damaged = bytearray(HEAD.encode())
    damaged[at] = value
    with pytest.raises(DamagedSnapshot, match=words):
        decode_header(bytes(damaged))
    with pytest.raises(DamagedSnapshot, match="95 bytes"):
        decode_header(HEAD.encode()[:-1])


def test_what_cannot_be_used_here_says_why() -> None:
    check_header(HEAD, 9)
    newer = bytearray(HEAD.encode())
    newer[4] = FORMAT + 1
    with pytest.raises(UnfitSnapshot, match="upgrade this node"):
        decode_header(bytes(newer))
    for unfit, words in (
        (replace(HEAD, is_little=1 - HEAD.is_little), "byte order"),
        (replace(HEAD, page=PAGE * 4), f"{PAGE * 4} bytes, those of this machine {PAGE}"),
        (replace(HEAD, store_format=STORE_FORMAT + 1), "upgrade this node"),
    ):
        with pytest.raises(UnfitSnapshot, match=words):
            check_header(unfit)
    with pytest.raises(UnfitSnapshot, match="at commit 9, the log begins after 10"):
        check_header(HEAD, 10)
