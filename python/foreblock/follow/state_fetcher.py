"""Fetch the state that a network wants from its upstreams, prove it, and make it known.

Responses are claims. With `proven`, an account, a slot or a hash of an old block counts only if
Merkle nodes lead to it from the state root of a block that was executed here: a key that is unknown
here has the same value at each of these. With `trusted`, claims count as they are. With `audited`
they count as well, and the audit (`audit`) proves them later.

A claim about an account at a block where it no longer lives as it did at the anchor is not used: it
says nothing about its earlier slots. Each epoch has one `FetchedState`, the fallback of the store's
states; another anchor begins another epoch.

Called on the loop of the network. The chain is read through views of its store.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple, Protocol

from msgspec.structs import replace

from foreblock.errors import BadProof, EndpointError, NewEpoch, NoUpstream
from foreblock.follow.fetch_result import EMPTY_CODE, ClaimedProof, FetchResult, Fit, PendingProofs
from foreblock.follow.fetcher import Fetcher
from foreblock.follow.requests import BlockAt
from foreblock.ledger.following.missing_state import MissingNodes, MissingState
from foreblock.ledger.rules.execution import HISTORY_STORAGE, HISTORY_WINDOW
from foreblock.ledger.storage.open_store import FetchedState
from foreblock.ledger.storage.state_keys import StateKeys
from foreblock.types import Account, Header, keccak256
from foreblock.upstream.budget import Purpose

MOST_PLACES: Final = 4  # blocks at which an upstream is queried, one after the other
MOST_ANCESTORS: Final = 256  # that BLOCKHASH may name
HASH_BYTES: Final = 32
PROVEN_AT_ONCE: Final = 32  # accounts, which take a millisecond or two
MOMENT: Final = 0.05  # seconds between two checks for a block that an upstream has
MOST_CHECKS: Final = 20  # such checks, then it is requested again: that block may never arrive
NOT_PROVEN: Final = "nothing that can be proven was found"
PLAINLY: Final = 32  # times that only needed keys are requested, after a fetch of more failed

# Whether an account is the same at a block as at the anchor, as far as is known.
SameLife = Callable[[int, bytes], bool]


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

    def query_blocks(self, behind: int) -> tuple[BlockAt, ...]:
        """The blocks to request at: some below the head, so that upstreams that lag can respond."""
        low = self.headers[min(behind, len(self.headers) - 1) :]
        chosen = [*low[: MOST_PLACES - 1], self.anchor]
        return tuple(dict.fromkeys(BlockAt(each.number, each.hash) for each in chosen))


class KnownKeys(Protocol):
    """The known keys of a network."""

    def executed(self) -> ExecutedBlocks:
        """The blocks whose roots prove something."""

    def unknown(self, wanted: StateKeys) -> StateKeys:
        """Return the keys that are not known yet."""


class ProvenState(NamedTuple):
    """Values that were found and are proven, or trusted, and hashes of blocks before the base."""

    found: FetchResult
    blocks: Mapping[int, bytes]


class AuditSink(Protocol):
    """Receives the values that are used before they are proven."""

    @property
    def prover(self) -> Fetcher:
        """Fetches what can be proven."""

    @property
    def accepts_unproven(self) -> bool:
        """True if values may be used before they are proven."""

    def begin(self, epoch: int) -> None:
        """Discard all claims."""

    def note(self, epoch: int, block: int, believed: FetchResult) -> None:
        """Record values that are used; `block` is the latest one."""


class StateFetcher:
    """Fetches and proves for one network."""

    def __init__(
        self, fetcher: Fetcher, *, proven: bool, behind: int, audit: AuditSink | None = None
    ) -> None:
        """State is read `behind` blocks below the head; an `audit` proves unproven values later."""
        self._fetcher: Final = fetcher
        self._audit: Final = audit
        self.proven: Final = proven
        self._behind: Final = behind
        self._learned = FetchedState(0)
        self._plainly = 0  # how many more times only needed keys are requested
        self._hashes: dict[int, bytes] = {}  # of ancestors of the anchor, each named by its child
        self._pending = PendingProofs()
        self._same_life: SameLife = _always
        self._begun: Final = asyncio.Event()
        self.counters: Counter[str] = Counter()
        self.last_error = ""
        # The requested and found keys, with their purpose.
        self.on_used: Callable[[StateKeys, Purpose], None] | None = None

    def begin(
        self, learned: FetchedState, fit: Fit | None = None, same_life: SameLife | None = None
    ) -> None:
        """Learn into this from now on; `fit` rebases proofs of later blocks to known ones."""
        self._learned = learned
        self._same_life = same_life or _always
        self._hashes = {}
        self._pending = PendingProofs(fit)
        self._begun.set()
        if self._audit is not None:
            self._audit.begin(learned.epoch)

    @property
    def proves(self) -> bool:
        """True if nothing is used now before it is proven."""
        return self.proven or (self._audit is not None and not self._audit.accepts_unproven)

    async def fetch_and_prove(
        self, wanted: MissingState, blocks: ExecutedBlocks, purpose: Purpose, seconds: float
    ) -> bool:
        """Fetch missing state; returns True if some of it is known then.

        If some keys are needed, only those count: the code of an account that could not be proven
        does not unblock a run. A failure of upstreams is counted and not raised; the caller tries
        again.
        """
        keys, needed = wanted.keys, wanted.needed
        found, left = None, needed
        if not self._plainly or not needed:
            found = await self._find_some(keys, blocks, purpose, seconds)
            if found is None or found.found.missing(replace(keys, blocks=frozenset())):
                self._plainly = PLAINLY  # keys that are only likely to be needed may be the reason
            left = needed if found is None else found.found.missing(needed)
        else:
            self._plainly -= 1
        if left:
            more = await self._find_some(left, blocks, purpose, seconds)
            left = left if more is None else more.found.missing(left)
            found = found or more
        return found is not None and (not needed or len(left) < len(needed))

    async def _find_some(
        self, wanted: StateKeys, blocks: ExecutedBlocks, purpose: Purpose, seconds: float
    ) -> ProvenState | None:
        try:
            return await self.find(wanted, blocks, purpose, seconds)
        except EndpointError as why:
            self.counters[type(why).__name__] += 1
            self.last_error = str(why)
            return None

    async def find(
        self,
        wanted: StateKeys,
        blocks: ExecutedBlocks,
        purpose: Purpose,
        seconds: float,
        *,
        is_used: bool = True,
    ) -> ProvenState:
        """Fetch and learn keys; `is_used` if a request waits for them.

        Raises `EndpointError`.
        """
        learned = self._learned
        if learned.epoch != blocks.epoch:
            raise NewEpoch
        at_blocks = blocks.query_blocks(self._behind)
        hashes = wanted.blocks
        rest = replace(wanted, blocks=frozenset())
        proves = self.proves
        if hashes and blocks.keeps_hashes and proves:
            rest = replace(by_history(wanted, at_blocks[0].number), blocks=frozenset())
        true = self._take_ready(rest, blocks, learned)
        since = asyncio.get_running_loop().time() - MOMENT * MOST_CHECKS
        waited_for = self._pending.waited_for(blocks.roots(), since)
        if rest := true.missing(rest).without(waited_for):
            fetcher = self._audit.prover if proves and self._audit else self._fetcher
            found = await fetcher.fetch(rest, at_blocks, purpose, seconds, blocks.epoch)
            true.merge(await self._take(found, blocks, learned, proves=proves))
        named = await self._name(
            hashes, true if proves else FetchResult(), blocks, purpose, seconds
        )
        for number, block_hash in named.items():
            learned.put_block(number, block_hash)
        if wanted and not true and not named:
            raise NoUpstream(NOT_PROVEN, 1)
        self.counters["keys"] += len(wanted)
        if self.on_used is not None and is_used:
            self.on_used(_used(wanted, true), purpose)
        return ProvenState(true, named)

    async def find_in_time(
        self,
        wanted: StateKeys,
        executed: Callable[[], ExecutedBlocks],
        purpose: Purpose,
        seconds: float,
        *,
        is_used: bool = True,
    ) -> ProvenState:
        """As `find`, also with proofs of blocks that arrive shortly."""
        loop = asyncio.get_running_loop()
        until, epoch = loop.time() + seconds, executed().epoch
        true, named = FetchResult(), dict[int, bytes]()
        while True:
            await self._wait_for_epoch(epoch, until)
            blocks, left = executed(), _left(wanted, true, named)
            if blocks.epoch != epoch:
                raise NewEpoch
            try:
                found = await self.find(left, blocks, purpose, until - loop.time(), is_used=is_used)
            except NoUpstream as why:
                if why.why != NOT_PROVEN and not true and not named:
                    raise
            else:
                true.merge(found.found)
                named |= found.blocks
            left = _left(wanted, true, named)
            is_over = loop.time() + MOMENT >= until
            if is_over or not self._pending.has_pending(left, blocks.roots()):
                break
            await self._wait_for_block(executed, blocks, until)
        if (blocks := executed()).epoch != epoch:
            raise NewEpoch  # the found and waiting values are of the old base
        if wanted and not true and not named:
            raise NoUpstream(NOT_PROVEN, 1)
        return ProvenState(true, named)

    async def _wait_for_epoch(self, epoch: int, until: float) -> None:
        """Wait until this fetcher is in the epoch of the store."""
        loop = asyncio.get_running_loop()
        while self._learned.epoch < epoch and loop.time() < until:
            self._begun.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._begun.wait(), until - loop.time())

    async def _wait_for_block(
        self, executed: Callable[[], ExecutedBlocks], before: ExecutedBlocks, until: float
    ) -> None:
        """Wait for the next block: a waiting proof may be of it."""
        loop = asyncio.get_running_loop()
        for _ in range(MOST_CHECKS):
            await asyncio.sleep(MOMENT)
            if executed().headers[0] != before.headers[0] or loop.time() + MOMENT >= until:
                return

    async def find_nodes(
        self, wanted: MissingNodes, epoch: int, purpose: Purpose, seconds: float
    ) -> list[bytes]:
        """The nodes of proofs of these keys, which lead from the root of their block.

        An upstream that proves its latest block only returns proofs of another root; their nodes
        are used if a trie has their hashes. Raises `EndpointError`.
        """
        slots = {address: frozenset(keys) for address, keys in wanted.keys.items() if keys}
        keys = StateKeys(frozenset(wanted.keys), slots)
        place = (BlockAt(wanted.number, wanted.hash),)
        found = await self._fetcher.fetch(keys, place, purpose, seconds, epoch)
        if found.missing(keys):
            raise NoUpstream("not all proofs are to be had", 1)
        proofs = [each for some in found.proofs.values() for each in some]
        for proof in proofs:
            self._check_at(wanted.root, proof)
        lists = [each.nodes for each in proofs]
        lists += [slot.nodes for each in proofs for slot in each.slots]
        return list(dict.fromkeys(node for nodes in lists for node in nodes))

    def _check_at(self, root: bytes, proof: ClaimedProof) -> None:
        """Raise `BadProof` if a proof that should lead from this root does not."""
        try:
            proof.prove(root)
        except BadProof as bad:
            if self._fetcher.proves_tip(proof.source):
                return
            self.counters["untrue"] += 1
            self._fetcher.report_bad_data(proof.source, str(bad))
            raise

    def _take_ready(
        self, wanted: StateKeys, blocks: ExecutedBlocks, learned: FetchedState
    ) -> FetchResult:
        """Learn from proofs that arrived before their block, which is known now."""
        true, roots = FetchResult(), blocks.roots()
        for proof in self._pending.ready_for(wanted, roots, blocks.headers[0].number):
            if self._prove(proof, roots, learned, set()):
                true.put_proof(proof)
        return true

    async def _take(
        self, found: FetchResult, blocks: ExecutedBlocks, learned: FetchedState, *, proves: bool
    ) -> FetchResult:
        """Learn the valid part of a result and return it; other tasks run in between."""
        true, roots = FetchResult(), blocks.roots()
        untrue: set[bytes] = set()
        proofs = (each for some in found.proofs.values() for each in some)
        for number, proof in enumerate(proofs, start=1):
            if number % PROVEN_AT_ONCE == 0:
                await asyncio.sleep(0)
            known = self._at_a_block_here(proof, roots, blocks.headers[0].number)
            if known is not None and self._prove(known, roots, learned, untrue):
                true.put_proof(known)
        if not proves:
            believed = _unproven(found, true, untrue)
            self._learn_unproven(believed, true, learned, blocks.headers[0].number)
            if self._audit is not None:
                self._audit.note(learned.epoch, blocks.headers[0].number, believed)
        for address, code_hash in found.codes_of.items():
            true.put_code(address, found.codes[code_hash])
        true.put_codes(found.codes.values())
        for code in found.codes.values():
            learned.put_code(code)
        return true

    def _at_a_block_here(
        self, proof: ClaimedProof, roots: Mapping[bytes, int], latest: int
    ) -> ClaimedProof | None:
        """A proof that leads from the root of a block that was executed here."""
        if proof.nodes and keccak256(proof.nodes[0]) in roots:
            return proof
        self.counters["of another block"] += 1  # of one that is not executed yet, likely
        fitted = self._pending.take(proof, latest, asyncio.get_running_loop().time())
        if fitted is None or keccak256(fitted.nodes[0]) not in roots:
            return None
        self.counters["fitted"] += 1
        return fitted

    def _prove(
        self,
        proof: ClaimedProof,
        roots: Mapping[bytes, int],
        learned: FetchedState,
        untrue: set[bytes],
    ) -> bool:
        """Learn a proof that leads from the root of a block that was executed here.

        An invalid one, or one that contradicts its claims, is added to the refuted proofs.
        """
        root = keccak256(proof.nodes[0])
        assert root in roots, "it is of a block that was executed here"
        try:
            same_life = self._same_life(roots[root], proof.address)
            account, values = learned.prove(
                root, proof.address, list(proof.nodes), proof.slot_nodes(), same_life=same_life
            )
            _check_claims(proof, account, values)
        except BadProof as bad:
            self.counters["untrue"] += 1
            self.last_error = str(bad)
            self._fetcher.report_bad_data(proof.source, str(bad))
            untrue.add(proof.address)
            return False
        return True

    def _learn_unproven(
        self, believed: FetchResult, true: FetchResult, learned: FetchedState, latest: int
    ) -> None:
        """Learn unproven values of blocks up to the latest."""
        for address in {*believed.accounts, *believed.slots}:
            if not self._same_life(latest, address):
                believed.accounts.pop(address, None)
                believed.slots.pop(address, None)
        for address, said in believed.accounts.items():
            # The root of an empty storage claims all slots; an audit proves claims one by one.
            root = said.storage_root if self._audit is None else None
            learned.put_account(address, said.account, root)
            true.accounts[address] = said
        for address, values in believed.slots.items():
            learned.put_slots(address, values)
            true.put_slots(address, values.items())

    async def _name(
        self,
        wanted: frozenset[int],
        true: FetchResult,
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
        at_blocks = blocks.query_blocks(self._behind)
        found = await self._fetcher.fetch(
            StateKeys(blocks=numbers), at_blocks, purpose, seconds, blocks.epoch
        )
        for number in sorted(numbers, reverse=True):
            header = found.headers.get(number)
            if header is None or header.hash != self._hashes[number]:
                return
            self._hashes[number - 1] = header.parent_hash


def _always(_: int, __: bytes) -> bool:
    return True


def _used(wanted: StateKeys, found: FetchResult) -> StateKeys:
    """Return the wanted keys that were found; `codes_of` are the contracts among them."""
    keys = wanted.without(found.missing(wanted))
    homes = frozenset(home for home in keys.codes.values() if home)
    called = (each for each in keys.codes_of if found.codes_of[each] != EMPTY_CODE)
    return replace(keys, codes_of=homes.union(called))


def _left(wanted: StateKeys, true: FetchResult, named: Collection[int]) -> StateKeys:
    """Return the keys that are not known yet."""
    return replace(true.missing(wanted), blocks=wanted.blocks.difference(named))


def _check_claims(proof: ClaimedProof, account: Account | None, values: Sequence[int]) -> None:
    """Raise `BadProof` if an upstream contradicts its own nodes."""
    said = proof.account
    if account is None:
        is_same = said.is_empty
    else:
        shown = (account.nonce, account.balance, account.code_hash)
        is_same = shown == (said.nonce, said.balance, said.code_hash)
    if not is_same or list(values) != [each.value for each in proof.slots]:
        raise BadProof(f"0x{proof.address.hex()}: its nodes prove other values than it claims")


def _unproven(found: FetchResult, true: FetchResult, untrue: Collection[bytes]) -> FetchResult:
    """Return the unproven claims, without accounts that have an invalid claim."""
    left = FetchResult()
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


def by_history(keys: StateKeys, at: int) -> StateKeys:
    """Return the keys with block hashes as slots of the history contract at block `at`.

    For chains that have the contract for longer than its window: there a slot is 0 for no block
    in it. Blocks outside of the window stay.
    """
    inside = frozenset(each for each in keys.blocks if at - HISTORY_WINDOW <= each < at)
    if not inside:
        return keys
    slots = frozenset(each % HISTORY_WINDOW for each in inside)
    rest = replace(keys, blocks=keys.blocks - inside)
    return rest.also(StateKeys(slots={HISTORY_STORAGE: slots}))
