"""Prove values that were used unproven, behind the head: `trust = "audited"`.

Values without a proof are used at once and recorded here. Slice by slice they are then proven, at
the block that was the latest when they arrived or at a later one, and compared with what is known
here of that block. If one differs, everything known may depend on it: the network restarts, and
accepts nothing unproven for a minute.

If values become too old or too many to be proven in time, only proven values are accepted until the
audit has caught up. Called on the loop of the network.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from foreblock.clock import Clock
from foreblock.errors import BadProof, EndpointError, ForeblockError, StateMissing
from foreblock.follow.fetch_result import EMPTY_CODE, ClaimedProof, FetchResult
from foreblock.follow.fetcher import Fetcher
from foreblock.follow.requests import BlockAt
from foreblock.follow.state_fetcher import ExecutedBlocks
from foreblock.ledger.storage.state_keys import StateKeys
from foreblock.primitives import harmless
from foreblock.status.network_status import UNTRUE, AuditStatus
from foreblock.types import Account, keccak256
from foreblock.upstream.budget import Purpose

MOST_CLAIMS: Final = 65_536  # that wait; further ones are not accepted
SLICE_ACCOUNTS: Final = 16
SLICE_SLOTS: Final = 1024
NEWEST: Final = 3  # further blocks at which proofs are requested
DISTRUST_SECONDS: Final = 60.0  # after a value that was untrue
AGAIN_SECONDS: Final = 0.5  # after a slice of which nothing could be proven

Key = tuple[bytes, int | None]  # an account, or a slot of it
# The value of a key at a block, as it is known here. Raises `ForeblockError`.
KnownAt = Callable[[int, Key], Account | int | None]


class Claim(NamedTuple):
    """A value that is not proven yet."""

    block: int  # the latest when it came: the key has not changed before the one after it
    since: float  # seconds of the monotonic clock
    source: str  # the upstream that said it


class RefutedClaim(NamedTuple):
    """A value that was used and is wrong."""

    what: str
    source: str


class StateAudit:
    """The values of one network that wait for their proofs."""

    def __init__(self, prover: Fetcher, clock: Clock, seconds: float) -> None:
        """`prover` fetches proofs; a value should be proven within `seconds`."""
        self.prover: Final = prover
        self._clock: Final = clock
        self._seconds: Final = seconds
        self._claims: dict[Key, Claim] = {}
        self._epoch = 0
        self._oldest: float | None = None  # since when one waits
        self._distrusts_until = 0.0
        self._came: Final = asyncio.Event()
        self.counters: Final[Counter[str]] = Counter()
        self.last_untrue = ""

    def begin(self, epoch: int) -> None:
        """Discard all claims, in another epoch."""
        self._epoch = epoch
        self._claims = {}
        self._oldest = None

    @property
    def waiting(self) -> int:
        """How many values wait for a proof."""
        return len(self._claims)

    @property
    def oldest(self) -> float:
        """Seconds that a value has waited for its proof, at most."""
        return 0.0 if self._oldest is None else self._now - self._oldest

    @property
    def accepts_unproven(self) -> bool:
        """True if values may be used before they are proven."""
        if self._now < self._distrusts_until or len(self._claims) >= MOST_CLAIMS:
            return False
        return self._oldest is None or self._now - self._oldest <= self._seconds

    def status(self) -> AuditStatus:
        return AuditStatus(
            dict(self.counters),
            self.waiting,
            self.oldest,
            self.accepts_unproven,
            harmless(self.last_untrue),
        )

    def note(self, epoch: int, block: int, believed: FetchResult) -> None:
        """Record values that are used and not proven; `block` is the latest one."""
        if epoch != self._epoch:
            return
        now = self._now
        for address in believed.accounts:
            claim = Claim(block, now, believed.said_by.get(address, ""))
            self._claims.setdefault((address, None), claim)
        for address, values in believed.slots.items():
            claim = Claim(block, now, believed.said_by.get(address, ""))
            for slot in values:
                self._claims.setdefault((address, slot), claim)
        if self._claims:
            self._oldest = now if self._oldest is None else self._oldest
            self._came.set()

    async def next_refuted(
        self, blocks: Callable[[], ExecutedBlocks], known: KnownAt
    ) -> RefutedClaim:
        """Prove slice after slice, until a value is wrong."""
        while True:
            await self._came.wait()
            if not self._claims:
                self._came.clear()
                continue
            before = len(self._claims)
            found = await self._prove_slice(blocks(), known)
            if found is not None:
                self._distrust(found)
                return found
            if len(self._claims) >= before:
                await asyncio.sleep(AGAIN_SECONDS)

    def _distrust(self, untrue: RefutedClaim) -> None:
        self.counters[UNTRUE] += 1
        self.last_untrue = untrue.what
        self._distrusts_until = self._now + DISTRUST_SECONDS
        self.prover.report_bad_data(untrue.source, untrue.what)

    async def _prove_slice(self, blocks: ExecutedBlocks, known: KnownAt) -> RefutedClaim | None:
        """Prove the oldest values, and those of the same accounts."""
        claims = self._slice()
        lowest = min(each.block for each in claims.values())
        purpose = Purpose.AUDIT if self.oldest < self._seconds / 2 else Purpose.CLIENT
        at_blocks = _proof_blocks(blocks, lowest)
        try:
            found = await self.prover.fetch(
                _wanted(claims), at_blocks, purpose, self._seconds, blocks.epoch
            )
        except EndpointError as why:
            self.counters[type(why).__name__] += 1
            found = FetchResult()
        if blocks.epoch != self._epoch:
            return None
        roots = blocks.roots()
        for proof in (each for some in found.proofs.values() for each in some):
            untrue = self._judge(proof, roots, known, claims)
            if untrue is not None:
                return untrue
        for key in claims.keys() & self._claims.keys():  # unprovable values come last
            self._claims[key] = self._claims.pop(key)
        self._oldest = min((each.since for each in self._claims.values()), default=None)
        return None

    def _slice(self) -> dict[Key, Claim]:
        chosen: dict[Key, Claim] = {}
        accounts: set[bytes] = set()
        for key, claim in self._claims.items():
            if key[0] not in accounts and len(accounts) == SLICE_ACCOUNTS:
                continue
            accounts.add(key[0])
            chosen[key] = claim
            if len(chosen) == SLICE_SLOTS:
                break
        return chosen

    def _judge(
        self,
        proof: ClaimedProof,
        roots: Mapping[bytes, int],
        known: KnownAt,
        claims: Mapping[Key, Claim],
    ) -> RefutedClaim | None:
        """Check the claims that a proof covers; return the first one that is wrong."""
        number = roots.get(keccak256(proof.nodes[0])) if proof.nodes else None
        if number is None:
            self.counters["of another block"] += 1
            return None
        try:
            proven = dict(_proven(proof))
        except BadProof as bad:
            self.counters["bad proof"] += 1
            self.prover.report_bad_data(proof.source, str(bad))
            return None
        for key in proven.keys() & claims.keys():
            try:
                value = known(number, key)
            except StateMissing:
                self._claims.pop(key, None)  # the value was discarded already
                continue
            except ForeblockError:
                continue  # the state of that block is not kept any more
            self._claims.pop(key, None)
            if _comparable(value) != _comparable(proven[key]):
                return RefutedClaim(
                    _difference(key, number, value, proven[key]), claims[key].source
                )
            self.counters["proven"] += 1
        return None

    @property
    def _now(self) -> float:
        return self._clock.monotonic_ns() / 1e9


def _proof_blocks(blocks: ExecutedBlocks, lowest: int) -> tuple[BlockAt, ...]:
    """The blocks to request proofs at: one since which nothing has changed, then the newest."""
    unchanged = [each for each in blocks.headers if each.number <= lowest][:1]
    chosen = [*unchanged, *blocks.headers[:NEWEST]]
    return tuple(dict.fromkeys(BlockAt(each.number, each.hash) for each in chosen))


def _wanted(claims: Mapping[Key, Claim]) -> StateKeys:
    slots: dict[bytes, set[int]] = {}
    for address, slot in claims:
        if slot is not None:
            slots.setdefault(address, set()).add(slot)
    accounts = frozenset(address for address, slot in claims if slot is None)
    return StateKeys(accounts, {address: frozenset(keys) for address, keys in slots.items()})


def _proven(proof: ClaimedProof) -> Iterator[tuple[Key, Account | int | None]]:
    """The values that the nodes of a proof lead to. Raises `BadProof`."""
    account, values = proof.prove(keccak256(proof.nodes[0]))
    yield (proof.address, None), account
    for each, value in zip(proof.slots, values, strict=True):
        yield (proof.address, each.slot), value


def _comparable(value: Account | int | None) -> tuple[int, int, bytes] | int:
    """A value in comparable form: an empty account is a missing one; without generations."""
    if isinstance(value, int):
        return value
    return (0, 0, EMPTY_CODE) if value is None else (value.nonce, value.balance, value.code_hash)


def _difference(
    key: Key, number: int, value: Account | int | None, proven: Account | int | None
) -> str:
    address, slot = key
    what = "account" if slot is None else f"slot {slot:#x} of"
    shown = (
        (f"{each:#x}" if isinstance(each, int) else str(_comparable(each)[:2]))  # type: ignore[index]
        for each in (value, proven)
    )
    return f"{what} 0x{address.hex()} at block {number}: {' is not '.join(shown)}"
