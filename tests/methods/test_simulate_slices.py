"""How long simulations and long calls block the loop, counted in work instead of time.

The pace in these tests expires at every check, so that steps stop wherever others may have their
turn; the work between two stops is counted.
"""

import asyncio
import gc
import inspect
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from abuse.simulations import EXCESSES
from foreblock.ledger.reading.view import Ledger
from foreblock.methods.calls.simulate_methods import text_pieces
from foreblock.scheduling.steps import Pace, Steps
from foreblock.scheduling.thresholds import THRESHOLDS
from foreblock.service.network_views import Service, make_scheduler
from foreblock.settings import Dialect, Settings
from support.servers.asking import ANYBODY


class Over(Pace):
    """A pace that always yields to others."""

    def is_over(self) -> bool:
        return True


def longest(steps: Steps[Any], done: Callable[[], int]) -> tuple[int, Any]:
    """The maximum work between two stops, and the result of the steps."""
    stops = [done()]
    try:
        while True:
            assert next(steps) is None, "nothing here is heavy"
            stops.append(done())
    except StopIteration as ended:
        stops.append(done())
        return max(after - before for before, after in pairwise(stops)), ended.value


def test_an_answer_is_written_in_pieces() -> None:
    class Text:
        left = 20 * THRESHOLDS.piece_bytes + 5

        def take(self, size: int) -> bytes:
            size = min(size, self.left)
            self.left -= size
            return b"x" * size

    text: Any = Text()
    begun = text.left
    most, pieces = longest(text_pieces(text, Over()), lambda: begun - text.left)
    assert sum(map(len, pieces)) == begun
    assert most <= THRESHOLDS.piece_bytes


@pytest.mark.parametrize("scale", [0.25, pytest.param(1.0, marks=pytest.mark.heavy)])
@pytest.mark.parametrize("dialect", ["preconf", "ethereum"])
@pytest.mark.parametrize(
    "name", ["many_calls", "one_long_block", "slots", "accounts", "long_output", "call_overrides"]
)
def test_no_round_of_the_loop_has_all_the_work(
    long_ledger: Ledger, dialect: Dialect, name: str, scale: float
) -> None:
    """Compare the processor time of each round of the loop; a slice is 2 ms.

    If the virtual machine stands still, one round seems long, but not the same one each time.
    """
    options = Settings(dialect=dialect)
    body = EXCESSES[name](scale).body
    for _ in range(3):
        scheduler = make_scheduler(options)
        rounds = rounds_of(Service(long_ledger, options, scheduler), body)
        scheduler.close()
        if max(rounds) < max(0.25 * sum(rounds), 0.01):
            return
    pytest.fail(f"{max(rounds)} of {sum(rounds)} s in one round")


def rounds_of(service: Service, body: bytes) -> list[float]:
    """The time of each round of the loop until a request is answered."""
    rounds: list[float] = []

    async def watch() -> None:
        answer = service.answer(body, ANYBODY)
        assert inspect.isawaitable(answer)
        running = asyncio.ensure_future(answer)
        begun = time.thread_time()
        while not running.done():
            await asyncio.sleep(0)
            rounds.append(time.thread_time() - begun)
            begun = time.thread_time()

    gc.collect()
    gc.disable()  # it would traverse the objects of all previous tests
    try:
        asyncio.run(watch())
    finally:
        gc.enable()
    return rounds
