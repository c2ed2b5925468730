"""Learn the state that a network wants: fetched from its upstreams, proven, and then known.

What upstreams say is a claim. With `proven` an account, a slot and a hash of an old block count
only if Merkle nodes lead to them from the state root of a block that was executed here: a key
that is not known here has the same value at each of these. With `trusted` they count as they are.
With `audited` they count too, and are handed to the audit (`state_audit`), which proves them.
One epoch has one `Learned`, which the store has under its states; another anchor begins another.

Called on the loop of the network. The chain is read through views of its store.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from foreblock.errors import BadProof, EndpointError, NewEpoch, NoUpstream
from foreblock.ledger.following.wanting import WantedNodes, WantedState
from foreblock.ledger.storage.anchored_store import Learned
from foreblock.types import Account, Header, keccak256
from foreblock.upstream.asked import BlockAt
from foreblock.upstream.budget import Purpose
from foreblock.upstream.fetcher import Fetcher
from foreblock.upstream.wanted import (
    EMPTY_CODE,
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
MOMENT: Final = 0.1  # seconds in which a block may come here that an upstream has already
NOT_PROVEN: Final = "nothing that can be proven was found"
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


class Believed(Protocol):
    """What is used before it is proven."""

    @property
    def prover(self) -> Fetcher:
        """Fetches what can be proven."""

    @property
    def believes(self) -> bool:
        """Whether anything may be used before it is proven."""

    def begin(self, epoch: int) -> None:
        """Begin with nothing believed."""

    def note(self, epoch: int, block: int, believed: Found) -> None:
        """Note what is used; `block` is the latest one."""


class StateLearner:
    """Fetches and proves for one network."""

    def __init__(
        self, fetcher: Fetcher, *, proven: bool, behind: int, audit: Believed | None = None
    ) -> None:
        """`behind` is how far below the head is asked; an `audit` proves later what is believed."""
        self._fetcher: Final = fetcher
        self._audit: Final = audit
        self.proven: Final = proven
        self._behind: Final = behind
        self._learned = Learned(0)
        self._plainly = 0  # how many more times only what is needed is asked for
        self._hashes: dict[int, bytes] = {}  # of ancestors of the anchor, each named by its child
        self.counters: Counter[str] = Counter()
        self.last_error = ""
        self.heard: Callable[[Wanted], None] | None = None  # of keys that were wanted, and found

    def begin(self, learned: Learned) -> None:
        """Learn into this from now on."""
        self._learned = learned
        self._hashes = {}
        if self._audit is not None:
            self._audit.begin(learned.epoch)

    @property
    def proves(self) -> bool:
        """Whether nothing is used now before it is proven."""
        return self.proven or (self._audit is not None and not self._audit.believes)

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
        proves = self.proves
        if hashes and blocks.keeps_hashes and proves:
            rest = by_history(wanted, places[0].number)._replace(blocks=frozenset())
        found = Found()
        if rest:
            fetcher = self._audit.prover if proves and self._audit else self._fetcher
            found = await fetcher.fetch(rest, places, purpose, seconds, blocks.epoch)
        true = self._take(found, blocks, learned, proves=proves)
        named = await self._name(hashes, true if proves else Found(), blocks, purpose, seconds)
        for number, block_hash in named.items():
            learned.put_block(number, block_hash)
        if wanted and not true and not named:
            raise NoUpstream(NOT_PROVEN, 1)
        self.counters["keys"] += wanted.keys
        if self.heard is not None and purpose is not Purpose.WARM_UP:
            self.heard(_used(wanted, true))
        return FoundState(true, tuple(blocks.roots()), named)

    async def find_in_time(
        self,
        wanted: Wanted,
        executed: Callable[[], ExecutedBlocks],
        purpose: Purpose,
        seconds: float,
    ) -> FoundState:
        """As `find`, again and again while proofs are of blocks that come here in a moment."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while True:
            try:
                return await self.find(wanted, executed(), purpose, until - loop.time())
            except NoUpstream as why:
                if why.why != NOT_PROVEN or loop.time() + MOMENT >= until:
                    raise
            await asyncio.sleep(MOMENT)

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

    def _take(
        self, found: Found, blocks: ExecutedBlocks, learned: Learned, *, proves: bool
    ) -> Found:
        """Learn what is true of what was found, and give that."""
        true, roots = Found(), blocks.roots()
        untrue: set[bytes] = set()
        for proof in (each for some in found.proofs.values() for each in some):
            if self._prove(proof, roots, learned, untrue):
                true.put_proof(proof)
        if not proves:
            believed = _unproven(found, true, untrue)
            self._believe(believed, true, learned)
            if self._audit is not None:
                self._audit.note(learned.epoch, blocks.headers[0].number, believed)
        for address, code_hash in found.codes_of.items():
            true.put_code(address, found.codes[code_hash])
        true.put_codes(found.codes.values())
        for code in found.codes.values():
            learned.put_code(code)
        return true

    def _prove(
        self,
        proof: FoundProof,
        roots: Mapping[bytes, int],
        learned: Learned,
        untrue: set[bytes],
    ) -> bool:
        """Learn a proof, if it leads from the root of a block that was executed here.

        One that does not hold, or proves something else than it claims, is added to the untrue.
        """
        root = keccak256(proof.nodes[0]) if proof.nodes else b""
        if root not in roots:
            self.counters["of another block"] += 1  # of one that is not executed yet, likely
            return False
        slots = [(each.slot, list(each.nodes)) for each in proof.slots]
        try:
            account, values = learned.prove(root, proof.address, list(proof.nodes), slots)
            _check_claims(proof, account, values)
        except BadProof as bad:
            self.counters["untrue"] += 1
            self.last_error = str(bad)
            self._fetcher.untrue(proof.source, str(bad))
            untrue.add(proof.address)
            return False
        return True

    def _believe(self, believed: Found, true: Found, learned: Learned) -> None:
        """Learn what upstreams say without proofs."""
        for address, said in believed.accounts.items():
            # The root of an empty storage says all slots: an audit proves what is said one by one.
            root = said.storage_root if self._audit is None else None
            learned.put_account(address, said.believed, root)
            true.accounts[address] = said
        for address, values in believed.slots.items():
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
        slots = true.slots.get(HISTORY_STORAGE, {})
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


