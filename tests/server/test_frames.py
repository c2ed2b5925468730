"""Frames are parsed like in the websockets library, for any segmentation."""

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st
from websockets.exceptions import ProtocolError
from websockets.frames import Close, Frame, Opcode
from websockets.protocol import State
from websockets.server import ServerProtocol
from websockets.utils import apply_mask

from foreblock.scheduling.admission import WorkerBudget
from foreblock.scheduling.thresholds import THRESHOLDS
from foreblock.server.frames import (
    FRAMING_BYTES,
    ControlFrame,
    Fragment,
    FrameReader,
    FrameStep,
    Violation,
    WholeMessage,
    close_frame,
    frame_head,
)
from support.each_case import each_case
from support.servers.websocket_wire import masked

LIMIT = 300
LONG = THRESHOLDS.long_bytes
Seen = tuple[str, bytes] | tuple[str, int]


def steps(reader: FrameReader, *pieces: bytes) -> Iterator[FrameStep]:
    """All steps, up to one that ends the connection."""
    for piece in pieces:
        reader.feed(piece)
        while (step := reader.step()) is not None:
            yield step
            if isinstance(step, Violation):
                return


def by_us(*pieces: bytes) -> Iterator[Seen]:
    for step in steps(FrameReader(LIMIT, WorkerBudget()), *pieces):
        match step:
            case WholeMessage(body):
                yield "message", body
            case ControlFrame(opcode, payload):
                yield Opcode(opcode).name, payload
                if opcode == Opcode.CLOSE:
                    return
            case Violation(code):
                yield "failed", code
            case Fragment():
                pass


def by_the_library(data: bytes) -> Iterator[Seen]:
    """The steps of websockets, which leaves the UTF-8 check of messages to its users."""
    library = ServerProtocol(state=State.OPEN, max_size=LIMIT)
    library.receive_data(data)
    parts: list[bytes] = []
    first = Opcode.TEXT
    for frame in library.events_received():
        assert isinstance(frame, Frame)
        if frame.opcode not in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT):
            yield frame.opcode.name, bytes(frame.data)
            continue
        first = first if frame.opcode is Opcode.CONT else frame.opcode
        parts.append(bytes(frame.data))
        try:
            b"".join(parts).decode()
        except UnicodeDecodeError as why:
            if frame.fin or why.reason != "unexpected end of data":
                yield "failed", 1007 if first is Opcode.TEXT else 1003
                return
        if frame.fin:
            yield "message", b"".join(parts)
            parts.clear()
    # For it a close frame within a message is an error, although it has read the frame.
    is_fault = isinstance(library.parser_exc, ProtocolError)
    if library.parser_exc is not None and (is_fault or library.close_rcvd is None):
        assert library.close_sent is not None
        yield "failed", library.close_sent.code


MALFORMED_CLOSES = [("failed", 1002), ("failed", 1007)]
# of a frame with both errors, either is reported
OF_TWO_FAULTS = {("failed", 1002), ("failed", 1009)}

PAYLOADS = st.one_of(
    st.binary(max_size=10),
    st.text(max_size=40).map(str.encode),
    st.integers(0, 2 * LIMIT).map(lambda size: b"x" * size),
    st.sampled_from(["é".encode()[:1], "é".encode()[1:], "\U0001f600".encode()[:3], b"\xff"]),
)
MASKS = st.binary(min_size=4, max_size=4)


@st.composite
def frames(draw: st.DrawFn) -> bytes:
    """A valid or nearly valid frame."""
    opcode = draw(st.sampled_from([0, 0, 1, 1, 2, 8, 9, 10, 3, 11]))
    payload = draw(PAYLOADS) if opcode < 8 else draw(st.binary(max_size=130))
    if opcode == 8 and draw(st.booleans()):
        payload = Close(draw(st.sampled_from([1000, 1001, 3000, 4999])), "why").serialize()
    first = draw(st.sampled_from([0x80, 0x80, 0x80, 0, 0, 0xC0])) | opcode
    head = bytearray(frame_head(0, len(payload)))
    head[0] = first
    if not draw(st.integers(0, 30)):
        return bytes(head) + payload  # not masked
    mask = draw(MASKS)
    head[1] |= 0x80
    return bytes(head) + mask + apply_mask(payload, mask)


