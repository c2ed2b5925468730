"""Messages of the log: a round trip, and damage is rejected by name."""

import struct
from hashlib import sha256

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from foreblock.errors import LogMessageTooLarge, MalformedLogMessage, NewerLogFormat
from foreblock.log.message import LONGEST_BODY, LogMessage, decode_header, decode_message
from foreblock.log.parts import (
    ForeignMessage,
    Joiner,
    OutgoingCommit,
    StoredCommit,
    StoredPart,
    cut,
    outgoing,
)
from support.each_case import each_case
from support.strategies.log_messages import messages

SMALL = LogMessage(3, 7, 8, b"i" * 16, b"p" * 32, b"body" * 20)


def plain(message: LogMessage, flags: int, packed: bytes) -> bytes:
    """Parse the message by the specification's table, field by field."""
    return (
        b"FBLC"
        + bytes([1, 1, flags, 0])
        + message.epoch.to_bytes(8)
        + message.before.to_bytes(8)
        + message.after.to_bytes(8)
        + message.log_id
        + message.previous
        + len(message.body).to_bytes(4)
        + packed
    )


@given(messages())
def test_a_message_is_the_table_of_the_specification(message: LogMessage) -> None:
    encoded = message.encode()
    assert encoded[:84] == plain(message, 1, b"")
    assert zstandard.ZstdDecompressor().decompress(encoded[84:]) == message.body
    assert message.link == sha256(encoded[8:80] + message.body).digest()


@given(messages())
def test_what_is_written_is_read(message: LogMessage) -> None:
    assert decode_message(message.encode()) == message
    assert decode_message(plain(message, 0, message.body)) == message


@given(messages(), messages())
def test_links_are_equal_for_equal_commits_only(one: LogMessage, other: LogMessage) -> None:
    assert (one.link == other.link) == (one == other)


@given(messages(), st.integers(1, 50))
def test_packing_does_not_change_the_link(message: LogMessage, level: int) -> None:
    packed = zstandard.ZstdCompressor(level=level % 19 + 1).compress(message.body)
    assert decode_message(plain(message, 1, packed)).link == message.link


def test_the_header_has_84_bytes() -> None:
    empty = LogMessage(1, 0, 1, bytes(16), bytes(32), b"")
    assert decode_header(empty.encode()[:84]).length == 0
    assert decode_message(empty.encode()) == empty


def changed(at: int, value: bytes) -> bytes:
    data = bytearray(SMALL.encode())
    data[at : at + len(value)] = value
    return bytes(data)


REFUSALS = [
    (b"", "0 bytes are too few for a header"),
    (SMALL.encode()[:83], "83 bytes are too few for a header"),
    (changed(0, b"FBLD"), "it does not begin with FBLC"),
    (changed(4, b"\0"), "wire format 0"),
    (changed(5, b"\0"), "store format 0"),
    (changed(6, b"\5"), "unknown flags 0x05"),
    (changed(7, b"\1"), "the reserved byte is 1"),
    (changed(24, struct.pack(">Q", 7)), "commit 7 after 7"),
    (changed(80, struct.pack(">I", LONGEST_BODY + 1)), f"a body of {LONGEST_BODY + 1} bytes"),
    (changed(80, struct.pack(">I", 81)), "a zstd frame of 80 bytes, not 81"),
    (changed(84, b"no frame"), "not one zstd frame: "),
    (SMALL.encode()[:-1], "not one zstd frame: "),
    (SMALL.encode() + b"x", "not one zstd frame: "),
    (SMALL.encode()[:84], "not one zstd frame: "),
    (plain(SMALL, 0, SMALL.body[1:])[:80] + struct.pack(">I", 80) + SMALL.body[1:],
     "a body of 79 bytes, not 80"),
    (LogMessage(1, 0, 1, bytes(16), bytes(32), b"").encode() + b"x", "not one zstd frame: "),
    (LogMessage(1, 0, 1, bytes(16), bytes(32), b"").encode()[:-1], "not one zstd frame: "),
]  # fmt: skip


@each_case(("data", "why"), REFUSALS)
def test_each_damage_has_its_reason(data: bytes, why: str) -> None:
    with pytest.raises(MalformedLogMessage) as refused:
        decode_message(data, "commit at sequence 5")
    assert str(refused.value).startswith(f"malformed commit at sequence 5: {why}")


@pytest.mark.parametrize(("at", "name"), [(4, "wire format"), (5, "store format")])
def test_a_newer_format_is_named(at: int, name: str) -> None:
    with pytest.raises(NewerLogFormat) as refused:
        decode_message(changed(at, b"\2"))
    assert (refused.value.what, refused.value.found) == (f"{name} of a commit", 2)


