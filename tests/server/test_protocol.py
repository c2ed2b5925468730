"""Order, backpressure, failing handlers, and the end of a connection."""

import asyncio
from collections.abc import Awaitable

import pytest

from foreblock.scheduling.reply import Client, Handler, Reply
from foreblock.scheduling.thresholds import THRESHOLDS
from foreblock.server.answers import SHORT
from foreblock.server.backpressure import AHEAD_LIMIT
from support.each_case import each_case
from support.servers.in_loop import in_loop, turns
from support.servers.wire import Wire, answer, answers, echo, post

LONG = THRESHOLDS.long_bytes


class Slow:
    """A handler that answers `slow…` on command, and everything else immediately."""

    def __init__(self) -> None:
        self.waiting: list[tuple[bytes, asyncio.Future[Reply]]] = []

    def __call__(self, body: bytes, _: Client) -> Reply | Awaitable[Reply]:
        if not body.startswith(b"slow"):
            return echo(body)
        future = asyncio.get_running_loop().create_future()
        self.waiting.append((body, future))
        return future

    async def finish(self) -> None:
        body, future = self.waiting.pop(0)
        future.set_result(echo(body))
        await turns()


def texts(data: bytes) -> list[str]:
    return [each.text for each in answers(data)]


def test_answers_of_one_piece_are_written_at_once() -> None:
    wire = Wire(echo)
    wire.send(b"".join(post(b"%d" % number) for number in range(16)))
    assert len(wire.transport.written) == 1
    assert texts(wire.out) == [f"<{number}>" for number in range(16)]


@in_loop
async def test_slow_and_fast_answers_keep_the_order_of_requests() -> None:
    handler = Slow()
    wire = Wire(handler)
    sent = [b"a", b"slow1", b"b", b"slow2", b"slow3", b"c"]
    wire.send(b"".join(map(post, sent)))
    assert texts(wire.out) == ["<a>"]
    wire.send(post(b"d"))
    await handler.finish()
    assert texts(wire.out) == ["<a>", "<slow1>", "<b>"]
    await handler.finish()
    await handler.finish()
    assert texts(wire.out) == [f"<{body.decode()}>" for body in [*sent, b"d"]]
    assert answer(wire.send(post(b"e"))).text == "<e>"


@in_loop
async def test_slow_answer_to_a_known_head() -> None:
    handler = Slow()
    wire = Wire(handler)
    wire.send(post(b"fast1"))
    wire.send(post(b"slow1"))
    wire.send(post(b"fast2"))
    await handler.finish()
    assert texts(wire.out) == ["<fast1>", "<slow1>", "<fast2>"]


@in_loop
async def test_one_client_has_one_request_with_the_handler_at_a_time() -> None:
    handler = Slow()
    Wire(handler).send(b"".join(post(b"slow%d" % number) for number in range(5)))
    assert len(handler.waiting) == 1


@in_loop
async def test_many_requests_at_once_give_others_a_turn() -> None:
    wire = Wire(echo)
    other = Wire(echo, endpoint=wire.endpoint)
    count = THRESHOLDS.answered_requests * 2 + 3
    wire.send(b"".join(post(b"%d" % number) for number in range(count)))
    assert len(answers(wire.out)) == THRESHOLDS.answered_requests
    assert answer(other.send(post())).status == 200
    await turns()
    assert texts(wire.out) == [f"<{number}>" for number in range(count)]
    assert len(wire.transport.written) == 3


@in_loop
async def test_client_that_sends_far_ahead_is_not_read_until_it_has_its_answers() -> None:
    handler = Slow()
    wire = Wire(handler)
    wire.send(post(b"slow"))
    request, sent = post(b"x" * 900), 0
    while wire.transport.is_reading():
        wire.send(request)
        sent += 1
    assert sent == AHEAD_LIMIT // len(request) + 1
    await handler.finish()
    await turns()
    assert wire.transport.is_reading()
    assert len(answers(wire.out)) == sent + 1


