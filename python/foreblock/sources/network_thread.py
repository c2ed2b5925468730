"""The networks of the writer process: the calls that workers send them, and their threads.

The engine's work and every commit of a network happen on one thread of its own, so that one
network's disk never delays another network, and its source needs no locks. The loop waits for
that thread and talks to workers.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from foreblock.bus.messages import (
    BusRequest,
    CallUpstream,
    Committed,
    GetState,
    PoolNumbers,
    PoolQuery,
    Submit,
    ToWorker,
)
from foreblock.errors import NoUpstream, RefusedCommand
from foreblock.status.network_status import SourceStatus

T = TypeVar("T")


class RunningNetwork(ABC):
    """A network that was opened. Unless a class says otherwise, it refuses every call."""

    def on_call(self, request: BusRequest) -> None:
        """Reply to a call of a worker, on the loop, now or later."""
        match request.call.body:
            case Submit():
                self.submit(request)
            case PoolQuery():
                self.query_pool(request)
            case GetState() | CallUpstream():
                self.fetch(request)
            case _:
                self.execute(request)

    def submit(self, request: BusRequest) -> None:
        """Refuse a transaction: the network has no sequencer."""
        request.refuse()

    def query_pool(self, request: BusRequest) -> None:
        """Reply that the pool is empty: the network has none."""
        request.finish(PoolNumbers())

    def fetch(self, request: BusRequest) -> None:
        """Refuse to fetch state: the network has no upstreams."""
        request.fail(NoUpstream("the chain is not followed at the moment", 1))

    def execute(self, request: BusRequest) -> None:
        """Refuse a command."""
        request.fail(RefusedCommand("only a development chain can be changed"))

    def hints(self) -> Iterator[ToWorker]:
        """The hints for a worker that has just connected."""
        yield from ()

    async def status(self) -> SourceStatus | None:
        """The status of the source; None if there is nothing to report.

        Called once a second while the network runs, so it also makes the checks that are due. An
        exception is a failure of the network.
        """
        return None

    def announced_nonce(self, sender: bytes) -> int:  # noqa: ARG002, there is no pool
        """The next nonce of a sender that workers got last; 0 if none."""
        return 0

    @abstractmethod
    def stop(self) -> None:
        """End after the current commit."""

    @abstractmethod
    async def run(self) -> None:
        """Run until `stop` is called."""

    @abstractmethod
    async def close(self) -> None:
        """Close the store and end the thread."""


class NetworkThread:
    """The thread of one network. It announces the commits that its work makes."""

    def __init__(
        self,
        network: str,
        broadcast: Callable[[ToWorker], None],
        executor: ThreadPoolExecutor | None = None,
        announced: int = 0,
    ) -> None:
        """`executor` has one thread. `broadcast` reaches all workers, on the loop.

        The commit `announced` is not announced again.
        """
        self._network: Final = network
        self._broadcast: Final = broadcast
        self._executor: Final = executor or ThreadPoolExecutor(1, f"foreblock-{network}")
        self._announced = announced
        # The number of the last commit; a source replaces this.
        self.last_commit: Callable[[], int] = lambda: announced

    async def run(self, work: Callable[[], T]) -> T:
        """Run this on the thread, then announce what it committed."""
        done = await asyncio.get_running_loop().run_in_executor(self._executor, work)
        self.announce_commit()
        return done

    def announce_commit(self) -> None:
        """Announce the last commit if it is new."""
        commit = self.last_commit()
        if self._announced != commit:
            self._announced = commit
            self._broadcast(Committed(self._network, commit))

    async def open(self, open_source: Callable[[], T]) -> T:
        """Run this on the thread, and end the thread if it fails."""
        try:
            return await self.run(open_source)
        except BaseException:
            self._executor.shutdown()
            raise

    async def close(self, close_source: Callable[[], None]) -> None:
        """Run this on the thread, and end the thread even if it fails."""
        try:
            await self.run(close_source)
        finally:
            self._executor.shutdown()
