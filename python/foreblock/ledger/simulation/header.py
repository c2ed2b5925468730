"""The header that a simulated block begins with: defaults by fork and chain.

What execution gives (roots, bloom, gas) is filled in when the block is finished. Fee
recipient and gas limit are carried on from block to block; randomness, beacon root,
blob fee and withdrawals are not. Only a block that is simulated inside one in progress has
all of that block's, and its parent.
"""

import struct
from typing import Any, TypeVar

from foreblock._engine import Header, withdrawals_root
from foreblock.ledger.block_overrides import BlockOverrides
from foreblock.ledger.forks import EthereumFork, OptimismFork, Rules
from foreblock.ledger.genesis import EMPTY_REQUESTS_HASH, EMPTY_ROOT
from foreblock.ledger.header_rules import base_fee_after, excess_blob_gas_after
from foreblock.ledger.simulation.branch import Branch
from foreblock.ledger.simulation.timeline import Place
from foreblock.primitives import ZERO_HASH

T = TypeVar("T")


def open_header(
    branch: Branch, place: Place, overrides: BlockOverrides, rules: Rules, *, validation: bool
) -> Header:
    """The header of the next block of a branch, at this place and with these overrides."""
    parent, fork = branch.parent, rules.ethereum
    inside = place.number == parent.number
    fields: dict[str, Any] = {
        "parent_hash": parent.parent_hash if inside else parent.hash,
        "beneficiary": _or(overrides.beneficiary, parent.beneficiary),
        "state_root": ZERO_HASH,
        "number": place.number,
        "gas_limit": _or(overrides.gas_limit, parent.gas_limit),
        "timestamp": place.time,
        "difficulty": 0 if rules.merged else _or(overrides.difficulty, parent.difficulty),
        "extra_data": _extra_data(branch, rules),
        "mix_hash": _or(overrides.mix_hash, parent.mix_hash if inside else ZERO_HASH),
    }
    if fork >= EthereumFork.LONDON:
        fee = overrides.base_fee_per_gas
        if fee is None:
            fee = _base_fee(branch, rules, inside=inside) if validation else 0
        fields["base_fee_per_gas"] = fee
    if fork >= EthereumFork.SHANGHAI:
        # On OP chains as well, as its specification of simulated blocks has it, although
        # real blocks state another root there from Isthmus on.
        paid = overrides.withdrawals
        fields["withdrawals_root"] = withdrawals_root(paid) if paid else EMPTY_ROOT
    if fork >= EthereumFork.CANCUN:
        excess = excess_blob_gas_after(parent, place.time, branch.profile, rules)
        fields["blob_gas_used"] = 0
        fields["excess_blob_gas"] = excess
        root = (parent.parent_beacon_block_root if inside else None) or ZERO_HASH
        fields["parent_beacon_block_root"] = _or(overrides.parent_beacon_block_root, root)
    if fork >= EthereumFork.PRAGUE:
        fields["requests_hash"] = EMPTY_REQUESTS_HASH
    return Header(**fields)


def _base_fee(branch: Branch, rules: Rules, *, inside: bool) -> int:
    if inside:
        return branch.parent.base_fee_per_gas or 0
    return base_fee_after(branch.parent, rules, branch.rules, branch.profile)


def _or(given: T | None, otherwise: T) -> T:
    return otherwise if given is None else given


def _extra_data(branch: Branch, rules: Rules) -> bytes:
    """Nothing on Ethereum; on OP chains the fee parameters, carried from the parent.

    Where a simulation crosses the fork that brings them or lengthens them, the chain's
    constants and no lowest fee stand in for what a sequencer would have chosen.
    """
    if not rules.includes(OptimismFork.HOLOCENE):
        return b""
    extra_data = branch.parent.extra_data
    if not branch.rules.includes(OptimismFork.HOLOCENE):
        elasticity, denominator = branch.profile.elasticity(rules)
        extra_data = struct.pack(">BII", 0, denominator, elasticity)
    if rules.includes(OptimismFork.JOVIAN) and len(extra_data) == struct.calcsize(">BII"):
        extra_data = struct.pack(">B8sQ", 1, extra_data[1:], 0)
    return extra_data
