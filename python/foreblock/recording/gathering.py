"""Gather the state that a stretch of a chain needs, from an endpoint that proves the anchor.

A stretch is the sequence of whole blocks in a recorded feed. The blocks are fetched and verified
by hash, then executed in order on a store that is empty at first. Missing state is fetched with
proofs against the root of the anchor until the blocks run, so the endpoint must prove blocks as
far back as the stretch is long. The requests that a follower makes before it executes anything
are gathered too: slots that contracts read first, and probes of endpoints.
"""

import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Raw

from foreblock.chains.chain_file import FollowedChain
from foreblock.errors import BadChain, MalformedFlashblock, NotAnAnswer, RefusedAnswer, StateMissing
from foreblock.feed.messages import decode
from foreblock.follow.capabilities import BUSY, BUSY_SLOT, NOBODY, SLOT
from foreblock.follow.fetch_result import EMPTY_CODE, FetchResult
from foreblock.follow.fetcher import Fetcher
from foreblock.follow.state_fetcher import ExecutedBlocks, StateFetcher
from foreblock.follow.state_plan import FIRST_SLOTS
from foreblock.ledger.importing.importer import LearnedChain
from foreblock.ledger.rules.verification import MESSAGE_PASSER
from foreblock.ledger.storage.open_store import Store
from foreblock.ledger.storage.state_keys import StateKeys
from foreblock.primitives import ZERO_ADDRESS, format_data
from foreblock.recording.state_file import JsonBlock, RecordedState
from foreblock.types import Block, Flashblock, Header
from foreblock.upstream.block_json import rebuild_block, rebuild_header
from foreblock.upstream.budget import Purpose, Urgency

# --- Stretches -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stretch:
    """Blocks of a chain, by the hash of the block before them and their own, in order."""

    anchor: bytes
    first: int  # the number of the first block
    blocks: tuple[bytes, ...]


def stretch_of(messages: Iterable[bytes]) -> Stretch | None:
    """Return the stretch that messages of a feed cover; None if they hold no whole block.

    Of two flashblocks that start the same block, the later counts: the chain continued with it.
    """
    parents: dict[int, bytes] = {}  # named by the block of this number
    first: int | None = None
    for message in messages:
        begun = _begun(message)
        if begun is not None:
            number, parent = begun
            first = number if first is None else first
            parents[number] = parent
    if first is None:
        return None
    blocks: list[bytes] = []
    while first + len(blocks) + 1 in parents:
        blocks.append(parents[first + len(blocks) + 1])
    return Stretch(parents[first], first, tuple(blocks)) if blocks else None


def _begun(message: bytes) -> tuple[int, bytes] | None:
    """The number and parent of the block that a message starts; None for other messages."""
    try:
        found = decode(message)
    except MalformedFlashblock:
        return None
    if not isinstance(found, Flashblock) or found.base is None:
        return None
    return found.base.block_number, found.base.parent_hash


# --- State ---------------------------------------------------------------------------------

SECONDS: Final = 30.0  # for one response
ROUNDS: Final = 64  # of fetching for one block
ANCESTORS: Final = 2  # headers before the anchor, which a follower reads
EPOCH: Final = 1

# Blocks executed, and all of them.
Report = Callable[[int, int], None]


