"""Learn the state that a network wants: fetched from its upstreams, proven, and then known.

What upstreams say is a claim. With `proven` an account, a slot and a hash of an old block count
only if Merkle nodes lead to them from the state root of a block that was executed here: a key
that is not known here has the same value at each of these. With `trusted` they count as they are.
One epoch has one `Learned`, which the store has under its states; another anchor begins another.

Called on the loop of the network. The chain is read through views of its store.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from foreblock.errors import BadProof, EndpointError, NewEpoch, NoUpstream
from foreblock.ledger.following.wanting import WantedNodes, WantedState
from foreblock.ledger.storage.anchored_store import Learned
from foreblock.types import Header, keccak256
from foreblock.upstream.asked import BlockAt
from foreblock.upstream.budget import Purpose
from foreblock.upstream.fetcher import Fetcher
from foreblock.upstream.wanted import (
    HISTORY_STORAGE,
    HISTORY_WINDOW,
    Found,
    FoundProof,
    Wanted,
    by_history,
)

MOST_PLACES: Final = 4  # blocks at which an upstream is asked, one after the other
MOST_ANCESTORS: Final = 256  # that BLOCKHASH may name
HASH_BYTES: Final = 32
PLAINLY: Final = 32  # times that only what is needed is asked for, after more could not be had


class ExecutedBlocks(NamedTuple):
    """The blocks whose roots prove something: the newest first, the anchor last."""

    epoch: int
    headers: Sequence[Header]
    keeps_hashes: bool  # whether the history contract of EIP-2935 has been there for long

    @property
    def anchor(self) -> Header:
        """The block at which the epoch began."""
        return self.headers[-1]

    def roots(self) -> dict[bytes, int]:
        """The numbers of the blocks by their state roots."""
        return {each.state_root: each.number for each in self.headers}

    def places(self, behind: int) -> tuple[BlockAt, ...]:
        """Where to ask: some blocks below the head, so that upstreams that lag can answer."""
        low = self.headers[min(behind, len(self.headers) - 1) :]
        chosen = [*low[: MOST_PLACES - 1], self.anchor]
        return tuple(dict.fromkeys(BlockAt(each.number, each.hash) for each in chosen))


class FoundState(NamedTuple):
    """What was found and is true: its proofs, the roots they lead to, and hashes of old blocks."""

    found: Found
    roots: tuple[bytes, ...]
    blocks: Mapping[int, bytes]


class StateLearner:
    """Fetches and proves for one network."""

    def __init__(self, fetcher: Fetcher, *, proven: bool, behind: int) -> None:
        """`behind` is how far below the head is asked."""
        self._fetcher: Final = fetcher
        self.proven: Final = proven
        self._behind: Final = behind
        self._learned = Learned(0)
        self._plainly = 0  # how many more times only what is needed is asked for
        self._hashes: dict[int, bytes] = {}  # of ancestors of the anchor, each named by its child
        self.counters: Counter[str] = Counter()
        self.last_error = ""

    def begin(self, learned: Learned) -> None:
        """Learn into this from now on."""
        self._learned = learned
        self._hashes = {}

    async def learn(
        self, wanted: WantedState, blocks: ExecutedBlocks, purpose: Purpose, seconds: float
    ) -> bool:
        """Fetch what is wanted; whether anything of it is known after that.

        Raises nothing for want of upstreams: it is counted, and asked for again by the caller.
        """
        asked, needed = asked_for(wanted), needed_of(wanted)
        if self._plainly and needed:
            self._plainly -= 1
            return await self._find_some(needed, blocks, purpose, seconds) is not None
        found = await self._find_some(asked, blocks, purpose, seconds)
        if found is None or found.found.missing(asked._replace(blocks=frozenset())):
            self._plainly = PLAINLY  # what is only likely to be needed may be the reason
        left = needed if found is None else found.found.missing(needed)
        if left:
            more = await self._find_some(left, blocks, purpose, seconds)
            found = more if found is None else found
        return found is not None

    async def _find_some(
        self, wanted: Wanted, blocks: ExecutedBlocks, purpose: Purpose, seconds: float
    ) -> FoundState | None:
        try:
            return await self.find(wanted, blocks, purpose, seconds)
        except EndpointError as why:
            self.counters[type(why).__name__] += 1
            self.last_error = str(why)
            return None

    async def find(
        self, wanted: Wanted, blocks: ExecutedBlocks, purpose: Purpose, seconds: float
    ) -> FoundState:
        """Fetch keys, and know them after that. Raises `EndpointError`."""
        learned = self._learned
        if learned.epoch != blocks.epoch:
            raise NewEpoch
        places = blocks.places(self._behind)
        hashes = wanted.blocks
        rest = wanted._replace(blocks=frozenset())
        if hashes and blocks.keeps_hashes and self.proven:
            rest = by_history(wanted, places[0].number)._replace(blocks=frozenset())
        found = Found()
        if rest:
            found = await self._fetcher.fetch(rest, places, purpose, seconds, blocks.epoch)
        true = self._take(found, blocks, learned)
        named = await self._name(hashes, true, blocks, purpose, seconds)
        for number, block_hash in named.items():
            learned.put_block(number, block_hash)
        if wanted and not true and not named:
            raise NoUpstream("nothing that can be proven was found", 1)
        self.counters["keys"] += wanted.keys
        return FoundState(true, tuple(blocks.roots()), named)

    async def find_nodes(
        self, wanted: WantedNodes, epoch: int, purpose: Purpose, seconds: float
    ) -> list[bytes]:
        """The nodes of proofs of these keys at their block; whether they fit, a root tells.

        Raises `EndpointError`.
        """
        slots = {address: frozenset(keys) for address, keys in wanted.keys.items() if keys}
        keys = Wanted(frozenset(wanted.keys), slots)
        place = (BlockAt(wanted.number, wanted.hash),)
        found = await self._fetcher.fetch(keys, place, purpose, seconds, epoch)
        if found.missing(keys):
            raise NoUpstream("not all proofs are to be had", 1)
        proofs = [each for some in found.proofs.values() for each in some]
        lists = [each.nodes for each in proofs]
        lists += [slot.nodes for each in proofs for slot in each.slots]
        return list(dict.fromkeys(node for nodes in lists for node in nodes))

    def _take(self, found: Found, blocks: ExecutedBlocks, learned: Learned) -> Found:
        """Learn what is true of what was found, and give that."""
        true, roots = Found(), blocks.roots()
        for proof in (each for some in found.proofs.values() for each in some):
            if self._prove(proof, roots, learned):
                true.put_proof(proof)
        if not self.proven:
            self._believe(found, true, learned)
        for address, code_hash in found.codes_of.items():
            true.put_code(address, found.codes[code_hash])
        true.put_codes(found.codes.values())
        for code in found.codes.values():
            learned.put_code(code)
        return true

    def _prove(self, proof: FoundProof, roots: Mapping[bytes, int], learned: Learned) -> bool:
        """Learn a proof, if it leads from the root of a block that was executed here."""
        root = keccak256(proof.nodes[0]) if proof.nodes else b""
        if root not in roots:
            self.counters["of another block"] += 1  # of one that is not executed yet, likely
            return False
        slots = [(each.slot, list(each.nodes)) for each in proof.slots]
        try:
            learned.prove(root, proof.address, list(proof.nodes), slots)
        except BadProof as bad:
            self.counters["untrue"] += 1
            self.last_error = str(bad)
            self._fetcher.untrue(proof, str(bad))
            return False
        return True

    def _believe(self, found: Found, true: Found, learned: Learned) -> None:
        """Learn what upstreams say without proofs."""
        for address, said in found.accounts.items():
            if address not in true.accounts:
                learned.put_account(address, said.believed, said.storage_root)
                true.accounts[address] = said
        for address, values in found.slots.items():
            learned.put_slots(address, values)
            true.put_slots(address, values.items())

    async def _name(
        self,
        wanted: frozenset[int],
        true: Found,
        blocks: ExecutedBlocks,
        purpose: Purpose,
        seconds: float,
    ) -> dict[int, bytes]:
        """The hashes of blocks below the anchor: by proven slots, or from child to parent."""
        slots = true.slots.get(HISTORY_STORAGE, {}) if self.proven else {}
        named = {
            number: slots[number % HISTORY_WINDOW].to_bytes(HASH_BYTES)
            for number in wanted
            if slots.get(number % HISTORY_WINDOW)
        }
        left = wanted - named.keys()
        if left:
            await self._walk(min(left), blocks, purpose, seconds)
            named |= {number: self._hashes[number] for number in left & self._hashes.keys()}
        return named

    async def _walk(
        self, lowest: int, blocks: ExecutedBlocks, purpose: Purpose, seconds: float
    ) -> None:
        """Learn the hashes of the ancestors of the anchor down to this one, each by its child."""
        anchor = blocks.anchor
        self._hashes[anchor.number - 1] = anchor.parent_hash
        known = min(self._hashes)
        if lowest >= known or lowest < anchor.number - MOST_ANCESTORS:
            return
        numbers = frozenset(range(lowest + 1, known + 1))
        places = blocks.places(self._behind)
        found = await self._fetcher.fetch(
            Wanted(blocks=numbers), places, purpose, seconds, blocks.epoch
        )
        for number in sorted(numbers, reverse=True):
            header = found.headers.get(number)
            if header is None or header.hash != self._hashes[number]:
                return
            self._hashes[number - 1] = header.parent_hash


def asked_for(wanted: WantedState) -> Wanted:
    """Keys as they are asked for: contracts that are new come with their codes."""
    new = wanted.accounts & wanted.contracts
    slots = {address: frozenset(keys) for address, keys in wanted.slots.items() if keys}
    return Wanted(
        frozenset(wanted.accounts),
        slots,
        dict(wanted.codes),
        frozenset(new),
        frozenset(wanted.blocks),
    )


def needed_of(wanted: WantedState) -> Wanted:
    """The keys without which a run cannot go on."""
    slots = {address: frozenset(keys) for address, keys in wanted.needed_slots.items() if keys}
    return Wanted(frozenset(wanted.needed), slots, dict(wanted.codes))
