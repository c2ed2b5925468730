"""The header that a simulated block begins with: defaults by fork and chain.

What execution gives (roots, bloom, gas) is filled in when the block is finished. Fee
recipient and gas limit are carried on from block to block; randomness, beacon root,
blob fee and withdrawals are not. Only a block that is simulated inside one in progress has
all of that block's, and its parent.
"""

import struct

from foreblock._engine import Header, withdrawals_root
from foreblock.ledger.calls.block_overrides import BlockOverrides
from foreblock.ledger.rules.empty_roots import EMPTY_REQUESTS_HASH, EMPTY_ROOT
from foreblock.ledger.rules.forks import CANCUN, HOLOCENE, JOVIAN, LONDON, PRAGUE, SHANGHAI, Rules
from foreblock.ledger.rules.header_rules import base_fee_after, excess_blob_gas_after
from foreblock.ledger.simulation.branch import Branch
from foreblock.ledger.simulation.timeline import Place
from foreblock.primitives import ZERO_HASH


def open_header(branch: Branch, place: Place, overrides: BlockOverrides, rules: Rules) -> Header:
    """The header of the next block of a branch, at this place and with these overrides."""
    parent, fork = branch.parent, rules.ethereum
    inside = place.number == parent.number  # in the block in progress, not after it
    gas_limit, cancun = overrides.gas_limit, fork >= CANCUN
    return Header(
        parent_hash=parent.parent_hash if inside else parent.hash,
        beneficiary=overrides.beneficiary or parent.beneficiary,
        state_root=ZERO_HASH,
        number=place.number,
        gas_limit=parent.gas_limit if gas_limit is None else gas_limit,
        timestamp=place.time,
        difficulty=_difficulty(parent, overrides, rules),
        extra_data=_extra_data(branch, rules),
        mix_hash=overrides.mix_hash or (parent.mix_hash if inside else ZERO_HASH),
        base_fee_per_gas=_base_fee(branch, overrides, rules, inside=inside),
        withdrawals_root=_withdrawals_root(overrides) if fork >= SHANGHAI else None,
        blob_gas_used=0 if cancun else None,
        excess_blob_gas=(
            excess_blob_gas_after(parent, place.time, branch.profile, rules) if cancun else None
        ),
        parent_beacon_block_root=(
            _beacon_root(parent, overrides, inside=inside) if cancun else None
        ),
        requests_hash=EMPTY_REQUESTS_HASH if fork >= PRAGUE else None,
    )


def header_after(like: Header, branch: Branch, place: Place, rules: Rules) -> Header:
    """The header of the next block of a branch, if nothing is said of it.

    `like` is what the last block was opened with, under the same rules and with nothing said
    of it either, nor is anything judged: then all that is carried on, or is not, is there.
    """
    parent = branch.parent
    excess = like.excess_blob_gas
    if excess is not None:
        excess = excess_blob_gas_after(parent, place.time, branch.profile, rules)
    return like.replace(
        parent_hash=parent.hash,
        number=place.number,
        timestamp=place.time,
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
    branch: Branch, overrides: BlockOverrides, rules: Rules, *, inside: bool
) -> int | None:
    """As overridden; by the chain's formula only where fees are judged, else nothing."""
    if rules.ethereum < LONDON:
        return None
    if overrides.base_fee_per_gas is not None:
        return overrides.base_fee_per_gas
    if not branch.validation:
        return 0
    if inside:
        return branch.parent.base_fee_per_gas or 0
    return base_fee_after(branch.parent, rules, branch.rules, branch.profile)


def _withdrawals_root(overrides: BlockOverrides) -> bytes:
    """Of the withdrawals, on OP chains as well: the specification of simulated blocks has it.

    Real blocks of theirs state another root from Isthmus on.
    """
    return withdrawals_root(overrides.withdrawals) if overrides.withdrawals else EMPTY_ROOT


def _extra_data(branch: Branch, rules: Rules) -> bytes:
    """Nothing on Ethereum; on OP chains the fee parameters, carried from the parent.

    Where a simulation crosses the fork that brings them or lengthens them, the chain's
    constants and no lowest fee stand in for what a sequencer would have chosen.
    """
    if not rules.includes(HOLOCENE):
        return b""
    extra_data = branch.parent.extra_data
    if not branch.rules.includes(HOLOCENE):
        elasticity, denominator = branch.profile.elasticity(rules)
        extra_data = struct.pack(">BII", 0, denominator, elasticity)
    if rules.includes(JOVIAN) and len(extra_data) == struct.calcsize(">BII"):
        extra_data = struct.pack(">B8sQ", 1, extra_data[1:], 0)
    return extra_data
