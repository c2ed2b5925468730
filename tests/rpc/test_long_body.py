"""Bodies that are read in slices: the same outcomes, and bounded work per slice."""

import asyncio
import json
from itertools import pairwise
from typing import Any

import pytest

from abuse.fuzzing import bodies
from foreblock.rpc.batch import Limits
from foreblock.rpc.envelope import Asked, Item, Malformed, read, read_usual
from foreblock.rpc.long_body import Portions, read_long
from foreblock.scheduling.reply import Reply
from foreblock.scheduling.thresholds import THRESHOLDS
from support.each_case import each_case
from support.servers.long_work import thresholds
from support.servers.toys import Toys, call, parse
from support.strategies.requests_strategy import MALFORMED

LONG = THRESHOLDS.long_body_bytes
STRETCH = THRESHOLDS.stretch_bytes
SPACE = b" " * LONG


def finish(body: bytes, most: int = 1000) -> Item | list[Item]:
    reading = read_long(body, most)
    try:
        while True:
            next(reading)
    except StopIteration as done:
        found: Item | list[Item] = done.value
        return found


def shown(found: Item | list[Item]) -> Any:  # noqa: ANN401, values to be compared
    """The read body as comparable values."""
    if isinstance(found, list):
        return [shown(each) for each in found]
    if isinstance(found, Malformed):
        return found.fault, bytes(found.id)
    return asked(found)


def asked(found: Asked) -> Any:  # noqa: ANN401, the same
    request, opening = found
    return request.method, bytes(request.id), bytes(request.params), opening


def agrees(body: bytes) -> bool:
    return bool(shown(finish(body)) == shown(read_usual(body) or read(body, 1000)))


@each_case("name", MALFORMED)
def test_what_is_wrong_with_a_long_body_is_said_as_of_a_short_one(name: str) -> None:
    body, _ = MALFORMED[name]
    assert agrees(body)


def test_what_is_read_does_not_depend_on_the_way() -> None:
    """Every kind of body, cut into stretches of a few bytes, some of which count as long."""
    with thresholds(stretch_bytes=7, long_part_bytes=19):
        wrong = [body for body in bodies(5, 3000) if not agrees(body)]
    assert not wrong


def test_a_long_body_is_answered_as_a_short_one() -> None:
    text = "x" * LONG
    body = call("echo", json.dumps([text]))
    answer = parse(asyncio.run(Toys().answer_later(body)))
    assert answer == {"jsonrpc": "2.0", "id": 1, "result": [text]}
    batch = b"[" + SPACE + call("echo", "[1]") + b"," + call("later", "[2]", "2") + b"]"
    answers = json.loads(asyncio.run(Toys().answer_later(batch)).body)
    assert [each["result"] for each in answers] == [[1], [2]]


def test_of_too_large_a_batch_no_more_is_read_than_tells_so() -> None:
    body = b"[" + b'{"jsonrpc":"2.0","id":7,"method":"echo"},' * 100_000 + b"this is no JSON"
    found = finish(body, most=10)
    assert isinstance(found, list)
    assert 10 < len(found) < 1000
    answer = asyncio.run(Toys(Limits(batch_items=10)).answer_later(body))
    assert json.loads(answer.body)[0]["error"]["message"] == "batch too large"


@each_case(
    "body",
    [
        call("echo", "[" + "{}," * 100_000 + "{}]"),
        call("echo", json.dumps(["5b" * 200_000])),
        b"[" + call("echo", json.dumps({str(key): "" for key in range(30_000)})) + b"]",
        SPACE * 4 + call("echo") + SPACE * 4,
        b'{"more":' + b"[" * 900 + b"1," * 100_000 + b"1" + b"]" * 900 + b"," + call("echo")[1:],
    ],
    ids=["many items", "a long text", "a long item of a batch", "space", "an unknown member"],
)
def test_others_may_go_on_after_every_stretch(body: bytes) -> None:
    steps = sum(1 for _ in read_long(body, 1000))
    assert steps >= len(body.strip()) // STRETCH


def test_slices_end_when_the_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock advances with every reading: no slice has more than two stretches."""
    toys = Toys()
    limits = Limits()
    turns: list[int] = []
    reads = 0

    original = Portions.next_portion

    def next_portion(self: Portions) -> Any:  # noqa: ANN401, as it is
        nonlocal reads
        reads += 1
        return original(self)

    monkeypatch.setattr(Portions, "next_portion", next_portion)
    toys.step = limits.slice_seconds / 2
    body = call("echo", json.dumps(["x" * 40 * STRETCH]))

    async def watch() -> Reply:
        reply = asyncio.ensure_future(toys.answer_later(body))
        while not reply.done():
            turns.append(reads)
            await asyncio.sleep(0)
        return await reply

    asyncio.run(watch())
    assert reads >= 40
    assert max(after - before for before, after in pairwise(turns)) <= 2
