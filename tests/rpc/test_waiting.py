"""The number of waiting requests is bounded; a request beyond it is refused immediately."""

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest

from foreblock.rpc.batch import Limits
from foreblock.rpc.dispatch import Dispatcher
from foreblock.scheduling.admission import WorkerBudget
from foreblock.scheduling.reply import Reply
from foreblock.scheduling.thresholds import THRESHOLDS
from support.servers.asking import ANYBODY
from support.servers.toys import Toys, call, parse

# A coroutine that is neither awaited nor closed would warn.
pytestmark = pytest.mark.filterwarnings("error")

CROWDED = {"code": -32000, "message": "too many requests are waiting (2)"}
LONG_BODY = THRESHOLDS.long_body_bytes
LONG_CALL = call("echo", '["%s"]' % ("x" * LONG_BODY))


def batch(*calls: bytes) -> bytes:
    return b"[" + b",".join(calls) + b"]"


def full() -> tuple[Toys, list[Awaitable[Reply]]]:
    """A service with two places, both occupied by waiting requests."""
    toys = Toys(Limits(slice_seconds=0.002), WorkerBudget(waits=2))
    waiting = [toys.dispatcher.answer(call("later", "[5]"), ANYBODY) for _ in range(2)]
    return toys, [each for each in waiting if not isinstance(each, Reply)]


async def finish(waiting: list[Awaitable[Reply]]) -> list[Any]:
    return [parse(await each)["result"] for each in waiting]


def test_beyond_the_places_a_request_is_refused_at_once() -> None:
    toys, waiting = full()
    assert parse(toys.answer(call("later")))["error"] == CROWDED
    assert [context.closed for context in toys.contexts] == [0, 0, 1]
    assert toys.ran == []
    assert asyncio.run(finish(waiting)) == [[5], [5]]


def test_what_needs_no_waiting_is_answered_all_the_same() -> None:
    toys, waiting = full()
    assert parse(toys.answer(call("echo", "[1]")))["result"] == [1]
    assert len(parse(toys.answer(batch(call("echo"), call("echo"))))) == 2
    asyncio.run(finish(waiting))


def test_an_answer_makes_a_place_free() -> None:
    toys, waiting = full()
    asyncio.run(finish(waiting))
    assert parse(asyncio.run(toys.answer_later(call("later", "[6]"))))["result"] == [6]


def test_a_request_that_is_never_begun_gives_its_place_back() -> None:
    async def ask() -> None:
        toys, budget = Toys(), WorkerBudget(waits=1)
        never = asyncio.get_running_loop().create_future()
        dispatcher = Dispatcher(
            {"wait": lambda *_: never}, toys.open, toys.fault, Limits(), budget=budget
        )
        reply = dispatcher.answer(call("wait"), ANYBODY)
        assert budget.waits.left == 0
        reply.close()  # type: ignore[union-attr] # a coroutine, as the loop drops it
        del reply
        assert budget.waits.left == 1

    asyncio.run(ask())


def test_a_batch_keeps_what_was_answered_and_the_rest_is_refused() -> None:
    toys, waiting = full()
    body = batch(
        call("echo", "[1]", "1"), call("later", "[]", "2"), call("echo", "[3]", "3"), b"{}"
    )
    answers = parse(toys.answer(body))
    assert answers[0]["result"] == [1]
    assert [answer["id"] for answer in answers] == [1, 2, 3, None]
    assert [answer["error"] for answer in answers[1:]] == [CROWDED] * 3
    assert toys.contexts[-1].closed == 1
    asyncio.run(finish(waiting))


def test_a_batch_that_would_have_to_let_others_run_waits_as_well() -> None:
    toys, waiting = full()
    answers = parse(toys.answer(batch(*[call("slow", "[0.003]")] * 3)))
    assert [answer.get("error") for answer in answers] == [None, CROWDED, CROWDED]
    assert toys.contexts[-1].closed == 1
    asyncio.run(finish(waiting))


def test_a_batch_has_one_place_for_all_its_requests() -> None:
    toys = Toys(budget=WorkerBudget(waits=1))
    body = batch(*[call("later", "[4]")] * 3)
    answers = parse(asyncio.run(toys.answer_later(body)))
    assert [answer["result"] for answer in answers] == [[4]] * 3


def test_a_long_body_takes_a_place_and_no_context_before_it_is_read() -> None:
    async def ask() -> None:
        budget = WorkerBudget(waits=1)
        toys = Toys(budget=budget)
        task = asyncio.ensure_future(toys.answer_later(LONG_CALL))
        await asyncio.sleep(0)
        assert toys.contexts == []
        assert parse(toys.answer(call("later")))["error"]["message"].startswith("too many")
        assert parse(toys.answer(LONG_CALL))["id"] is None, "its id was not searched for"
        assert len(toys.contexts) == 1
        assert len(parse(await task)["result"][0]) == LONG_BODY
        assert budget.waits.left == 1

    asyncio.run(ask())
