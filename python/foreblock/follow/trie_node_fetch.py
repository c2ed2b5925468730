"""Fetch trie nodes, and slots of deleted accounts, from proofs of an upstream at one block.

A proof at a block needs the nodes on the path to its key, and the root of a block in progress those
on the paths to all that it changed. Missing nodes are requested at the sealed block that the trie
begins at. Nodes need no check: they are used where the trie has their hashes.

Rules before Cancun can delete a contract with storage. Its slots that were unknown then have the
values of the anchor at all earlier blocks; only proofs of those blocks have them.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from typing import Final

import msgspec
from msgspec import Raw

from foreblock.errors import (
    BadProof,
    InvalidProofData,
    MissingTrieNodes,
    NotHere,
    NoUpstream,
    RefusedAnswer,
    TooMuchState,
)
from foreblock.follow.fetch_result import ClaimedProof
from foreblock.follow.learned_state import KnownValues, LearnedState
from foreblock.follow.requests import BlockAt, BlockForm, GetProof
from foreblock.follow.responses import read_proof
from foreblock.ledger.reading.view import Ledger
from foreblock.types import MissingKeys
from foreblock.upstream.old_blocks import AskUpstream

MOST_PATHS: Final = 64  # accounts that one round asks for; each is a request
AT_ONCE: Final = 16

Keys = dict[bytes, set[int]]
KeysAt = Mapping[int, Keys]  # by the number of the block at which they are asked for


class TrieNodeFetcher:
    """Asks the upstreams of one network."""

    def __init__(self, ledger: Ledger, learned: LearnedState, ask: AskUpstream) -> None:
        self._ledger: Final = ledger
        self._learned: Final = learned
        self._ask: Final = ask
        self._places: Final = asyncio.Semaphore(AT_ONCE)

    async def fetch(self, missing: Iterable[MissingTrieNodes], seconds: float) -> None:
        """Fetch the nodes on these paths.

        Raises `EndpointError`, `TooMuchState`, `TimeoutError`.
        """
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
        """Know slots by proofs at these blocks. Raises as `fetch`, and `InvalidProofData`."""
        for place, proof in await self._proofs(keys, seconds):
            with closing(self._ledger.view()) as view:
                block = view.resolve(place.number)
                self._learned.learn(view, _proven(proof, block.header.state_root), at=block)

    async def _proofs(self, keys: KeysAt, seconds: float) -> list[tuple[BlockAt, ClaimedProof]]:
        if sum(map(len, keys.values())) > MOST_PATHS:
            raise TooMuchState(f"the trie nodes of more than {MOST_PATHS} accounts")
        asked = [
            self._proof(place, GetProof(address, tuple(sorted(slots))))
            for number, of_block in keys.items()
            if (place := self._place(number)) is not None
            for address, slots in of_block.items()
        ]
        async with asyncio.timeout(seconds):
            return await asyncio.gather(*asked)

    def _place(self, number: int) -> BlockAt | None:
        """The block to ask at; None if the chain is another one by now."""
        with closing(self._ledger.view()) as view:
            try:
                block = view.resolve(number)
            except NotHere:
                return None
            return BlockAt(number, block.hash)

    async def _proof(self, place: BlockAt, asked: GetProof) -> tuple[BlockAt, ClaimedProof]:
        async with self._places:
            return place, await proof_at(self._ask, asked, place)


def slots_before(missed: Sequence[MissingKeys]) -> KeysAt:
    """The slots of accounts that have gone since, by the blocks at which they had not."""
    keys: dict[int, Keys] = {}
    for each in missed:
        slots = each.slots
        for address, number in each.destroyed_after.items():
            of_block = keys.setdefault(number, {})
            of_block.setdefault(address, set()).update(slots.get(address, ()))
    return keys


def _proven(proof: ClaimedProof, root: bytes) -> KnownValues:
    """Return the values that a proof proves. Raises `InvalidProofData`."""
    try:
        account, values = proof.prove(root)
    except BadProof as why:
        raise InvalidProofData(str(why)) from None
    slots = (each.slot for each in proof.slots)
    return KnownValues(
        {proof.address: account}, {proof.address: dict(zip(slots, values, strict=True))}
    )


async def proof_at(ask: AskUpstream, asked: GetProof, block: BlockAt) -> ClaimedProof:
    """Return an unchecked proof at a block. Raises `InvalidProofData`, `NoUpstream`."""
    try:
        params = asked.params(block.parameter(BlockForm.HASH))
        text = await ask(asked.method, msgspec.json.encode(params))
    except NoUpstream:  # some take numbers only
        params = asked.params(block.parameter(BlockForm.NUMBER))
        text = await ask(asked.method, msgspec.json.encode(params))
    try:
        return read_proof(asked, Raw(text))
    except RefusedAnswer as why:
        raise InvalidProofData(str(why)) from None
