"""Keep the state roots of a followed chain computed, one block after the other, behind its head.

Most nodes that a root needs come with the proofs of fetched state. The rest is requested: paths to
keys that were learned long ago, and, where something was deleted, the node beside it, by the proof
that the key is absent after the block or by a key that leads there. Nothing waits for them; if they
cannot be fetched, a proof reports what is missing.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from foreblock.backoff import Backoff, Waits
from foreblock.errors import EndpointError, NotHere, NoUpstream, StoreClosed
from foreblock.ledger.following.missing_state import MissingNodes
from foreblock.ledger.following.roots_behind import DueRoot, ProofsNeeded, RootsBehind
from foreblock.status.network_status import RootStatus
from foreblock.types import Header

log = structlog.get_logger()

PAUSE: Final = 0.2  # seconds between two checks
WAITS: Final = Waits(2 * PAUSE, 5.0)  # after proofs could not be fetched
MOST_ROUNDS: Final = 8  # of proofs for one block

FindNodes = Callable[[MissingNodes, int], Awaitable[list[bytes]]]  # of an epoch; `EndpointError`


class FollowedRoots:
    """The roots of one network; works on its loop, and computes on a thread."""

    def __init__(
        self,
        name: str,
        roots: Callable[[], RootsBehind],
        find: FindNodes,
        differs: Callable[[Header, str], Awaitable[None]],
    ) -> None:
        """`differs` receives a block whose computed root differs from its header."""
        self._name: Final = name
        self._roots: Final = roots
        self._find: Final = find
        self.differs: Final = differs
        self._last = 0  # block whose root was computed
        self._computed = 0
        self._requested = 0  # accounts whose proofs were requested
        self._refused = 0  # times that proofs could not be had

    def status(self) -> RootStatus:
        return RootStatus(self._computed, self._last, self._requested, self._refused)

    async def keep(self) -> None:
        """Compute roots until cancelled."""
        pause, backoff = PAUSE, Backoff(WAITS)
        while True:
            await asyncio.sleep(pause)
            try:
                while await self.compute_next():
                    pass
                backoff.succeeded()
                pause = PAUSE
            except EndpointError:
                self._refused += 1
                pause = backoff.after()
            except NotHere:
                backoff.succeeded()
                pause = PAUSE  # a reorg has removed the block, or it was pruned
            except StoreClosed:
                return

    async def compute_next(self) -> bool:
        """Compute the next root; false if none is due. Raises `EndpointError`, `NotHere`."""
        roots = self._roots()
        due = await asyncio.to_thread(roots.due)
        if due is None:
            return False
        nodes: list[bytes] = []
        for _ in range(MOST_ROUNDS):
            outcome = await asyncio.to_thread(roots.compute, due, nodes)
            if outcome.difference:
                number = due.header.number
                log.error("root_differs", network=self._name, block=number, why=outcome.difference)
                await self.differs(due.header, outcome.difference)
                return False
            if not outcome.needed:
                self._computed += 1
                self._last = due.header.number
                return True
            nodes += await self._nodes(due, outcome.needed)
            self._requested += len(outcome.needed.before) or len(outcome.needed.after)
        raise NoUpstream("the nodes of proofs do not fit", 1)

    async def _nodes(self, due: DueRoot, needed: ProofsNeeded) -> list[bytes]:
        """The nodes of the proofs that a root needs. Raises `EndpointError`."""
        parent, header = due.parent, due.header
        if needed.before:
            return await self._find(MissingNodes.at(parent, needed.before), due.epoch)
        try:
            return await self._find(MissingNodes.at(header, needed.after), due.epoch)
        except EndpointError:
            preimages = await asyncio.to_thread(needed.preimages_for_paths)
            if preimages is None:
                raise
            return await self._find(MissingNodes.at(parent, preimages), due.epoch)
