import asyncio
from typing import Any

from msgspec import Raw

from foreblock.rpc.batch import Limits
from foreblock.scheduling.admission import WorkerBudget
from foreblock.scheduling.reply import Reply
from support.servers.asking import ANYBODY
from support.servers.long_work import thresholds
from support.servers.toys import ToyContext, Toys, call, parse


def batch(*bodies: bytes) -> bytes:
    return b"[%b]" % b",".join(bodies)


def test_answers_come_in_the_order_of_the_requests() -> None:
    answer = parse(Toys().answer(batch(*(call("echo", f"[{n}]", str(n)) for n in range(50)))))
    assert [(each["id"], each["result"]) for each in answer] == [(n, [n]) for n in range(50)]


def test_order_holds_when_some_take_longer() -> None:
    bodies = [call("later" if n % 3 else "echo", f"[{n}]", str(n)) for n in range(20)]
    answer = parse(asyncio.run(Toys().answer_later(batch(*bodies))))
    assert [(each["id"], each["result"]) for each in answer] == [(n, [n]) for n in range(20)]


def test_all_requests_of_a_batch_share_one_context() -> None:
    toys = Toys()
    bodies = batch(call("context"), call("later"), call("context"), call("what"), call("context"))
    answer = parse(asyncio.run(toys.answer_later(bodies)))
    assert [context.closed for context in toys.contexts] == [1]
    assert {answer[index]["result"] for index in (0, 2, 4)} == {toys.contexts[0].number}


def test_bad_item_harms_nobody_else() -> None:
    answer = parse(
        Toys().answer(
            b'[1, "x", null, [], {}, {"jsonrpc":"2.0","id":{},"method":"echo"},'
            b'{"jsonrpc":"2.0","id":5,"method":6},' + call("echo", "[9]", "9") + b"]"
        )
    )
    assert [each.get("error", {}).get("code") for each in answer] == [-32600] * 7 + [None]
    assert [each["id"] for each in answer] == [None] * 6 + [5, 9]
    assert answer[7]["result"] == [9]


def test_notifications_of_a_batch_are_not_answered() -> None:
    toys = Toys()
    silent = b'{"jsonrpc":"2.0","method":"echo","params":[1]}'
    answer = parse(toys.answer(batch(silent, call("echo", "[2]"), silent)))
    assert [each["result"] for each in answer] == [[2]]
    assert toys.ran == [b"[1]", b"[2]", b"[1]"]


def test_batch_of_notifications_has_an_empty_answer() -> None:
    assert Toys().answer(batch(b'{"jsonrpc":"2.0","method":"echo"}')).body == b""


def test_batch_in_a_batch_is_no_request() -> None:
    answer = parse(Toys().answer(b"[[]]"))
    assert answer[0]["error"] == {"code": -32600, "message": "invalid request"}


def test_too_many_items_are_refused_with_the_id_of_the_first_call() -> None:
    toys = Toys(Limits(batch_items=2))
    silent = b'{"jsonrpc":"2.0","method":"echo"}'
    answer = parse(toys.answer(batch(silent, b"5", call("echo", "[]", "7"), call("echo"))))
    assert answer == [
        {"jsonrpc": "2.0", "id": 7, "error": {"code": -32600, "message": "batch too large"}}
    ]
    assert toys.ran == []


def test_as_many_items_as_allowed_are_answered() -> None:
    assert len(parse(Toys(Limits(batch_items=2)).answer(batch(call("echo"), call("echo"))))) == 2


def test_answers_beyond_the_limit_of_bytes_are_refused_and_what_was_answered_stays() -> None:
    toys = Toys(Limits(batch_bytes=100))
    silent = b'{"jsonrpc":"2.0","method":"echo"}'
    large = call("echo", '["' + "x" * 100 + '"]')
    answer = parse(toys.answer(batch(call("echo"), large, call("echo", "[]", "3"), silent)))
    assert answer[1]["result"] == ["x" * 100]
    assert answer[2:] == [
        {"jsonrpc": "2.0", "id": 3, "error": {"code": -32003, "message": "response too large"}}
    ]
    assert len(toys.ran) == 2


def test_requests_after_the_time_of_a_batch_are_refused() -> None:
    toys = Toys(Limits(batch_seconds=3, slice_seconds=100))
    answer = parse(toys.answer(batch(call("slow", "[2]"), call("slow", "[2]"), call("echo"))))
    assert [each.get("error") for each in answer] == [
        None,
        None,
        {"code": -32002, "message": "request timed out"},
    ]


