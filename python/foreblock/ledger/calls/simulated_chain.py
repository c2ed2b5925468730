"""The simulated chain so far: its last block, its state, and the header of the next block.

The state is one overlay above one state. Changes of one block are visible to the next; nothing is
ever written. State roots are computed only on request, else they are zero. The trie is opened on a
thread, because it may have to be built first; roots of more than a few changes are computed there
as well. All blocks share the gas of one request.

A header begins with defaults by fork and chain; results of execution (roots, bloom, gas) are filled
in when the block is finished. Fee recipient and gas limit are inherited from the parent;
randomness, beacon root, blob fee and withdrawals are not. Only a block that is simulated inside a
block in progress inherits all of them, and has the parent of that block.
"""

import struct
from functools import partial
from typing import Final

from foreblock._engine import Changes, Header, SealedBody, State, StateTrie, withdrawals_root
from foreblock.ledger.calls.request import (
    BlockOverrides,
    PlannedBlock,
    SimulationLimits,
    SimulationRequest,
)
from foreblock.ledger.reading.blocks import BlockContext, ReadableBlock
from foreblock.ledger.rules.check import EMPTY_REQUESTS_HASH, EMPTY_ROOT
from foreblock.ledger.rules.forks import (
    CANCUN,
    HOLOCENE,
    JOVIAN,
    LONDON,
    PARIS,
    PRAGUE,
    SHANGHAI,
    Rules,
)
from foreblock.ledger.rules.header_rules import base_fee_after, excess_blob_gas_after
from foreblock.primitives import ZERO_HASH
from foreblock.scheduling.steps import UNHURRIED, Pace, Steps
from foreblock.scheduling.thresholds import THRESHOLDS


class SimulatedChain:
    """A chain of simulated blocks that begins after a block of the real one."""

    def __init__(
        self,
        base: ReadableBlock,
        state: State,
        unused: int,
        request: SimulationRequest,
        limits: SimulationLimits,
        pace: Pace = UNHURRIED,
        root: bytes | None = None,
    ) -> None:
        """Begin after `base`. The store has never used the number `unused` nor any above it.

        Where the state is known in part, `root` is that of the sealed block below it.
        """
        # Fixed.
        self.base: Final = base
        self.profile: Final = base.profile
        self.overlay: Final = state.overlay()
        # The state of a block in progress knows the hashes of those below it only.
        self.overlay.set_block_hash(base.number, base.hash)
        self.validation: Final = request.validation
        self.trace_transfers: Final = request.trace_transfers
        self.pace: Final = pace
        # Changed by every block.
        self.budget = limits.gas  # left for all calls to come
        self.output_left = limits.output  # bytes that they may return
        self.rules = base.rules  # of the parent
        # The context of the last block, if it had no overrides and there is no validation.
        self.usual: BlockContext | None = None
        self._last: SealedBody | None = None
        self._total_difficulty = base.total_difficulty
        self._state: Final = state
        self._root: Final = root
        self._trie: StateTrie | None = None  # opened with the first root
        self.has_roots: Final = request.state_roots  # whether state roots are computed
        self._unused = unused

    @property
    def is_at_base(self) -> bool:
        """True if nothing is simulated yet."""
        return self._last is None

    @property
    def parent(self) -> Header:
        return self.base.header if self._last is None else self._last.header

    def rules_of_next(self, number: int, time: int) -> Rules:
        """The rules of a child; from the first fork by time on every block is merged."""
        merged = self.profile.merged(self._total_difficulty)
        forks = self.profile.forks_by_time
        merged = merged or bool(forks and time >= forks[0][0])
        return self.profile.rules(number, time, merged=merged)

    def state_root(self) -> Steps[bytes]:
        """The current root of the state."""
        if not self.has_roots:
            return ZERO_HASH
        if self._trie is None:
            # It may have to be built from deltas, or from the whole state.
            self._trie = yield partial(_open, self._state, self._root)
        # Lives of accounts that begin after this root must not be taken for those before.
        changes = self.overlay.take(self._unused)
        self._unused += 1
        if changes.entries <= THRESHOLDS.rooted_entries:
            return _root(self._trie, changes)
        root: bytes = yield partial(_root, self._trie, changes)
        return root

    def extend(self, block: SealedBody, rules: Rules) -> None:
        self.rules = rules
        self._last = block
        if rules.ethereum < PARIS:
            self._total_difficulty += block.header.difficulty


