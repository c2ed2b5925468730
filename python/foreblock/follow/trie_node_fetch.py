"""Trie nodes, and slots of accounts that have gone, from proofs of an upstream at one block.

A proof at a block needs the nodes on the way to its key, and the root of a block in progress those
on the way to all that it changed. What is not in the store is asked for at the sealed block that
the trie begins at. Nodes need no check: they are used where the trie has their hashes.

Rules before Cancun let a contract with storage go. Its slots that were not known then have the
values that they had at the anchor, at all blocks before; proofs of these have them, and no others.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from typing import Final

import msgspec
from msgspec import Raw

from foreblock.errors import (
    BadProof,
    MissedKeys,
    NotHere,
    NoUpstream,
    RefusedAnswer,
    TooMuchState,
    UntrueState,
    WaysMissing,
)
from foreblock.follow.keys import FoundProof
from foreblock.follow.requests import AskedProof, BlockAt, BlockForm
from foreblock.follow.responses import read_proof
from foreblock.ledger.reading.learned_state import LearnedState, prove_all
from foreblock.ledger.reading.view import Ledger
from foreblock.upstream.old_blocks import AskUpstream

MOST_WAYS: Final = 64  # accounts that one round asks for; each is a request
AT_ONCE: Final = 16

Keys = dict[bytes, set[int]]
KeysAt = Mapping[int, Keys]  # by the number of the block at which they are asked for


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
            of_block, slots = keys.setdefault(each.block, {}), each.misses.slots
            for address in each.misses.accounts:
                of_block.setdefault(address, set()).update(slots.get(address, ()))
        nodes: list[bytes] = []
        for _, proof in await self._proofs(keys, seconds):
            nodes += [*proof.nodes, *(node for each in proof.slots for node in each.nodes)]
        with closing(self._ledger.view()) as view:
            self._learned.put_nodes(view, nodes)

    async def fetch_slots(self, keys: KeysAt, seconds: float) -> None:
        """Know slots by proofs at these blocks. Raises as `fetch`, and `UntrueState`."""
        for place, proof in await self._proofs(keys, seconds):
            with closing(self._ledger.view()) as view:
                block = view.resolve(place.number)
                try:
                    values = prove_all([proof], [block.header.state_root])
                except BadProof as why:
                    raise UntrueState(str(why)) from None
                self._learned.learn(view, values, at=block)

    async def _proofs(self, keys: KeysAt, seconds: float) -> list[tuple[BlockAt, FoundProof]]:
        if sum(map(len, keys.values())) > MOST_WAYS:
            raise TooMuchState(f"the ways to more than {MOST_WAYS} accounts in a trie")
        asked = [
            self._proof(place, AskedProof(address, tuple(sorted(slots))))
            for number, of_block in keys.items()
            if (place := self._place(number)) is not None
            for address, slots in of_block.items()
        ]
        async with asyncio.timeout(seconds):
            return await asyncio.gather(*asked)

    def _place(self, number: int) -> BlockAt | None:
        """The block to ask at; none where the chain is another one by now."""
        with closing(self._ledger.view()) as view:
            try:
                block = view.resolve(number)
            except NotHere:
                return None
            return BlockAt(number, block.hash)

    async def _proof(self, place: BlockAt, asked: AskedProof) -> tuple[BlockAt, FoundProof]:
        async with self._places:
            return place, await proof_at(self._ask, asked, place)


def slots_before(missed: Sequence[MissedKeys]) -> KeysAt:
    """The slots of accounts that have gone since, by the blocks at which they had not."""
    keys: dict[int, Keys] = {}
    for each in missed:
        slots = each.slots
        for address, number in each.ended.items():
            of_block = keys.setdefault(number, {})
            of_block.setdefault(address, set()).update(slots.get(address, ()))
    return keys


async def proof_at(ask: AskUpstream, asked: AskedProof, block: BlockAt) -> FoundProof:
    """The proof of an account at a block, to be checked. Raises `UntrueState`, `NoUpstream`."""
    try:
        params = asked.params(block.parameter(BlockForm.HASH))
        text = await ask(asked.method, msgspec.json.encode(params))
    except NoUpstream:  # some take numbers only
        params = asked.params(block.parameter(BlockForm.NUMBER))
        text = await ask(asked.method, msgspec.json.encode(params))
    try:
        return read_proof(asked, Raw(text))
    except RefusedAnswer as why:
        raise UntrueState(str(why)) from None