def test_limits_hold_for_what_was_waited_for() -> None:
    large = call("later", '["' + "x" * 100 + '"]')
    answer = parse(
        asyncio.run(Toys(Limits(batch_bytes=100)).answer_later(batch(large, call("echo"))))
    )
    assert answer[0]["result"] == ["x" * 100]
    assert answer[1]["error"] == {"code": -32003, "message": "response too large"}


def test_time_runs_while_waiting() -> None:
    toys = Toys(Limits(batch_seconds=3, slice_seconds=100))
    answer = parse(asyncio.run(toys.answer_later(batch(call("slow_later", "[4]"), call("echo")))))
    assert answer[0]["result"] == [4]
    assert answer[1]["error"] == {"code": -32002, "message": "request timed out"}
    assert toys.ran == [b"[4]"]


def test_long_batch_lets_others_run() -> None:
    toys = Toys(Limits(slice_seconds=0.002))
    order: list[str] = []

    async def beside() -> Reply:
        task = asyncio.ensure_future(toys.answer_later(batch(*[call("slow", "[0.003]")] * 3)))
        await asyncio.sleep(0)
        order.append(f"others after {len(toys.ran)}")
        return await task

    assert len(parse(asyncio.run(beside()))) == 3
    assert order == ["others after 1"]


def test_short_batch_needs_no_coroutine() -> None:
    assert isinstance(Toys().dispatcher.answer(batch(call("echo"), call("echo")), ANYBODY), Reply)


def test_slow_batch_closes_its_context_once() -> None:
    toys = Toys(Limits(slice_seconds=0.002))
    asyncio.run(toys.answer_later(batch(*[call("slow", "[0.003]")] * 3)))
    assert [context.closed for context in toys.contexts] == [1]


class BegunBefore(Toys):
    """Records how many requests had begun when each one ended."""

    def echo(self, context: ToyContext, params: Raw) -> bytes:
        self.counts.append(len(self.begun))
        return super().echo(context, params)

    counts: list[int]


def begun_before(*bodies: bytes) -> tuple[list[Any], BegunBefore]:
    toys = BegunBefore()
    toys.counts = []
    answer = parse(asyncio.run(toys.answer_later(batch(*bodies))))
    return answer, toys


def test_requests_that_can_be_awaited_together_are_begun_in_order_before_the_first_ends() -> None:
    answer, toys = begun_before(*(call("in_order", f"[{n}]", str(n)) for n in range(20)))
    assert [(each["id"], each["result"]) for each in answer] == [(n, [n]) for n in range(20)]
    assert toys.begun == [b"[%d]" % n for n in range(20)]
    assert toys.counts == [20] * 20


def test_no_more_are_begun_at_once_than_a_slice_can_begin() -> None:
    with thresholds(awaited_together=8):
        answer, toys = begun_before(*(call("in_order", f"[{n}]", str(n)) for n in range(20)))
    assert [each["result"] for each in answer] == [[n] for n in range(20)]
    assert toys.counts == [8] * 8 + [16] * 8 + [20] * 4


def test_what_comes_after_them_is_begun_when_they_have_ended() -> None:
    names = ["in_order", "in_order", "later", "in_order", "echo", "in_order", "fail_later", "what"]
    bodies = [call(name, f"[{n}]", str(n)) for n, name in enumerate(names)]
    answer, toys = begun_before(*bodies)
    assert [each["id"] for each in answer] == list(range(8))
    assert [each.get("result") for each in answer] == [[n] for n in range(6)] + [None, None]
    assert toys.begun == [b"[0]", b"[1]", b"[3]", b"[5]"]
    assert toys.ran.index(b"[2]") > toys.ran.index(b"[1]")


def test_a_result_is_freed_before_the_next_one_is_awaited() -> None:
    toys = Toys()
    answer = parse(asyncio.run(toys.answer_later(batch(*[call("outcome")] * 3))))
    assert [each["result"] for each in answer] == [1, 1, 1]
    assert toys.alive == [0, 0, 0]


def test_requests_that_cannot_wait_are_not_begun() -> None:
    toys = Toys(budget=WorkerBudget(0))
    reply = toys.answer(batch(*(call("in_order", f"[{n}]", str(n)) for n in range(3))))
    assert all("error" in each for each in parse(reply))
    assert not toys.begun