def _open(state: State, root: bytes | None, **_limits: int | None) -> StateTrie:
    """The trie of a state; it cannot be interrupted, and changes nothing."""
    return state.trie(root=root)


def _root(trie: StateTrie, changes: Changes, **_limits: int | None) -> bytes:
    """The root after the changes; it cannot be interrupted, and grows with their number."""
    trie.apply(changes)
    return trie.root()


def open_header(
    chain: SimulatedChain, planned: PlannedBlock, overrides: BlockOverrides, rules: Rules
) -> Header:
    """The header of the next block of a chain, as planned and with these overrides."""
    parent, fork = chain.parent, rules.ethereum
    inside = planned.number == parent.number  # in the block in progress, not after it
    gas_limit, cancun = overrides.gas_limit, fork >= CANCUN
    return Header(
        parent_hash=parent.parent_hash if inside else parent.hash,
        beneficiary=overrides.beneficiary or parent.beneficiary,
        state_root=ZERO_HASH,
        number=planned.number,
        gas_limit=parent.gas_limit if gas_limit is None else gas_limit,
        timestamp=planned.time,
        difficulty=_difficulty(parent, overrides, rules),
        extra_data=_extra_data(chain, rules),
        mix_hash=overrides.mix_hash or (parent.mix_hash if inside else ZERO_HASH),
        base_fee_per_gas=_base_fee(chain, overrides, rules, inside=inside),
        withdrawals_root=_withdrawals_root(overrides) if fork >= SHANGHAI else None,
        blob_gas_used=0 if cancun else None,
        excess_blob_gas=(
            excess_blob_gas_after(parent, planned.time, chain.profile, rules) if cancun else None
        ),
        parent_beacon_block_root=(
            _beacon_root(parent, overrides, inside=inside) if cancun else None
        ),
        requests_hash=EMPTY_REQUESTS_HASH if fork >= PRAGUE else None,
    )


def header_after(
    like: Header, chain: SimulatedChain, planned: PlannedBlock, rules: Rules
) -> Header:
    """The header of the next block of a chain, where it has no overrides.

    `like` is the header that the last block began with, under the same rules, also without
    overrides and without validation: it already has every inherited field.
    """
    parent = chain.parent
    excess = like.excess_blob_gas
    if excess is not None:
        excess = excess_blob_gas_after(parent, planned.time, chain.profile, rules)
    return like.replace(
        parent_hash=parent.hash,
        number=planned.number,
        timestamp=planned.time,
        excess_blob_gas=excess,
    )


def _difficulty(parent: Header, overrides: BlockOverrides, rules: Rules) -> int:
    if rules.merged:
        return 0
    return parent.difficulty if overrides.difficulty is None else overrides.difficulty


def _beacon_root(parent: Header, overrides: BlockOverrides, *, inside: bool) -> bytes:
    root = parent.parent_beacon_block_root if inside else None
    return overrides.parent_beacon_block_root or root or ZERO_HASH


def _base_fee(
    chain: SimulatedChain, overrides: BlockOverrides, rules: Rules, *, inside: bool
) -> int | None:
    """The override; else the chain's formula under validation, and 0 without."""
    if rules.ethereum < LONDON:
        return None
    if overrides.base_fee_per_gas is not None:
        return overrides.base_fee_per_gas
    if not chain.validation:
        return 0
    if inside:
        return chain.parent.base_fee_per_gas or 0
    return base_fee_after(chain.parent, rules, chain.rules, chain.profile)


def _withdrawals_root(overrides: BlockOverrides) -> bytes:
    """The root of the withdrawals, as the specification of simulated blocks says.

    Real OP blocks have another root from Isthmus on.
    """
    return withdrawals_root(overrides.withdrawals) if overrides.withdrawals else EMPTY_ROOT


def _extra_data(chain: SimulatedChain, rules: Rules) -> bytes:
    """Empty on Ethereum; on OP chains the fee parameters of the parent.

    Where a simulation crosses the fork that adds or extends them, the chain's constants and
    a minimum fee of 0 replace the sequencer's choice.
    """
    if not rules.includes(HOLOCENE):
        return b""
    extra_data = chain.parent.extra_data
    if not chain.rules.includes(HOLOCENE):
        elasticity, denominator = chain.profile.elasticity(rules)
        extra_data = struct.pack(">BII", 0, denominator, elasticity)
    if rules.includes(JOVIAN) and len(extra_data) == struct.calcsize(">BII"):
        extra_data = struct.pack(">B8sQ", 1, extra_data[1:], 0)
    return extra_data
