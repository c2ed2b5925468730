import asyncio

import pytest

from foreblock.rpc.batch import Limits
from foreblock.rpc.dispatch import Dispatcher
from foreblock.scheduling.reply import Client, Reply
from support.each_case import each_case
from support.servers.asking import ANYBODY
from support.servers.toys import ToyContext, Toys, call, parse


def notification(method: str, params: str = "[]") -> bytes:
    return f'{{"jsonrpc":"2.0","method":"{method}","params":{params}}}'.encode()


def test_answer_carries_the_headers_of_its_context() -> None:
    toys = Toys()
    reply = toys.answer(call("context"))
    assert reply.headers == toys.contexts[0].headers
    assert parse(reply)["result"] == toys.contexts[0].number


@each_case("body", [call("echo"), call("fail", '["no"]'), call("what"),
                                  notification("echo"), b"[%b]" % call("echo")])  # fmt: skip
def test_one_context_is_opened_and_closed_once(body: bytes) -> None:
    toys = Toys()
    toys.answer(body)
    assert [context.closed for context in toys.contexts] == [1]


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", call("echo", "[]", "{}")])
def test_what_is_no_request_opens_no_context(body: bytes) -> None:
    toys = Toys()
    assert toys.answer(body).headers == b""
    assert toys.contexts == []


def test_notification_runs_and_is_not_answered() -> None:
    toys = Toys()
    assert toys.answer(notification("echo", "[5]")).body == b""
    assert toys.ran == [b"[5]"]


@pytest.mark.parametrize("body", [notification("what"), notification("fail", '["no"]')])
def test_notification_is_not_told_of_errors(body: bytes) -> None:
    assert Toys().answer(body).body == b""


def test_null_id_is_a_call() -> None:
    assert (
        Toys().answer(call("echo", "[]", "null")).body == b'{"jsonrpc":"2.0","id":null,"result":[]}'
    )


def test_what_takes_long_keeps_its_context_until_it_is_done() -> None:
    toys = Toys()
    reply = asyncio.run(toys.answer_later(call("later", "[7]")))
    assert parse(reply) == {"jsonrpc": "2.0", "id": 1, "result": [7]}
    assert reply.headers == toys.contexts[0].headers
    assert toys.contexts[0].closed == 1


def test_what_fails_later_is_answered_and_closed() -> None:
    toys = Toys()
    reply = asyncio.run(toys.answer_later(call("fail_later", '["no"]')))
    assert parse(reply)["error"] == {"code": -32000, "message": "no"}
    assert toys.contexts[0].closed == 1


def test_notification_that_takes_long_is_not_answered() -> None:
    toys = Toys()
    assert asyncio.run(toys.answer_later(notification("later", "[7]"))).body == b""
    assert toys.ran == [b"[7]"]


def test_who_stops_waiting_closes_the_context() -> None:
    toys = Toys()

    async def give_up() -> None:
        waiting = asyncio.Event()

        async def forever() -> bytes:
            waiting.set()
            await asyncio.Event().wait()
            return b"null"

        dispatcher = Dispatcher(
            {"forever": lambda _, __: forever()}, toys.open, toys.fault, Limits()
        )
        reply = dispatcher.answer(call("forever"), ANYBODY)
        assert not isinstance(reply, Reply)
        task = asyncio.ensure_future(reply)
        await waiting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(give_up())
    assert toys.contexts[0].closed == 1


def no_context(_: Client) -> ToyContext:
    raise OSError("no store")


@pytest.mark.parametrize("body", [call("echo"), call("what"), b"[%b]" % call("echo")])
def test_context_that_cannot_be_opened_is_an_error_like_any_other(body: bytes) -> None:
    dispatcher = Dispatcher({"echo": Toys().echo}, no_context, Toys.fault, Limits())
    reply = dispatcher.answer(body, ANYBODY)
    assert isinstance(reply, Reply)
    answer = parse(reply)
    answer = answer[0] if isinstance(answer, list) else answer
    assert answer["error"] == {"code": -32000, "message": "no store"}


@each_case("body", [call("echo", "[1]"), call("fail", '["no"]'), call("what"),
                                  call("later", "[1]"), call("fail_later", '["no"]')])  # fmt: skip
def test_usual_request_is_answered_as_in_a_batch(body: bytes) -> None:
    """The fast path and the slow path give the same bytes."""

    async def both() -> tuple[bytes, bytes]:
        replies = []
        for each in (body, b"[%b]" % body):
            reply = Toys().dispatcher.answer(each, ANYBODY)
            replies.append(reply if isinstance(reply, Reply) else await reply)
        return replies[0].body, replies[1].body

    alone, batched = asyncio.run(both())
    assert b"[%b]" % alone == batched