class Gathering:
    """Gathers state from these upstreams; the first one provides the blocks."""

    def __init__(self, chain: FollowedChain, fetcher: Fetcher) -> None:
        self._chain: Final = chain
        self._fetcher: Final = fetcher
        self._learner: Final = StateFetcher(fetcher, proven=True, behind=0)

    async def gather(self, stretch: Stretch, report: Report = lambda *_: None) -> RecordedState:
        """All that the stretch needs. Raises `EndpointError`, `BadBlock`."""
        state = RecordedState(self._chain.profile.chain_id, stretch.anchor)
        anchor = await self._header(state, stretch.anchor)
        before = anchor
        for _ in range(min(ANCESTORS, anchor.number)):
            before = await self._header(state, before.parent_hash)
        with (
            tempfile.TemporaryDirectory(prefix="foreblock-") as folder,
            Store(str(Path(folder) / "store"), write=True, sync=False) as store,
        ):
            chain = LearnedChain(store, anchor, self._chain.config)
            self._learner.begin(chain.learned)
            executed = ExecutedBlocks(EPOCH, [anchor], keeps_hashes=True)
            await self._find(state, executed, _always())
            for number, block_hash in enumerate(stretch.blocks):
                report(number, len(stretch.blocks))
                block = await self._block(state, block_hash)
                await self._execute(state, executed, chain, block)
            report(len(stretch.blocks), len(stretch.blocks))
        return state

    async def _execute(
        self, state: RecordedState, executed: ExecutedBlocks, chain: LearnedChain, block: Block
    ) -> None:
        for _ in range(ROUNDS):
            try:
                chain.add(block)
            except StateMissing as missing:
                wanted = StateKeys.of(missing.misses)
                await self._name(state, executed.anchor, wanted.blocks)
                found = await self._find(state, executed, wanted)
                await self._find(state, executed, _first_slots(found))
            else:
                return
        raise BadChain(self._chain.title, f"block {block.header.number} needs more and more state")

    async def _find(
        self, state: RecordedState, executed: ExecutedBlocks, wanted: StateKeys
    ) -> FetchResult:
        """Fetch and prove keys, and keep the nodes and codes."""
        if not wanted:
            return FetchResult()
        found = (await self._learner.find(wanted, executed, Purpose.FLASHBLOCK, SECONDS)).found
        for proof in (each for some in found.proofs.values() for each in some):
            state.add_nodes(proof.nodes)
            for slot in proof.slots:
                state.add_nodes(slot.nodes)
        state.add_codes(found.codes.values())
        return found

    async def _name(self, state: RecordedState, anchor: Header, numbers: frozenset[int]) -> None:
        """Keep the headers between these blocks and the anchor, by which they are named."""
        header = anchor
        while numbers and header.number > min(numbers):
            known = state.headers.get(header.parent_hash)
            if known is None:
                header = await self._header(state, header.parent_hash)
            else:
                header = rebuild_header(known)

    async def _header(self, state: RecordedState, block_hash: bytes) -> Header:
        answer = await self._ask(block_hash, whole=False)
        header = rebuild_header(answer)
        _check(header.hash, block_hash)
        state.headers[block_hash] = answer
        return header

    async def _block(self, state: RecordedState, block_hash: bytes) -> Block:
        answer = await self._ask(block_hash, whole=True)
        block = rebuild_block(answer)
        _check(block.hash, block_hash)
        state.blocks[block_hash] = answer
        return block

    async def _ask(self, block_hash: bytes, *, whole: bool) -> JsonBlock:
        upstream = self._fetcher.upstreams[0]
        asked = ("eth_getBlockByHash", [format_data(block_hash), whole])
        until = upstream.now + SECONDS
        said = (await upstream.ask([asked], Urgency(Purpose.FLASHBLOCK), until))[1]
        if not isinstance(said, Raw):
            raise said
        answer = msgspec.json.decode(said)
        if not isinstance(answer, dict):
            raise NotAnAnswer(upstream.shown, f"no block {format_data(block_hash)}")
        return answer


def _always() -> StateKeys:
    """Keys that every follower requests: probes of endpoints, and withdrawals."""
    accounts = frozenset({ZERO_ADDRESS, NOBODY, BUSY, MESSAGE_PASSER})
    return StateKeys(accounts, {NOBODY: frozenset({SLOT}), BUSY: frozenset({BUSY_SLOT})})


def _first_slots(found: FetchResult) -> StateKeys:
    """The slots that contracts read first, of those that were found."""
    contracts = [each for each, said in found.accounts.items() if said.code_hash != EMPTY_CODE]
    slots = {each: FIRST_SLOTS - found.slots.get(each, {}).keys() for each in contracts}
    return StateKeys(slots={each: keys for each, keys in slots.items() if keys})


def _check(found: bytes, wanted: bytes) -> None:
    if found != wanted:
        why = f"the block has the hash {format_data(found)}, requested was {format_data(wanted)}"
        raise RefusedAnswer("another block", why)
