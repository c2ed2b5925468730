"""Long responses are kept in pieces, and their total size is bounded."""

import asyncio

import pytest

from foreblock.rpc.batch import Limits
from foreblock.scheduling.admission import WorkerBudget
from foreblock.scheduling.reply import Reply
from foreblock.scheduling.thresholds import THRESHOLDS
from support.servers.asking import ANYBODY, body_of
from support.servers.in_loop import turns
from support.servers.toys import Toys, call, parse

LONG = THRESHOLDS.long_bytes

SIZE = LONG + 2  # length of the text of a long result


def unsent(budget: WorkerBudget) -> dict[str, object]:
    return {"code": -32000, "message": f"too many unsent response bytes (limit {budget.limit})"}


def batch(*calls: bytes) -> bytes:
    return b"[" + b",".join(calls) + b"]"


def ask(toys: Toys, body: bytes) -> Reply:
    async def answer() -> Reply:
        reply = toys.dispatcher.answer(body, ANYBODY)
        return reply if isinstance(reply, Reply) else await reply

    return asyncio.run(answer())


@pytest.mark.parametrize("method", ["long", "long_later"])
@pytest.mark.parametrize("form", ["%b", "[%b]"])
def test_a_long_text_is_not_copied(method: str, form: str) -> None:
    """Neither for a single request nor in a batch: the sent piece is the text itself."""
    toys = Toys()
    reply = ask(toys, form.replace("%b", call(method, "[1]").decode()).encode())
    assert any(piece is toys.long_texts[1] for piece in reply.take_pieces())


def test_a_batch_of_short_and_long_answers_is_what_each_would_be_alone() -> None:
    toys = Toys()
    calls = [
        call("echo", "[1]", "1"), call("echo", "[2]", "2"), call("long", "[0]", "3"),
        call("long_later", "[1]", "4"), call("what", "[]", "5"), call("long", "[0]", "6"), b"7",
        call("later", "[8]", "8"), b'{"jsonrpc":"2.0","method":"long","params":[0]}',
    ]  # fmt: skip
    alone = [body_of(ask(toys, each)) for each in calls]
    reply = ask(toys, batch(*calls))
    size = reply.size
    found = body_of(reply)
    assert found == batch(*filter(None, alone))
    assert len(found) == size


def test_many_short_answers_become_a_long_one() -> None:
    budget = WorkerBudget()
    toys = Toys(budget=budget)
    body = batch(*[call("echo", '["%s"]' % ("x" * 1000))] * 200)
    reply = ask(toys, body)
    assert reply.size > 200_000
    assert reply.size - budget.held < 10, "equal commas are one piece"
    assert max(map(len, reply.take_pieces())) < LONG + 2000
    reply = ask(toys, body)
    assert len(parse(reply)) == 200
    del reply
    assert budget.held == 0


def test_few_short_answers_stay_one_text_and_are_not_counted() -> None:
    budget = WorkerBudget()
    reply = ask(Toys(budget=budget), batch(*[call("echo")] * 100))
    assert reply.rest is None
    assert budget.held == 0


@pytest.mark.parametrize("method", ["long", "long_later"])
def test_a_long_answer_is_refused_where_there_is_no_room(method: str) -> None:
    budget = WorkerBudget(limit=SIZE + 100)
    toys = Toys(budget=budget)
    held = ask(toys, call(method, "[0]"))
    assert parse(ask(toys, call(method, "[1]")))["error"] == unsent(budget)
    assert parse(ask(toys, call("echo", "[1]")))["result"] == [1], "short ones go out"
    assert [context.closed for context in toys.contexts] == [1, 1, 1]
    del held
    assert "result" in parse(ask(toys, call(method, "[1]")))
    assert budget.held == 0


@pytest.mark.parametrize("method", ["long", "long_later"])
def test_a_batch_is_refused_from_where_there_is_no_room(method: str) -> None:
    budget = WorkerBudget(limit=2 * SIZE + 300)
    toys = Toys(budget=budget)
    calls = [call(method, f"[{number}]", str(number)) for number in range(3)]
    answers = parse(ask(toys, batch(*calls, call("echo", "[]", "3"))))
    assert ["result" in answer for answer in answers] == [True, True, False, False]
    assert [answer["error"] for answer in answers[2:]] == [unsent(budget)] * 2
    assert [answer["id"] for answer in answers] == [0, 1, 2, 3]
    assert budget.held == 0


def test_short_answers_of_a_batch_are_refused_as_well_once_they_are_many() -> None:
    budget = WorkerBudget(limit=100_000)
    body = batch(*[call("echo", '["%s"]' % ("x" * 1000))] * 200)
    answers = parse(ask(Toys(budget=budget), body))
    good = [answer for answer in answers if "result" in answer]
    assert len(answers) == 200
    assert 60 < len(good) < 140
    assert all(answer["error"] == unsent(budget) for answer in answers[len(good) :])


def test_a_batch_that_is_cancelled_holds_nothing() -> None:
    budget = WorkerBudget()
    toys = Toys(Limits(slice_seconds=0.0), budget)

    async def give_up() -> None:
        task = asyncio.ensure_future(toys.answer_later(batch(*[call("long", "[0]")] * 1000)))
        await turns()
        assert budget.held
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(give_up())
    assert budget.held == 0
    assert budget.waits.left == budget.waits.total