@given(st.binary(max_size=200), st.integers(0, 200), messages())
def test_no_bytes_raise_anything_else(noise: bytes, at: int, message: LogMessage) -> None:
    data = bytearray(message.encode())
    data[at : at + len(noise)] = noise
    try:
        decoded = decode_message(bytes(data))
    except (MalformedLogMessage, NewerLogFormat):
        return
    assert decode_message(decoded.encode()) == decoded


def stored(commit: OutgoingCommit) -> list[StoredPart]:
    headers = commit.headers("FB_x", "w", "batch")
    return [
        StoredPart(commit.first + number, part, header)
        for number, (part, header) in enumerate(zip(commit.parts, headers, strict=True))
    ]


@given(messages(longest=3000), st.integers(0, 10**6), st.integers(1150, 1400))
def test_parts_are_joined_to_what_was_cut(message: LogMessage, last: int, payload: int) -> None:
    commit = outgoing(message, last, payload)
    joiner = Joiner()
    *early, (complete,) = [joiner.add(part) for part in stored(commit)]
    assert early == [[]] * (len(commit.parts) - 1)
    assert isinstance(complete, StoredCommit)
    assert complete.message == message
    assert complete.message.link == message.link
    assert (complete.first, complete.last) == (last + 1, last + len(commit.parts))
    assert all(len(part) <= payload - 1024 for part in commit.parts)
    assert [part.first for part in stored(commit)] == [last + 1] * len(commit.parts)


def test_headers_of_one_message_and_of_parts() -> None:
    whole = {
        "Nats-Expected-Stream": "FB_x",
        "Nats-Expected-Last-Sequence": "9",
        "Nats-Msg-Id": SMALL.link[:16].hex(),
        "Foreblock-Writer": "w",
    }
    one = outgoing(SMALL, 9, 4096)
    assert list(one.headers("FB_x", "w", "b")) == [whole]
    three = OutgoingCommit(SMALL.link, (b"a", b"b", b"c"), 9)
    assert list(three.headers("FB_x", "w", "b")) == [
        whole | {"Nats-Batch-Id": "b", "Nats-Batch-Sequence": "1"},
        {"Nats-Batch-Id": "b", "Nats-Batch-Sequence": "2"},
        {"Nats-Batch-Id": "b", "Nats-Batch-Sequence": "3", "Nats-Batch-Commit": "1"},
    ]
    assert (three.first, three.last) == (10, 12)


def test_a_message_of_too_many_parts_is_refused() -> None:
    assert len(cut(bytes(100_000), 100)) == 1000
    with pytest.raises(LogMessageTooLarge):
        cut(bytes(100_001), 100)


def spoilt(parts: list[StoredPart], number: int, **fields: object) -> list[StoredPart]:
    parts = list(parts)
    old = parts[number]
    facts = {"sequence": old.sequence, "data": old.data, "headers": old.headers} | fields
    parts[number] = StoredPart(**facts)  # type: ignore[arg-type]
    return parts


LONG = LogMessage(3, 7, 8, b"i" * 16, b"p" * 32, bytes(range(256)))
THREE = stored(OutgoingCommit(LONG.link, cut(LONG.encode(), 150), 4))
IN_NO_BATCH = {"Nats-Expected-Last-Sequence": "4"}
SPOILT = [
    (THREE[1:], "part 2 without those before it"),
    ([THREE[0], *THREE[2:]], "a part is missing after 5"),
    (spoilt(THREE, 0, headers=IN_NO_BATCH), "parts are to follow, but it is in no batch"),
    (spoilt(THREE, 1, headers=dict(THREE[1].headers) | {"Nats-Batch-Id": "other"}),
     "the part at 6 is of another batch"),
    (spoilt(THREE, 1, sequence=9), "a part is missing after 5"),
    (spoilt(THREE, 1, headers=dict(THREE[1].headers) | {"Nats-Batch-Sequence": "x"}),
     "part 0 after 1"),
    (spoilt(THREE, 1, headers=dict(THREE[1].headers) | {"Nats-Batch-Sequence": "9" * 5000}),
     "part 0 after 1"),
    (spoilt(THREE, 1, headers=THREE[0].headers), "part 1 after 1"),
    (spoilt(THREE, len(THREE) - 1, data=b""), "not one zstd frame"),
]  # fmt: skip


@each_case(("parts", "why"), SPOILT)
def test_parts_that_do_not_belong_together_are_no_commit(parts: list[StoredPart], why: str) -> None:
    """And the following commit is found."""
    joiner = Joiner()
    after = spoilt(stored(outgoing(SMALL, 19, 4096)), 0)
    found = [entry for part in (*parts, *after) for entry in joiner.add(part)]
    *foreign, commit = found
    assert isinstance(commit, StoredCommit)
    assert commit.message == SMALL
    assert isinstance(foreign[0], ForeignMessage)
    assert why in str(foreign[0].why)
