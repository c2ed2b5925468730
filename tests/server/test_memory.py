"""Slow clients are dropped when memory is short, and memory is returned after a burst."""

import gc
from dataclasses import dataclass

from foreblock.scheduling.admission import LongText, WorkerBudget
from foreblock.scheduling.reply import Reply
from foreblock.server.backpressure import STEADY
from foreblock.server.memory import CALM_SECONDS, KEPT, SLOW_SECONDS, FreedMemory, MemoryPressure
from foreblock.server.process import spare_from_collection
from support.servers.wire import Wire, echo, endpoint_for, post

MEBI = 2**20


@dataclass
class Holder:
    """A connection that holds this much, with a client that has been slow for this long."""

    held: int
    slow_seconds: int = SLOW_SECONDS
    aborted: bool = False

    def abort(self) -> None:
        self.aborted = True


def relieve(budget: WorkerBudget, holders: list[Holder]) -> list[bool]:
    MemoryPressure(budget, FreedMemory(lambda: 0, lambda: None, lambda: 0)).relieve(holders)
    return [each.aborted for each in holders]


def full(*, wanted: bool) -> tuple[WorkerBudget, LongText]:
    budget = WorkerBudget(limit=100)
    text = LongText(budget, [b"x" * 100])
    budget.wanted = wanted
    return budget, text


def test_nobody_is_ended_while_nobody_wants_room() -> None:
    budget, _text = full(wanted=False)
    assert relieve(budget, [Holder(100)]) == [False]


def test_the_largest_of_the_slow_go_until_a_quarter_is_free() -> None:
    budget, _text = full(wanted=True)
    holders = [Holder(10), Holder(50, slow_seconds=SLOW_SECONDS - 1), Holder(15), Holder(12)]
    assert relieve(budget, holders) == [False, False, True, True]
    assert not budget.wanted
    assert relieve(budget, [Holder(10)]) == [False]


def test_a_connection_tells_for_how_long_its_client_is_slow() -> None:
    size = 20 * STEADY
    endpoint = endpoint_for(lambda *_: Reply(b"x" * size))
    wire = Wire(echo, endpoint=endpoint)
    wire.transport.client_reads = False
    wire.send(post())
    head = wire.connection.held - size
    assert 0 < head < 1000
    wire.advance_seconds(1)
    assert wire.connection.slow_seconds == 1
    wire.transport.client_takes(STEADY)
    wire.advance_seconds(1)
    assert wire.connection.slow_seconds == 0
    assert wire.connection.held == size + head - STEADY
    wire.transport.client_takes(STEADY - 1)
    wire.advance_seconds(1)
    wire.advance_seconds(1)
    assert wire.connection.slow_seconds == 2
    wire.transport.client_takes_all()
    assert (wire.connection.slow_seconds, wire.connection.held) == (0, 0)


class Process:
    """The memory of a process, partly free, and the number of returns to the system."""

    def __init__(self) -> None:
        self.used = 100 * MEBI
        self.free = 0
        self.returned = 0  # free, and not resident
        self.given_back = 0
        self.freed = FreedMemory(
            lambda: self.used + self.free, self.give_back, lambda: self.free + self.returned
        )

    def give_back(self) -> None:
        self.returned += self.free
        self.free = 0
        self.given_back += 1

    def seconds(self, count: int, held: int = 0) -> int:
        for _ in range(count):
            self.freed.observe(held)
        return self.given_back


def test_what_a_burst_leaves_free_is_given_back_once_it_is_over() -> None:
    process = Process()
    process.used += 200 * MEBI
    assert process.seconds(10, held=200 * MEBI) == 0
    process.used, process.free = 100 * MEBI, 200 * MEBI
    assert process.seconds(CALM_SECONDS) == 0
    assert process.seconds(1) == 1
    assert process.seconds(100) == 1


def test_nothing_is_given_back_while_it_still_grows() -> None:
    process = Process()
    for _ in range(20):
        process.free += 10 * MEBI
        assert process.seconds(1) == 0
    assert process.seconds(CALM_SECONDS) == 1


def test_what_is_used_is_not_tried_to_be_given_back_again_and_again() -> None:
    process = Process()
    process.used += 2 * KEPT
    assert process.seconds(100) == 1


def test_what_was_in_use_while_the_process_was_calm_is_given_back_once_it_is_free() -> None:
    process = Process()
    process.used += 400 * MEBI
    assert process.seconds(CALM_SECONDS + 1) == 1
    process.used, process.free = 100 * MEBI, 400 * MEBI
    process.seconds(3)
    assert process.free == 0
    assert process.seconds(100) == 2
    process.used, process.returned = 500 * MEBI, 0  # the same again, in returned memory
    process.seconds(CALM_SECONDS + 1)
    process.used, process.free = 100 * MEBI, 400 * MEBI
    process.seconds(3)
    assert process.free == 0


def test_memory_that_is_free_now_and_then_is_not_given_back() -> None:
    process = Process()
    process.used += 400 * MEBI
    assert process.seconds(CALM_SECONDS + 1) == 1
    for _ in range(20):
        process.used, process.free = 300 * MEBI, 200 * MEBI
        process.seconds(1)
        process.used, process.free = 500 * MEBI, 0
        process.seconds(1)
    assert process.given_back == 1


def test_a_little_is_kept() -> None:
    process = Process()
    process.free = KEPT - 1
    assert process.seconds(100) == 0


def test_objects_of_the_start_are_not_looked_at_by_later_collections() -> None:
    made: list[list[object]] = [[] for _ in range(1_000)]
    before = gc.get_freeze_count()  # objects that the tests have frozen themselves
    assert any(each is made for each in gc.get_objects())
    spare_from_collection()
    assert gc.get_freeze_count() >= before + len(made)
    assert not any(each is made for each in gc.get_objects())
