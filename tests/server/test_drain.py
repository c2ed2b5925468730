"""Draining: pending requests are answered, the last response announces the close, and it closes."""

import asyncio

from foreblock.scheduling.reply import Reply
from support.servers.wire import Wire, answer, answers, echo, post

QUIET = 1.0


def drain(wire: Wire) -> None:
    wire.endpoint.ticker.shorten_timeouts(QUIET)
    wire.connection.drain()


def test_next_answer_says_that_the_connection_closes() -> None:
    wire = Wire(echo)
    assert "connection" not in answer(wire.send(post())).headers
    drain(wire)
    found = answer(wire.send(post()))
    assert (found.status, found.headers["connection"]) == (200, "close")
    assert wire.over()


def test_kept_alive_in_http_1_0_is_no_longer_promised() -> None:
    wire = Wire(echo)
    drain(wire)
    lines = b"POST / HTTP/1.0\r\nConnection: keep-alive\r\nContent-Type: application/json\r\n"
    found = answer(wire.send(lines + b"Content-Length: 2\r\n\r\n{}"))
    assert found.headers["connection"] == "close"


def test_pipelined_requests_are_all_answered_and_the_last_closes() -> None:
    wire = Wire(echo)
    drain(wire)
    found = answers(wire.send(b"".join(post(b"%d" % number) for number in range(5))))
    assert [each.text for each in found] == [f"<{number}>" for number in range(5)]
    assert [each.headers.get("connection") for each in found] == [None] * 4 + ["close"]
    assert wire.over()


def test_request_that_has_begun_is_finished() -> None:
    wire = Wire(echo)
    request = post(b"body")
    wire.send(request[:30])
    drain(wire)
    wire.advance_seconds(QUIET * 2)
    assert not wire.over()
    found = answer(wire.send(request[30:]))
    assert (found.text, found.headers["connection"]) == ("<body>", "close")


def test_request_with_the_handler_is_finished() -> None:
    async def talk() -> None:
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        wire = Wire(lambda *_: future)
        wire.send(post())
        drain(wire)
        wire.advance_seconds(QUIET * 2)
        future.set_result(Reply(b"late"))
        await asyncio.sleep(0)
        found = answer(wire.out)
        assert (found.text, found.headers["connection"]) == ("late", "close")

    asyncio.run(talk())


def test_resting_connection_is_closed_after_a_moment() -> None:
    wire = Wire(echo)
    wire.advance_seconds(60)
    drain(wire)
    wire.advance_seconds(QUIET - 0.1)
    assert not wire.over()
    wire.advance_seconds(0.1)
    assert wire.over()
    assert wire.out == b""
