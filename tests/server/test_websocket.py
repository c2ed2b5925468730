"""Messages and responses of a WebSocket: order, limits, codes and reasons."""

import asyncio
from collections.abc import Awaitable

import pytest
from websockets.frames import Close, Opcode

from foreblock.scheduling.admission import LongText, WorkerBudget
from foreblock.scheduling.reply import Reply
from foreblock.scheduling.thresholds import THRESHOLDS
from foreblock.server.backpressure import AHEAD_LIMIT
from foreblock.settings import ServerLimits, WebSocketLimits
from support.each_case import each_case
from support.servers.in_loop import in_loop, turns, until
from support.servers.websocket_wire import ROOMY, WebSocketWire, masked
from support.servers.wire import echo

LONG = THRESHOLDS.long_bytes


@in_loop
async def test_messages_of_text_and_bytes_are_answered_with_text() -> None:
    wire = WebSocketWire()
    wire.send_raw(masked(b"a") + masked(b"b", 2))
    assert [(frame.opcode, bytes(frame.data)) for frame in wire.frames()] == [
        (Opcode.TEXT, b"<a>"), (Opcode.TEXT, b"<b>"),
    ]  # fmt: skip
    assert len(wire.transport.written) == 2, "responses of one piece are written immediately"


@in_loop
async def test_message_in_fragments_with_a_ping_between() -> None:
    wire = WebSocketWire()
    wire.send_raw(masked(b"a", final=False), masked(b"hi", 9), masked(b"b", 0, final=False))
    wire.send_raw(masked(b"c", 0))
    assert [(frame.opcode, bytes(frame.data)) for frame in wire.frames()] == [
        (Opcode.PONG, b"hi"), (Opcode.TEXT, b"<abc>"),
    ]  # fmt: skip


@in_loop
async def test_slow_answers_do_not_delay_others() -> None:
    wire = WebSocketWire()
    wire.ask(b"a", b"slow1", b"slow2", b"b")
    assert wire.texts() == ["<a>", "<b>"]
    wire.session.finish(1)
    await turns()
    assert wire.texts() == ["<slow2>"]
    wire.session.finish()
    await turns()
    assert wire.texts() == ["<slow1>"]


@in_loop
async def test_an_empty_answer_is_not_sent() -> None:
    wire = WebSocketWire()
    wire.session.answer = lambda _: Reply(b"")
    wire.ask(b"notification")
    assert (wire.session.received, wire.frames()) == ([b"notification"], [])


@in_loop
async def test_more_requests_than_may_wait_are_not_read() -> None:
    wire = WebSocketWire(websocket=WebSocketLimits(requests=3))
    wire.ask(*[b"slow%d" % number for number in range(5)], b"fast")
    assert len(wire.session.received) == 3
    wire.send_raw(masked(bytes(AHEAD_LIMIT)))
    assert not wire.transport.reading, "it may send some, and not more"
    for _ in range(5):
        wire.session.finish()
        await turns()
    short = [text for text in wire.texts() if len(text) < AHEAD_LIMIT]
    assert short == ["<slow0>", "<slow1>", "<slow2>", "<fast>", "<slow3>", "<slow4>"]
    assert wire.transport.reading


@in_loop
async def test_others_have_a_turn_within_many_messages() -> None:
    wire = WebSocketWire()
    wire.ask(*[b"x"] * 1000)
    assert len(wire.session.received) == THRESHOLDS.answered_requests
    await until(lambda: len(wire.session.received) == 1000)
    assert wire.texts() == ["<x>"] * 1000


@in_loop
async def test_others_have_a_turn_within_many_fragments() -> None:
    wire = WebSocketWire()
    fragments = masked(b"", 1, final=False) + masked(b"", 0, final=False) * 1000
    wire.send_raw(fragments + masked(b"x", 0))
    assert not wire.session.received
    await until(lambda: wire.session.received)


class LongAnswers:
    """Long texts, in pieces that a budget counts."""

    def __init__(self, budget: WorkerBudget, pieces: list[bytes]) -> None:
        self._budget = budget
        self._pieces = pieces

    def __call__(self, _: bytes) -> Reply:
        return Reply(b"", b"", LongText(self._budget, self._pieces))


