"""The header that a simulated block begins with: defaults by fork and chain.

Results of execution (roots, bloom, gas) are filled in when the block is finished. Fee
recipient and gas limit are inherited from the parent; randomness, beacon root, blob fee and
withdrawals are not. Only a block that is simulated inside a block in progress inherits all of
them, and has the parent of that block.
"""

import struct

from foreblock._engine import Header, withdrawals_root
from foreblock.ledger.calls.block_overrides import BlockOverrides
from foreblock.ledger.rules.empty_roots import EMPTY_REQUESTS_HASH, EMPTY_ROOT
from foreblock.ledger.rules.forks import CANCUN, HOLOCENE, JOVIAN, LONDON, PRAGUE, SHANGHAI, Rules
from foreblock.ledger.rules.header_rules import base_fee_after, excess_blob_gas_after
from foreblock.ledger.simulation.simulated_chain import SimulatedChain
from foreblock.ledger.simulation.simulation_request import PlannedBlock
from foreblock.primitives import ZERO_HASH


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
