"""Gather the state that a stretch of a chain needs, from an endpoint that proves the anchor.

The blocks are fetched by their hashes, each checked against its hash, then executed one after
the other on a store that knows nothing at first; what they miss is fetched with proofs against
the root of the anchor, until they run. There is no hurry: the endpoint has to prove a block as
far back as the stretch is long. Beside that, what a follower asks before it executes anything is
kept: slots that contracts read first, and what it finds out about endpoints.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Raw

from foreblock.chains.chain_file import FollowedChain
from foreblock.errors import BadChain, NotAnAnswer, RefusedAnswer, StateMissing
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
from foreblock.recording.stretch import Stretch
from foreblock.types import Block, Header
from foreblock.upstream.block_json import rebuild_block, rebuild_header
from foreblock.upstream.budget import Purpose, Urgency

SECONDS: Final = 30.0  # for one answer
ROUNDS: Final = 64  # that one block may take
ANCESTORS: Final = 2  # headers before the anchor, which a follower looks at
EPOCH: Final = 1

# Blocks executed, and all of them.
Report = Callable[[int, int], None]


class Gathering:
    """Gathers from these upstreams, the first of which gives the blocks."""

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
    """What every follower asks for: to find out what endpoints can do, and for withdrawals."""
    accounts = frozenset({ZERO_ADDRESS, NOBODY, BUSY, MESSAGE_PASSER})
    return StateKeys(accounts, {NOBODY: frozenset({SLOT}), BUSY: frozenset({BUSY_SLOT})})


def _first_slots(found: FetchResult) -> StateKeys:
    """The slots that contracts read first, of those that were found."""
    contracts = [each for each, said in found.accounts.items() if said.code_hash != EMPTY_CODE]
    slots = {each: FIRST_SLOTS - found.slots.get(each, {}).keys() for each in contracts}
    return StateKeys(slots={each: keys for each, keys in slots.items() if keys})


def _check(found: bytes, wanted: bytes) -> None:
    if found != wanted:
        why = f"the hash of the block is {format_data(found)}, asked for was {format_data(wanted)}"
        raise RefusedAnswer("another block", why)
