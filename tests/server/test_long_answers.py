"""Long responses: written in portions, counted while they are held, released."""

import asyncio
from collections.abc import Awaitable
from itertools import pairwise

import pytest

from foreblock.scheduling.admission import LongText, WorkerBudget
from foreblock.scheduling.reply import Client, Reply
from foreblock.scheduling.thresholds import THRESHOLDS
from support.servers.in_loop import in_loop, turns
from support.servers.wire import Wire, answers, echo, endpoint_for, post

LONG = THRESHOLDS.long_bytes
PORTION = THRESHOLDS.piece_bytes


def texts(data: bytes) -> list[str]:
    return [each.text for each in answers(data)]


class InPieces:
    """A handler that responds later, with the requested number of portions."""

    def __init__(self, budget: WorkerBudget) -> None:
        self.budget = budget

    def __call__(self, body: bytes, _: Client) -> Awaitable[Reply]:
        async def answer() -> Reply:
            return Reply(b"[", rest=LongText(self.budget, (*portions(int(body)), b"]")))

        return answer()


def portions(count: int) -> list[bytes]:
    """This many pieces, each as long as one write and different from the others."""
    return [b"%d" % (number % 10) * PORTION for number in range(count)]


def in_pieces() -> tuple[Wire, WorkerBudget]:
    """A client of a worker with budget for a hundred portions."""
    budget = WorkerBudget(limit=100 * PORTION)
    handler = InPieces(budget)
    return Wire(handler, endpoint=endpoint_for(handler, budget=budget)), budget


def text_of(count: int) -> str:
    return b"".join((b"[", *portions(count), b"]")).decode()


@in_loop
async def test_a_long_answer_gives_others_a_turn() -> None:
    wire, _ = in_pieces()
    count = 10 * THRESHOLDS.written_pieces
    wire.send(post(b"%d" % count) + post(b"1"))
    written = [0]
    while len(wire.transport.written) <= count:
        await asyncio.sleep(0)
        written.append(len(wire.transport.written))
    assert max(after - before for before, after in pairwise(written)) <= THRESHOLDS.written_pieces
    await turns()
    assert texts(wire.out) == [text_of(count), text_of(1)]


@in_loop
async def test_a_long_answer_waits_for_a_client_that_does_not_read() -> None:
    """Waiting bytes are counted, one portion at a time is written, and the order is kept."""
    wire, budget = in_pieces()
    wire.transport.client_reads = False
    wire.send(post(b"10") + post(b"3"))
    await turns()
    assert len(wire.transport.written) == 1
    for left in range(9, 0, -1):
        wire.transport.client_takes(wire.transport.stuck)
        assert budget.held == left * PORTION + 1
    wire.transport.client_takes_all()
    await turns()
    assert texts(wire.out) == [text_of(10), text_of(3)]
    assert budget.held == 0


@in_loop
async def test_a_long_answer_may_be_the_last() -> None:
    wire, budget = in_pieces()
    wire.send(post(b"30", b"Connection: close"))
    for _ in range(20):
        await turns()
    assert texts(wire.out) == [text_of(30)]
    assert wire.transport.ended
    assert budget.held == 0


@in_loop
async def test_a_client_that_goes_away_gives_back_what_it_held() -> None:
    wire, budget = in_pieces()
    wire.transport.client_reads = False
    wire.send(post(b"10"))
    await turns()
    assert budget.held == 10 * PORTION + 1
    wire.transport.close()
    assert budget.held == 0


@in_loop
async def test_a_client_that_is_gone_before_its_answer_holds_nothing() -> None:
    wire, budget = in_pieces()
    wire.send(post(b"10"))
    wire.transport.close()
    await turns()
    assert budget.held == 0
    assert wire.out == b""


@in_loop
async def test_unread_short_answers_are_counted_and_go_out_without_room() -> None:
    budget = WorkerBudget(limit=1000)
    endpoint = endpoint_for(lambda *_: Reply(b"x" * 900), budget=budget)
    wires = [Wire(echo, endpoint=endpoint) for _ in range(3)]
    for wire in wires:
        wire.transport.client_reads = False
        wire.send(post())
    assert budget.held == sum(len(wire.out) for wire in wires)
    assert not any(wire.transport.aborted for wire in wires)
    for wire in wires:
        wire.transport.client_takes_all()
    assert budget.held == 0


@in_loop
async def test_a_long_answer_that_was_not_counted_ends_its_connection_if_there_is_no_room() -> None:
    """For example one from the engine's fast path."""
    budget = WorkerBudget(limit=3 * LONG)
    endpoint = endpoint_for(lambda *_: Reply(b"x" * (2 * LONG)), budget=budget)
    wires = [Wire(echo, endpoint=endpoint) for _ in range(3)]
    for wire in wires:
        wire.transport.client_reads = False
        wire.send(post())
    assert [wire.transport.aborted for wire in wires] == [False, True, True]
    assert budget.held == len(wires[0].out)


@pytest.mark.parametrize("patient", [False, True])
def test_an_answer_that_is_written_whole_is_counted_as_far_as_it_is_not_sent(
    *, patient: bool
) -> None:
    asyncio.run(count_what_is_unsent(patient=patient))


async def count_what_is_unsent(*, patient: bool) -> None:
    """Count unsent bytes: none if the system accepts them, otherwise all pieces until they are
    sent.
    """
    budget = WorkerBudget(limit=100 * PORTION)
    pieces = [b"[", b"1" * (LONG - 2000), b"]"]
    endpoint = endpoint_for(lambda *_: Reply(b"", rest=pieces), budget=budget)
    wires = [Wire(echo, endpoint=endpoint) for _ in range(2)]
    for wire in wires:
        wire.transport.patient = patient
    for wire in wires:  # the second request takes the fast path of known heads
        wire.send(post())
        wire.send(post())
    assert budget.held == 0
    for wire in wires:
        wire.transport.client_reads = False
        wire.send(post())
        wire.send(post())
        assert budget.held == LONG - 1998, "what several are sent is held once"
    for wire in wires:
        wire.transport.client_takes_all()
        await turns()
        wire.transport.client_takes_all()
        assert texts(wire.out) == [b"".join(pieces).decode()] * 4
    assert budget.held == 0


@in_loop
async def test_an_answer_that_is_written_whole_may_be_the_last() -> None:
    budget = WorkerBudget()
    wire = Wire(
        echo, endpoint=endpoint_for(lambda *_: Reply(b"", rest=[b"1", b"2"]), budget=budget)
    )
    wire.send(post(b"", b"Connection: close"))
    assert texts(wire.out) == ["12"]
    assert wire.transport.ended