@given(st.lists(frames(), max_size=8).map(b"".join), st.data())
def test_the_library_reads_the_same(data: bytes, draws: st.DataObject) -> None:
    cuts = sorted(draws.draw(st.lists(st.integers(0, len(data)), max_size=6)))
    pieces = [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]
    expected, found = list(by_the_library(data)), list(by_us(*pieces))
    if found and found[-1][0] == "CLOSE" and expected[-1] in MALFORMED_CLOSES:
        found[-1] = expected[-1]  # other tests check the contents of close frames
    if {*found[-1:], *expected[-1:]} == OF_TWO_FAULTS:
        found[-1] = expected[-1]
    assert found == expected


def test_a_close_frame_within_a_message_is_a_fault_to_the_library_only() -> None:
    data = b"\x01\x80\0\0\0\0" + b"\x88\x80\0\0\0\0"
    assert [*by_the_library(data)] == [("failed", 1002)]
    assert [name for name, _ in by_us(data)] == ["CLOSE"]


@given(st.binary(max_size=300))
def test_any_bytes_come_to_an_end(data: bytes) -> None:
    assert len(list(steps(FrameReader(LIMIT, WorkerBudget()), data))) <= len(data)


@each_case("size", [0, 1, 125, 126, 127, 65_535, 65_536, 300_000])
def test_heads_of_every_length_are_those_of_the_library(size: int) -> None:
    payload = bytes(size)
    assert frame_head(1, size) + payload == Frame(Opcode.TEXT, payload).serialize(mask=False)
    assert (
        frame_head(0, size, final=False)
        == (
            Frame(Opcode.CONT, payload, fin=False).serialize(mask=False)[: len(frame_head(0, size))]
        )
    )


def test_a_long_reason_is_cut_between_characters() -> None:
    data = close_frame(1008, "é" * 100)
    assert Close.parse(data[2:]) == Close(1008, "é" * 61)
    assert data[1] == 2 + 122


def test_one_step_reads_one_frame() -> None:
    reader = FrameReader(LIMIT, WorkerBudget())
    reader.feed(masked(b"", 0x9) * 5 + masked(b"x"))
    assert [type(reader.step()) for _ in range(7)] == [
        *[ControlFrame] * 5,
        WholeMessage,
        type(None),
    ]


def test_size_is_checked_before_anything_is_kept() -> None:
    reader = FrameReader(LIMIT, WorkerBudget())
    assert list(steps(reader, masked(bytes(LIMIT + 1))[:8])) == [
        Violation(1009, f"message too large ({LIMIT + 1}>{LIMIT})")
    ]


def test_fragments_count_together() -> None:
    data = masked(bytes(LIMIT), final=False) + masked(b"x", 0)
    *_, last = steps(FrameReader(LIMIT, WorkerBudget()), data)
    assert last == Violation(1009, f"message too large ({LIMIT + 1}>{LIMIT})")


def test_endless_tiny_fragments_are_refused_soon() -> None:
    reader = FrameReader(1 << 20, WorkerBudget())
    data = masked(b"x", final=False) + masked(b"", 0, final=False) * FRAMING_BYTES
    *parts, last = steps(reader, data)
    assert last == Violation(1008, "more framing than content in a message")
    assert len(parts) <= FRAMING_BYTES // 6 + 1


def test_fragments_of_a_hundred_bytes_are_not_too_small() -> None:
    data = [masked(bytes(100), 0, final=False)] * 5000
    *_, last = steps(
        FrameReader(1 << 20, WorkerBudget()), masked(b"", final=False), *data, masked(b"", 0)
    )
    assert isinstance(last, WholeMessage)
    assert last.body == bytes(500_000)


def test_long_messages_take_room_until_they_are_answered() -> None:
    budget = WorkerBudget(received=3 * LONG)
    reader = FrameReader(1 << 20, budget)
    (message,) = steps(reader, masked(bytes(LONG)))
    assert budget.received.left == 2 * LONG
    refused = Violation(1013, "too much is being received, try again later")
    assert list(steps(reader, masked(bytes(2 * LONG + 1))[:20])) == [refused]
    del message
    assert budget.received.left == 3 * LONG


def test_room_of_an_incomplete_message_is_released() -> None:
    budget = WorkerBudget(received=3 * LONG)
    reader = FrameReader(1 << 20, budget)
    assert not list(steps(reader, masked(bytes(2 * LONG))[:-1]))
    assert (budget.received.left, reader.has_begun) == (LONG, True)
    reader.clear()
    assert (budget.received.left, reader.has_begun) == (3 * LONG, False)
