"""Ids of requests and of their traces, from clients: bound while the response is made."""

import asyncio
from collections.abc import Awaitable

import structlog

from foreblock.scheduling.reply import Client, Reply
from support.each_case import each_case
from support.servers.asking import ANYBODY
from support.servers.wire import Wire, answer, post


def bound() -> str:
    """The currently bound id."""
    return str(structlog.contextvars.get_contextvars().get("request_id", "none"))


def tell(body: bytes, _: Client) -> Reply:
    return Reply(b"%b:%b" % (body, bound().encode()))


def test_an_id_comes_back_and_is_that_of_its_request_only() -> None:
    client = Wire(tell)
    for name in (b"abc", b"b-1/2:3", b"x" * 128):
        found = answer(client.send(post(b"1", b"X-Request-Id: " + name)))
        assert found.headers["x-request-id"] == name.decode()
        assert found.text == f"1:{name.decode()}"
        plain = answer(client.send(post(b"2")))
        assert "x-request-id" not in plain.headers
        assert plain.text == "2:none"


def test_pipelined_requests_have_their_own_ids() -> None:
    out = Wire(tell).send(
        post(b"1", b"X-Request-Id: a") + post(b"2") + post(b"3", b"x-request-id: c")
    )
    assert [each in out for each in (b"1:a", b"2:none", b"3:c")] == [True] * 3


@each_case("wrong", [b"", b"x" * 129, b"two words", b"\xff\xfe", "é".encode()])
def test_what_is_no_id_is_ignored(wrong: bytes) -> None:
    found = answer(Wire(tell).send(post(b"1", b"X-Request-Id: " + wrong)))
    assert (found.status, found.text) == (200, "1:none")
    assert "x-request-id" not in found.headers


TRACE = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def traced(_: bytes, client: Client) -> Reply:
    found = structlog.contextvars.get_contextvars()
    assert found.get("traceparent", "") == client.traceparent
    return Reply(b"%b %b" % (bound().encode(), client.traceparent.encode()))


def test_the_trace_of_a_request_is_that_of_this_request_only() -> None:
    client = Wire(traced)
    for headers, text in (
        ([b"Traceparent: " + TRACE], "none " + TRACE.decode()),
        ([], "none "),
        ([b"traceparent: " + TRACE, b"X-Request-Id: a"], "a " + TRACE.decode()),
        ([b"X-Request-Id: a"], "a "),
    ):
        found = answer(client.send(post(b"1", *headers)))
        assert found.text == text
        assert "traceparent" not in found.headers


@each_case(
    "wrong", [TRACE[:-1], TRACE + b"-x", TRACE.upper(), b"ff" + TRACE[2:], b"", b"none",
              TRACE.replace(b"4bf92f3577b34da6a3ce929d0e0e4736", b"0" * 32),
              TRACE.replace(b"00f067aa0ba902b7", b"0" * 16)],
)  # fmt: skip
def test_what_is_no_trace_is_ignored(wrong: bytes) -> None:
    assert answer(Wire(traced).send(post(b"1", b"traceparent: " + wrong))).text == "none "


def test_heads_with_ids_are_not_cached() -> None:
    client = Wire(tell)
    for number in range(3):
        client.send(post(b"1", b"X-Request-Id: %d" % number))
        client.send(post(b"1", b"traceparent: " + TRACE))
    assert len(client.endpoint.heads) == 0
    client.send(post(b"1"))
    assert len(client.endpoint.heads) == 1


def test_requests_behind_one_that_waits_do_not_have_its_id() -> None:
    async def scene() -> bytes:
        async def later(body: bytes) -> Reply:
            await asyncio.sleep(0)
            return tell(body, ANYBODY)

        client = Wire(lambda body, _: later(body) if body == b"1" else tell(body, ANYBODY))
        client.send(post(b"1", b"X-Request-Id: one") + post(b"2") + post(b"1") + post(b"3"))
        for _ in range(20):  # turns of the loop
            await asyncio.sleep(0)
        return client.out

    out = asyncio.run(scene())
    assert [each in out for each in (b"1:one", b"2:none", b"1:none", b"3:none")] == [True] * 4


def test_an_id_is_known_while_the_answer_is_waited_for() -> None:
    async def scene() -> bytes:
        go_on = asyncio.Event()

        async def later(body: bytes) -> Reply:
            await go_on.wait()
            return Reply(b"%b:%b" % (body, bound().encode()))

        def handle(body: bytes, _: Client) -> Awaitable[Reply]:
            return later(body)

        clients = [Wire(handle), Wire(handle)]
        clients[0].send(post(b"1", b"X-Request-Id: one"))
        clients[1].send(post(b"2"))
        await asyncio.sleep(0)
        go_on.set()
        for _ in range(5):  # turns of the loop
            await asyncio.sleep(0)
        return clients[0].out + clients[1].out

    out = asyncio.run(scene())
    assert b"1:one" in out
    assert b"2:none" in out