@in_loop
async def test_client_that_does_not_read_is_neither_read_nor_answered() -> None:
    asked = []

    def large(body: bytes, _: Client) -> Reply:
        asked.append(body)
        return Reply(body * 1000)

    wire = Wire(large)
    wire.transport.client_reads = False
    wire.send(b"".join(post(b"x" * 990) for _ in range(10)))
    assert len(asked) == 1
    assert not wire.transport.is_reading()
    wire.transport.client_takes_all()
    await turns()
    assert len(answers(wire.out)) == 10
    assert wire.transport.is_reading()
    assert answer(wire.send(post(b"x"))).status == 200


@each_case("size", [0, 1, SHORT - 1, SHORT, LONG - 1, LONG, 10**6])
def test_answers_of_all_sizes_are_framed_alike(size: int) -> None:
    """First the slow path, then twice the fast path of a known head, then two at once."""
    wire = Wire(lambda *_: Reply(b"x" * size, b"Named: 1\r\n"))
    expected = (
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
        b"Date: Thu, 01 Jan 1970 00:00:00 GMT\r\nNamed: 1\r\n"
        b"Content-Length: %d\r\n\r\n" % size + b"x" * size
    )
    assert [wire.send(post()) for _ in range(3)] == [expected] * 3
    assert wire.send(post() * 2) == expected * 2


@in_loop
async def test_client_that_stops_reading_at_a_known_head_is_not_read() -> None:
    wire = Wire(lambda body, _: Reply(body * 1000))
    wire.send(post(b"x" * 100))
    wire.transport.client_reads = False
    wire.send(post(b"x" * 100))
    assert not wire.transport.is_reading()
    assert wire.send(post(b"x" * 100)) == b""
    wire.transport.client_takes_all()
    assert len(answers(wire.out)) == 3


@in_loop
async def test_request_of_a_client_that_went_away_is_cancelled() -> None:
    handler = Slow()
    wire = Wire(handler)
    wire.send(post(b"slow"))
    wire.transport.close()
    await turns()
    assert handler.waiting[0][1].cancelled()
    assert wire.out == b""


@in_loop
async def test_client_that_has_said_all_still_gets_the_answers_that_are_there() -> None:
    wire = Wire(lambda body, _: Reply(body * 1000))
    wire.transport.client_reads = False
    wire.send(post(b"first") + post(b"second"))
    wire.end()
    assert not wire.transport.is_closing()
    wire.transport.client_takes_all()
    assert texts(wire.out) == ["first" * 1000, "second" * 1000]
    assert wire.transport.is_closing()


@in_loop
async def test_client_that_closes_while_its_request_waits_is_taken_to_be_gone() -> None:
    handler = Slow()
    wire = Wire(handler)
    wire.send(post(b"slow") + post(b"fast"))
    wire.end()
    assert wire.transport.is_closing()
    await turns()
    assert handler.waiting[0][1].cancelled()


def test_client_that_leaves_within_a_request_is_let_go() -> None:
    wire = Wire(echo)
    wire.send(post()[:-1])
    wire.end()
    assert wire.transport.is_closing()
    assert wire.out == b""


def broken(_: bytes, __: Client) -> Reply:
    raise ValueError("a defect")


async def broken_later(_: bytes, __: Client) -> Reply:
    raise ValueError("a defect")


@pytest.mark.parametrize("handler", [broken, broken_later])
def test_handler_that_fails_costs_its_own_connection_only(
    handler: Handler, capsys: pytest.CaptureFixture[str]
) -> None:
    async def talk() -> None:
        wire = Wire(handler)
        wire.send(post())
        await turns()
        found = answer(wire.out)
        assert (found.status, found.text) == (500, "internal error\n")
        assert wire.over()

    asyncio.run(talk())
    assert "a defect" in capsys.readouterr().out


def test_handler_is_told_who_asks() -> None:
    """Requests of one connection have one client, those of two connections two."""
    asked: list[Client] = []

    def note(body: bytes, client: Client) -> Reply:
        asked.append(client)
        return echo(body)

    first = Wire(note)
    second = Wire(note, endpoint=first.endpoint)
    for wire in (first, first, second):
        wire.send(post())
    assert [client.address for client in asked] == ["192.0.2.1"] * 3
    assert asked[0] == asked[1] != asked[2]
    assert len(set(asked)) == 2