def _used(wanted: Wanted, found: Found) -> Wanted:
    """What was wanted and is found; `codes_of` are those of its accounts that are contracts."""
    keys = wanted.without(found.missing(wanted))
    homes = frozenset(home for home in keys.codes.values() if home)
    called = (each for each in keys.codes_of if found.codes_of[each] != EMPTY_CODE)
    return keys._replace(codes_of=homes.union(called))


def _check_claims(proof: FoundProof, account: Account | None, values: Sequence[int]) -> None:
    """Raise `BadProof` where an upstream says something else than its own nodes."""
    said = proof.account
    if account is None:
        is_same = said.is_empty
    else:
        shown = (account.nonce, account.balance, account.code_hash)
        is_same = shown == (said.nonce, said.balance, said.code_hash)
    if not is_same or list(values) != [each.value for each in proof.slots]:
        raise BadProof(f"0x{proof.address.hex()}: its nodes prove other values than it says")


def _unproven(found: Found, true: Found, untrue: Collection[bytes]) -> Found:
    """What was said and not proven; nothing of accounts about which something was untrue."""
    left = Found()
    left.said_by = found.said_by
    for address, said in found.accounts.items():
        if address not in true.accounts and address not in untrue:
            left.accounts[address] = said
    for address, values in found.slots.items():
        proven = true.slots.get(address, {})
        rest = [(slot, value) for slot, value in values.items() if slot not in proven]
        if rest and address not in untrue:
            left.put_slots(address, rest)
    return left


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
