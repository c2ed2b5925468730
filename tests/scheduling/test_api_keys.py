"""Budgets of API keys, against a bucket that is counted step by step; weights; priorities."""

import asyncio
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from foreblock.scheduling.admission import WorkerBudget
from foreblock.scheduling.api_keys import ApiKey, KeySpec, MethodWeights, own_cell
from foreblock.scheduling.fair_queue import FairQueue, Priority, WorkSlots
from foreblock.scheduling.reply import Client
from support.each_case import each_case

WEIGHTS = MethodWeights()


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def spec(units: float = 10, burst: float = 20, priority: Priority = Priority.NORMAL) -> KeySpec:
    return KeySpec("a", b"digest", units, burst, priority)


STEPS = st.lists(
    st.tuples(st.integers(0, 64), st.integers(1, 30), st.booleans()), min_size=1, max_size=60
)


@given(STEPS, st.sampled_from([1, 2, 8, 64]), st.integers(1, 50))
def test_two_workers_admit_what_one_bucket_admits(
    steps: list[tuple[int, int, bool]], units: int, burst: int
) -> None:
    """Times are 64ths of a second and rates powers of two, so that nothing is rounded."""
    clock, cell = Clock(), own_cell()
    workers = [ApiKey(spec(units, burst), WEIGHTS, cell, clock=clock) for _ in range(2)]
    left = Fraction(burst)
    for ticks, cost, second in steps:
        clock.now += ticks / 64
        left = min(Fraction(burst), left + Fraction(ticks * units, 64))
        key = workers[second]
        assert (key.wait() <= 0) is (left >= 1)
        assert key.wait() <= 0 or Fraction(key.wait()) == (1 - left) / units
        if key.wait() <= 0:
            key.spend(cost)
            left -= cost


def test_a_change_keeps_what_was_spent() -> None:
    clock = Clock()
    key = ApiKey(spec(10, 10), WEIGHTS, own_cell(), clock=clock)
    key.spend(110)
    assert key.wait() > 10
    key.change(spec(100, 100), MethodWeights({"eth_call": 7}))
    assert 9 < key.wait() < 11
    assert key.weights.of("eth_call") == 7
    clock.now += 10.1
    assert key.wait() <= 0


@each_case(
    ("method", "units"),
    [("eth_getBalance", 1), ("eth_call", 2), ("eth_simulateV1", 20), ("debug_traceCall", 50),
     ("trace_block", 50), ("ots_getTransactionBySenderAndNonce", 20), ("nothing", 1), ("", 1),
     ("debug", 50), ("rpc.discover", 20)],
)  # fmt: skip
def test_methods_have_weights(method: str, units: float) -> None:
    assert WEIGHTS.of(method) == units


def test_given_weights_take_precedence() -> None:
    given_weights = MethodWeights({"debug_*": 9, "debug_traceCall": 3, "eth_*": 4})
    names = ("debug_traceCall", "debug_other", "eth_getBalance", "eth_call", "net_version")
    assert list(map(given_weights.of, names)) == [3, 9, 4, 2, 1]


def test_a_key_takes_turns_as_one_client_and_anonymous_ones_do_not() -> None:
    client = Client("192.0.2.1", 7)
    key = ApiKey(spec(priority=Priority.LOW), WEIGHTS, own_cell())
    assert key.client(client) == Client("key a", 7, Priority.LOW)
    anonymous = ApiKey(KeySpec("anonymous", b"", 1, 1), WEIGHTS, own_cell())
    assert anonymous.client(client) == client


def test_slices_and_slots_go_to_higher_priorities_first() -> None:
    async def scene() -> tuple[list[str], list[str]]:
        queue, sliced = FairQueue(), list[str]()
        slots, placed = WorkSlots(1), list[str]()
        assert slots.try_acquire()

        async def work(priority: Priority, number: int) -> None:
            await queue.wait(priority)
            sliced.append(f"{priority.name} {number}")

        async def place(priority: Priority, number: int) -> None:
            await slots.wait(Client(f"{number}", number, priority))
            placed.append(f"{priority.name} {number}")
            slots.release()

        order = [Priority.LOW, Priority.NORMAL, Priority.HIGH, Priority.LOW, Priority.HIGH]
        tasks = [asyncio.ensure_future(work(each, n)) for n, each in enumerate(order)]
        tasks += [asyncio.ensure_future(place(each, n)) for n, each in enumerate(order)]
        await asyncio.sleep(0)
        assert queue.length == len(order)
        slots.release()
        await asyncio.gather(*tasks)
        return sliced, placed

    expected = ["HIGH 2", "HIGH 4", "NORMAL 1", "LOW 0", "LOW 3"]
    assert asyncio.run(scene()) == (expected, expected)


def test_low_priorities_leave_waiting_requests_to_others() -> None:
    budget = WorkerBudget(waits=8)
    low, normal = (budget.waits_of(each) for each in (Priority.LOW, Priority.NORMAL))
    taken = [low.lease() for _ in range(4)]
    assert None not in taken
    assert low.lease() is None
    taken += [normal.lease() for _ in range(4)]
    assert None not in taken
    assert normal.lease() is None
    del taken[:]
    assert budget.waits.left == 8
    assert low.lease() is not None