@in_loop
async def test_long_answers_come_in_fragments_with_others_after_them() -> None:
    wire = WebSocketWire()
    pieces = [b"%d" % number * LONG for number in range(10)]
    wire.session.answer = LongAnswers(wire.budget, pieces)
    wire.ask(b"long")
    wire.session.answer = echo
    wire.ask(b"short")
    await turns()
    frames = wire.frames()
    assert [frame.opcode for frame in frames] == [Opcode.TEXT, *[Opcode.CONT] * 4, Opcode.TEXT]
    assert [frame.fin for frame in frames] == [False] * 4 + [True, True]
    assert b"".join(frame.data for frame in frames[:5]) == b"".join(pieces)
    assert wire.budget.held == 0


@in_loop
async def test_a_ping_is_answered_between_fragments() -> None:
    wire = WebSocketWire()
    pieces = [b"%d" % (number % 10) * LONG for number in range(40)]
    wire.session.answer = LongAnswers(wire.budget, pieces)
    wire.ask(b"long")
    wire.send_raw(masked(b"hi", 9))
    await until(lambda: wire.connection.unsent == 0)
    opcodes = [frame.opcode for frame in wire.frames()]
    assert 0 < opcodes.index(Opcode.PONG) < len(opcodes) - 1


@in_loop
async def test_requests_are_not_read_while_many_answers_wait_behind_a_long_one() -> None:
    wire = WebSocketWire()
    pieces = [b"%d" % (number % 10) * LONG for number in range(400)]
    wire.session.answer = LongAnswers(wire.budget, pieces)
    wire.ask(b"long")
    wire.session.answer = lambda _: Reply(bytes(LONG // 2))
    wire.ask(*[b"x"] * 100)
    await turns()
    assert wire.connection.unsent
    assert len(wire.session.received) == 3
    await until(lambda: len(wire.session.received) == 101)
    await until(lambda: wire.connection.unsent == 0)
    assert (len(wire.texts()), wire.budget.held) == (101, 0)


@in_loop
async def test_answers_of_some_pieces_are_one_frame() -> None:
    wire = WebSocketWire()
    wire.session.answer = lambda _: Reply(b"", b"", [b"a" * LONG, b"b" * LONG])
    wire.ask(b"x")
    (frame,) = wire.frames()
    assert bytes(frame.data) == b"a" * LONG + b"b" * LONG


@in_loop
async def test_answers_wait_for_a_client_that_does_not_read() -> None:
    wire = WebSocketWire()
    wire.transport.client_reads = False
    wire.ask(*[b"%d" % number for number in range(40)])
    await turns()
    assert not wire.transport.reading
    asked = len(wire.session.received)
    assert asked <= THRESHOLDS.answered_requests
    wire.transport.client_takes_all()
    await until(lambda: len(wire.session.received) == 40)
    await turns()
    assert wire.texts() == [f"<{number}>" for number in range(40)]
    assert wire.budget.held == 0


@in_loop
async def test_notifications_wait_in_order_and_are_counted() -> None:
    wire = WebSocketWire()
    assert wire.session.channel.send(b"1")
    await turns()
    wire.transport.client_reads = False
    assert wire.session.channel.send(b"2")
    await turns()
    assert wire.session.channel.send(b"33")
    assert wire.session.channel.send(b"444")
    await turns()
    assert (wire.connection.unsent, wire.budget.held) == (3 + 2 + 3, 3 + 2 + 3)
    wire.transport.client_takes_all()
    await turns()
    assert wire.texts() == ["1", "2", "33", "444"]
    assert (wire.connection.unsent, wire.budget.held) == (0, 0)


@in_loop
async def test_a_client_too_slow_for_notifications_is_closed_with_a_reason() -> None:
    wire = WebSocketWire(websocket=WebSocketLimits(unsent_bytes=10_000))
    wire.transport.client_reads = False
    sent = 0
    while wire.session.channel.send(bytes(1000)):
        sent += 1
        await turns()
    assert sent == 11  # one is with the transport
    assert wire.close_of() == (1008, "too slow: messages are piling up")
    assert wire.over()
    assert not wire.session.channel.send(b"x")
    await turns()
    assert wire.session.ends == 1


@in_loop
async def test_notifications_are_refused_where_the_worker_has_no_room() -> None:
    wire = WebSocketWire(budget=WorkerBudget(limit=5000))
    wire.transport.client_reads = False
    while wire.session.channel.send(bytes(1000)):
        await turns()
    assert wire.close_of() == (1013, "too many responses are unread, try again later")
    wire.transport.client_takes_all()
    assert wire.budget.bytes_left == 5000
    assert wire.budget.wanted


@in_loop
async def test_a_client_that_stops_reading_is_closed_in_time() -> None:
    limits = ServerLimits(write_timeout=30.0)
    wire = WebSocketWire(limits)
    wire.transport.client_reads = False
    wire.session.channel.send(b"x")
    await turns()
    wire.advance_seconds(29)
    assert wire.close_of() is None
    wire.advance_seconds(2)
    assert wire.close_of() == (1008, "too slow: messages are piling up")
    wire.advance_seconds(31)
    assert wire.transport.aborted


@each_case(
    ("data", "code", "reason"),
    [
        (masked(b"\xff"), 1007, "the text is not UTF-8"),
        (masked(b"\xff", 2), 1003, "only JSON in UTF-8 is understood"),
        (masked(bytes(ROOMY.body_limit + 1))[:20], 1009, "message too large (1048577>1048576)"),
        (b"\x81\x01x", 1002, "frames of clients must be masked"),
        (b"\xc1\x80", 1002, "reserved bits are set; no extension was agreed on"),
        (b"\x83\x80", 1002, "unknown opcode"),
        (masked(b"x", 0), 1002, "there is no message to continue"),
        (masked(b"x", final=False) * 2, 1002, "the message before is not complete"),
        (b"\x09\x80", 1002, "a control frame is fragmented"),
        (b"\x89\xfe", 1002, "a control frame is too long"),
        (masked(b"", 9) * 21, 1008, "too many pings and pongs"),
        (masked(b"", 10) * 21, 1008, "too many pings and pongs"),
        (masked(b"\x03", 8), 1002, "close frame too short"),
        (masked(b"\x03\xed", 8), 1002, "invalid status code"),
    ],
)
def test_ends_have_a_code_and_a_reason(data: bytes, code: int, reason: str) -> None:
    async def talk() -> None:
        wire = WebSocketWire()
        wire.send_raw(data)
        assert wire.close_of() == (code, reason)
        assert wire.over()
        wire.send_raw(masked(b"ignored"))
        await turns()
        assert (wire.session.received, wire.session.ends) == ([], 1)
        wire.advance_seconds(3)
        assert (wire.transport.closed, wire.ticker.count) == (True, 0)

    asyncio.run(talk())


@in_loop
async def test_what_comes_after_the_end_is_read_for_a_while_only() -> None:
    wire = WebSocketWire()
    wire.send_raw(b"\xff\xff")
    wire.send_raw(bytes(AHEAD_LIMIT))
    assert wire.transport.is_reading(), "unread input would reset the connection"
    wire.send_raw(b"x")
    assert not wire.transport.is_reading()
    wire.advance_seconds(3)
    assert wire.transport.closed


@in_loop
async def test_twenty_pings_a_second_are_not_too_many() -> None:
    wire = WebSocketWire()
    for _ in range(5):
        wire.send_raw(masked(b"", 9) * 20)
        wire.advance_seconds(1)
    assert len(wire.frames()) == 100
    assert not wire.over()


@pytest.mark.parametrize("payload", [b"", Close(1000, "done").serialize(), b"\x0f\xa0"])
def test_a_close_is_answered_with_its_own_code(payload: bytes) -> None:
    async def talk() -> None:
        wire = WebSocketWire()
        wire.send_raw(masked(b"a") + masked(payload, 8) + masked(b"b"))
        found = [(frame.opcode, bytes(frame.data)) for frame in wire.frames()]
        assert found == [(Opcode.TEXT, b"<a>"), (Opcode.CLOSE, payload)]
        assert wire.over()
        await turns()
        assert (wire.session.received, wire.session.ends) == ([b"a"], 1)

    asyncio.run(talk())


@each_case("how", ["close", "lost", "violation", "abort", "end"])
def test_whatever_ends_it_what_waits_is_cancelled_and_the_session_ends_once(how: str) -> None:
    async def talk() -> None:
        wire = WebSocketWire()
        wire.ask(b"slow")
        ((_, waiting),) = wire.session.waiting
        match how:
            case "close":
                wire.session.channel.close(1000, "enough")
            case "lost":
                wire.transport.close()
            case "violation":
                wire.send_raw(b"\xff\xff")
            case "abort":
                wire.connection.abort()
            case _:
                assert not wire.connection.eof_received()
                wire.transport.close()
        assert wire.session.ends == 0, "never from within a call"
        await turns()
        assert (waiting.cancelled(), wire.session.ends) == (True, 1)
        wire.transport.close()
        await turns()
        assert (wire.session.ends, wire.ticker.count, wire.budget.held) == (1, 0, 0)
        assert not wire.session.channel.send(b"x")

    asyncio.run(talk())


@in_loop
async def test_sessions_that_fail_close_with_a_code() -> None:
    def fail(_: bytes) -> Reply:
        raise ValueError

    async def fail_later() -> Reply:
        raise ValueError

    def failing_later(_: bytes) -> Awaitable[Reply]:
        return fail_later()

    for answer in (fail, failing_later):
        wire = WebSocketWire()
        wire.session.answer = answer
        wire.ask(b"x")
        await turns()
        assert wire.close_of() == (1011, "internal error")


@pytest.mark.filterwarnings("error")
@in_loop
async def test_a_session_may_close_while_it_answers() -> None:
    async def late() -> Reply:
        raise AssertionError("its client is gone")

    def close_and_answer(_: bytes) -> Reply:
        wire.session.channel.close(1013, "enough")
        return Reply(b"x")

    def close_and_wait(_: bytes) -> Awaitable[Reply]:
        wire.session.channel.close(1013, "enough")
        return late()

    for answer in (close_and_answer, close_and_wait):
        wire = WebSocketWire()
        wire.session.answer = answer
        wire.ask(b"x", b"y")
        await turns()
        assert wire.close_of() == (1013, "enough")
        assert (wire.session.received, wire.session.ends) == ([b"x"], 1)


TIMES = WebSocketLimits(ping_interval=30, ping_timeout=20, idle_timeout=100)


@in_loop
async def test_a_silent_client_gets_a_ping_and_is_closed_without_an_answer() -> None:
    wire = WebSocketWire(websocket=TIMES)
    wire.advance_seconds(29)
    assert wire.frames() == []
    wire.advance_seconds(2)
    await turns()
    (ping,) = wire.frames()
    assert ping.opcode is Opcode.PING
    wire.advance_seconds(18)
    assert wire.close_of() is None
    wire.advance_seconds(3)
    assert wire.close_of() == (1008, "no response to a ping")


@in_loop
async def test_a_client_that_answers_pings_stays_until_it_is_idle_for_too_long() -> None:
    wire = WebSocketWire(websocket=TIMES)
    for _ in range(3):
        wire.advance_seconds(31)
        wire.send_raw(masked(b"", 10))
        assert wire.close_of() is None
    wire.session.channel.send(b"news")
    await turns()
    for _ in range(3):
        wire.advance_seconds(31)
        wire.send_raw(masked(b"", 10))
        assert wire.close_of() is None
    wire.advance_seconds(10)
    assert wire.close_of() == (1001, "idle for too long")


@in_loop
async def test_a_waiting_request_is_not_idle() -> None:
    wire = WebSocketWire(websocket=TIMES)
    wire.ask(b"slow")
    for _ in range(5):
        wire.advance_seconds(31)
        wire.send_raw(masked(b"", 10))
    assert wire.close_of() is None
    wire.session.finish()
    await turns()
    assert wire.texts() == ["<slow>"]


@pytest.mark.parametrize("begun", [masked(b"hello")[:3], masked(b"hello", final=False)])
def test_a_message_must_arrive_in_time(begun: bytes) -> None:
    async def talk() -> None:
        wire = WebSocketWire(ServerLimits(body_timeout=10.0))
        wire.send_raw(begun)
        for _ in range(9):
            wire.advance_seconds(1)
            wire.send_raw(masked(b"", 10) if len(begun) > 3 else b"")
        assert wire.close_of() is None
        wire.advance_seconds(3)
        assert wire.close_of() == (1008, "message not received in time")

    asyncio.run(talk())


@in_loop
async def test_many_messages_are_not_one_that_is_late() -> None:
    wire = WebSocketWire(ServerLimits(body_timeout=10.0))
    whole = masked(b"hello")
    wire.send_raw(whole[:3])
    for _ in range(30):
        wire.advance_seconds(1)
        wire.send_raw(whole[3:] + whole[:3])
    assert len(wire.texts()) == 30


@in_loop
async def test_draining_answers_what_waits_and_says_so() -> None:
    wire, idle = WebSocketWire(), WebSocketWire()
    wire.ask(b"slow")
    for each in (wire, idle):
        each.ticker.shorten_timeouts(1.0)
        each.connection.drain()
    wire.ask(b"last")
    wire.advance_seconds(1)
    idle.advance_seconds(0.1)
    assert idle.close_of() == (1001, "the service is stopping")
    assert wire.texts() == ["<last>"]
    wire.session.finish()
    await turns()
    wire.advance_seconds(0.1)
    assert [bytes(each.data) for each in wire.frames()][:1] == [b"<slow>"]
    assert wire.close_of() == (1001, "the service is stopping")
