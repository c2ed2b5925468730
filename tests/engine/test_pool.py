"""The threads for long calls, as seen from Python."""

import select
import selectors
from collections.abc import Callable
from pathlib import Path

import pytest

from foreblock._engine import Outcome, Pool, Store
from foreblock.errors import (
    DeadlineExceeded,
    ExecutionFailed,
    InvalidArgument,
    InvalidMessage,
    PoolFull,
    StoreClosed,
)
from support.each_case import each_case
from support.payloads.small_store import ALICE, CONTRACT, append, env, message, with_code, word

ENDLESS = "5b600056"
ANSWER = "602a60005260206000f3"  # returns 42


def results(pool: Pool, count: int) -> dict[int, Outcome | Exception]:
    """Wait for the next results, as an event loop does."""
    found: dict[int, Outcome | Exception] = {}
    with selectors.DefaultSelector() as selector:
        selector.register(pool, selectors.EVENT_READ)
        while len(found) < count:
            selector.select()
            found.update((number, value) for number, value, _ in pool.take())
    return found


def readable(pool: Pool) -> bool:
    return bool(select.select([pool], [], [], 0)[0])


def waiting(pool: Pool) -> int:
    return pool.waiting


def submit_endless(pool: Pool, number: int, timeout_us: int | None = None) -> None:
    pool.submit(number, with_code(ENDLESS), env(), message(gas=2**63), timeout_us=timeout_us)


def test_results_come_with_their_ids_and_wake_a_selector() -> None:
    pool = Pool(threads=2, capacity=100)
    assert (pool.take(), readable(pool), pool.waiting) == ([], False, 0)
    for number in range(50):
        pool.submit(number, with_code(ANSWER), env(), message())
    found = results(pool, 50)
    assert sorted(found) == list(range(50))
    for outcome in found.values():
        assert isinstance(outcome, Outcome)
        assert (outcome.status, outcome.output) == ("success", word(42))
    assert (pool.take(), readable(pool)) == ([], False)


def test_what_prevented_an_outcome_is_its_result() -> None:
    pool = Pool(threads=1, capacity=10, nice=0)
    submit_endless(pool, 2**64 - 1, timeout_us=1000)
    pool.submit(7, with_code(""), env(), message(value=2**255))
    pool.submit(8, with_code("fe"), env(), message())
    pool.submit(9, with_code(""), env(), message(gas=2**60), check_block_gas_limit=True)
    found = results(pool, 4)
    assert isinstance(found[2**64 - 1], DeadlineExceeded)
    assert isinstance(found[7], InvalidMessage)
    assert isinstance(found[9], InvalidMessage)
    halted = found[8]
    assert isinstance(halted, Outcome)
    assert halted.status == "halt"


def test_full_pool_refuses_at_once() -> None:
    pool = Pool(threads=1, capacity=2)
    submit_endless(pool, 0)
    while waiting(pool) > 0:
        pass  # until the thread has begun
    submit_endless(pool, 1)
    submit_endless(pool, 2)
    assert waiting(pool) == 2
    with pytest.raises(PoolFull) as full:
        submit_endless(pool, 3)
    assert full.value.waiting == 2
    assert pool.take() == []
    del pool  # cancels running tasks and drops waiting ones


def test_pool_without_room_to_wait_refuses_what_it_cannot_begin() -> None:
    pool = Pool(threads=1, capacity=0)
    submit_endless(pool, 0)
    with pytest.raises(PoolFull):
        submit_endless(pool, 1)


def test_overlay_is_given_away() -> None:
    pool, overlay = Pool(threads=1, capacity=1), with_code(ANSWER)
    pool.submit(1, overlay, env(), message())
    attempts: list[Callable[[], object]] = [
        lambda: overlay.account(ALICE),
        lambda: overlay.call(env(), message()),
        lambda: overlay.set(ALICE, balance=1),
    ]
    for attempt in attempts:
        with pytest.raises(ExecutionFailed, match="without a state"):
            attempt()
    assert isinstance(results(pool, 1)[1], Outcome)


def test_call_whose_view_is_closed_says_so(tmp_path: Path) -> None:
    pool = Pool(threads=1, capacity=2)
    with Store(str(tmp_path / "store"), write=True) as store:
        append(store, lambda overlay: overlay.set(CONTRACT, code=bytes.fromhex(ANSWER)))
        view = store.view()
        first, second = view.state(0).overlay(), view.state(0).overlay()
        pool.submit(1, first, env(), message())
        assert isinstance(results(pool, 1)[1], Outcome)
        view.close()
        pool.submit(2, second, env(), message())
        assert isinstance(results(pool, 1)[2], StoreClosed)


@each_case(
    ("threads", "capacity", "nice"),
    [
        (0, 1, 10),
        (1025, 1, 10),
        (2**64 - 1, 1, 10),
        (2**64, 1, 10),
        (-1, 1, 10),
        (1, -1, 10),
        (1, 1, 20),
        (1, 1, -1),
        (1, 1, 2**40),
    ],
)
def test_absurd_pools_are_invalid(threads: int, capacity: int, nice: int) -> None:
    with pytest.raises(InvalidArgument):
        Pool(threads=threads, capacity=capacity, nice=nice)
