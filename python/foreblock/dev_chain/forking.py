"""A fork of another chain in the process: its state and its history, fetched while a request waits.

The requests are made on the thread of the fork, so the loop of a request has nothing to wait for.
"""

import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

from msgspec import Raw

from foreblock.bus.messages import CallUpstream, GetState
from foreblock.clock import SECOND_NS, SystemClock
from foreblock.dev_chain.driven_loop import finish
from foreblock.errors import ErrorAnswer, NoUpstream, Reverted, StateMissing
from foreblock.follow.pre_anchor import VerifiedHistory
from foreblock.follow.prediction import PredictedCalls, call_hints, predicted_keys
from foreblock.follow.worker_state import FetchBudget, WorkerState
from foreblock.fork.forked_chain import Fork
from foreblock.fork.history import HINTED_ROUND, ForkedHistory, block_of, reading_settings
from foreblock.ledger.reading.view import Ledger
from foreblock.methods.table import MethodFunction
from foreblock.primitives import parse_data
from foreblock.rpc.fetching_dispatcher import Missed
from foreblock.sources.dev_network import ForkedBase
from foreblock.types import revert_reason

REVERTED: Final = 3  # the code of a call that reverted


class LocalFork:
    """Reads of one chain beyond its store."""

    def __init__(self, current: Callable[[], ForkedBase | None], ledger: Ledger) -> None:
        """`current` is the fork, which a command may replace."""
        self._current: Final = current
        settings, fork = reading_settings(self._fork.settings), self._fork
        self.state: Final = WorkerState(
            ledger,
            settings,
            self._find,
            hint=partial(call_hints, self._ask, block=block_of(fork.header)),
            ask_upstream=self._ask,
            predict=partial(predicted_keys, PredictedCalls(ledger)),
            shared=fork.learned,
            hinted_round=HINTED_ROUND,
        )
        self._blocks: Final = VerifiedHistory(
            ledger, self.state, self._ask, believes=True, only_below=True
        )
        self._passed: Final = ForkedHistory(self._pass_on_for_client)

    @property
    def _fork(self) -> Fork:
        fork = self._current()
        assert isinstance(fork, Fork), "the chain began as a fork"
        return fork

    def add(self, methods: dict[str, MethodFunction]) -> None:
        """Make methods of this table reach below the fork."""
        self._passed.add(methods)
        self._blocks.add(methods)  # what can be verified is not only passed on

    def fetch(self, budget: FetchBudget, method: str, params: bytes, why: StateMissing) -> None:
        """Fetch what a request has missed. Raises `ForeblockError`."""
        _wait(budget.fetch([Missed(method, Raw(params), why)]))

    async def _find(self, epoch: int, keys: bytes, seconds: float) -> bytes:
        return self._fork.state.answer(GetState(epoch, keys), _deadline_ns(seconds)).result()

    async def _ask(self, method: str, params: bytes) -> bytes:
        try:
            return await self._pass_on(method, params)
        except ErrorAnswer as error:
            raise NoUpstream(str(error), 1) from None

    async def _pass_on_for_client(self, method: str, params: bytes) -> bytes:
        try:
            return await self._pass_on(method, params)
        except ErrorAnswer as error:
            if error.code != REVERTED:
                raise
            output = parse_data(error.data or "0x")
            raise Reverted(output, revert_reason(output)) from None

    async def _pass_on(self, method: str, params: bytes) -> bytes:
        return self._fork.state.answer(CallUpstream(method, params)).result()


def _deadline_ns(seconds: float) -> int:
    return SystemClock().monotonic_ns() + int(seconds * SECOND_NS)


def _wait(work: Awaitable[Any]) -> None:
    """Wait for work whose pauses are of real time."""
    finish(work, SystemClock(), lambda nanoseconds: time.sleep(nanoseconds / SECOND_NS))
