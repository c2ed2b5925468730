"""Trie nodes that proofs and roots of a worker miss, taken from proofs of an upstream.

A proof at a block needs the nodes on the way to its key, and the root of a block in progress those
on the way to all that it changed. What is not in the store is asked for at the sealed block that
the trie begins at. Nodes need no check: they are used where the trie has their hashes.
"""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import Final

from foreblock.errors import NotHere, TooMuchState, WaysMissing
from foreblock.ledger.reading.learned_state import LearnedState
from foreblock.ledger.reading.view import Ledger
from foreblock.upstream.asked import AskedProof, BlockAt
from foreblock.upstream.old_blocks import AskUpstream, proof_at

MOST_WAYS: Final = 64  # accounts that one round asks for; each is a request
AT_ONCE: Final = 16

Keys = dict[bytes, set[int]]


class FetchedWays:
    """Asks the upstreams of one network."""

    def __init__(self, ledger: Ledger, learned: LearnedState, ask: AskUpstream) -> None:
        self._ledger: Final = ledger
        self._learned: Final = learned
        self._ask: Final = ask
        self._places: Final = asyncio.Semaphore(AT_ONCE)

    async def fetch(self, missing: Iterable[WaysMissing], seconds: float) -> None:
        """Know the nodes on these ways. Raises `EndpointError`, `TooMuchState`, `TimeoutError`."""
        keys: dict[int, Keys] = {}
        for each in missing:
            of_block = keys.setdefault(each.block, {})
            for address in each.misses.accounts:
                of_block.setdefault(address, set()).update(each.misses.slots.get(address, ()))
        if sum(map(len, keys.values())) > MOST_WAYS:
            raise TooMuchState(f"the ways to more than {MOST_WAYS} accounts in a trie")
        asked = [
            self._nodes(place, AskedProof(address, tuple(sorted(slots))))
            for number, of_block in keys.items()
            if (place := self._place(number)) is not None
            for address, slots in of_block.items()
        ]
        async with asyncio.timeout(seconds):
            found = await asyncio.gather(*asked)
        with closing(self._ledger.view()) as view:
            self._learned.put_nodes(view, [node for nodes in found for node in nodes])

    def _place(self, number: int) -> BlockAt | None:
        """The block to ask at; none where the chain is another one by now."""
        with closing(self._ledger.view()) as view:
            try:
                block = view.resolve(number)
            except NotHere:
                return None
            return BlockAt(number, block.hash)

    async def _nodes(self, place: BlockAt, asked: AskedProof) -> Sequence[bytes]:
        async with self._places:
            proof = await proof_at(self._ask, asked, place)
        return [*proof.nodes, *(node for each in proof.slots for node in each.nodes)]
