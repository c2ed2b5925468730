"""Fee parameters in the extra data of OP headers, and the base fee that follows.

From Holocene on a header names the elasticity and the denominator by which its
*child's* base fee moves, from Jovian also a floor for it. Layout, big-endian:

    byte 0        version: 0 (Holocene), 1 (Jovian)
    bytes 1-4     denominator
    bytes 5-8     elasticity
    bytes 9-16    lowest base fee, in wei (Jovian)
"""

import struct
from dataclasses import dataclass
from typing import Final

from foreblock._engine import Header
from foreblock.ledger.rules.check import Check
from foreblock.ledger.rules.fees import next_base_fee
from foreblock.ledger.rules.forks import OptimismFork, Rules

_HOLOCENE: Final = struct.Struct(">BII")
_JOVIAN: Final = struct.Struct(">BIIQ")


@dataclass(frozen=True, slots=True)
class FeeParameters:
    """Parameters for the base fee of a header's child."""

    denominator: int
    elasticity: int
    minimum_base_fee: int


def decode_extra_data(extra_data: bytes, fork: OptimismFork) -> FeeParameters:
    """The parameters in a header's extra data; raises `ValueError` when it has none."""
    jovian = fork >= OptimismFork.JOVIAN
    layout, version = (_JOVIAN, 1) if jovian else (_HOLOCENE, 0)
    if len(extra_data) != layout.size:
        raise ValueError(f"{layout.size} bytes")
    found, denominator, elasticity, *minimum = layout.unpack(extra_data)
    if found != version:
        raise ValueError(f"version {version}")
    return FeeParameters(denominator, elasticity, minimum[0] if minimum else 0)


def encode_extra_data(parameters: FeeParameters, fork: OptimismFork = OptimismFork.JOVIAN) -> bytes:
    """The extra data that states these parameters, as far as the fork has them."""
    if fork < OptimismFork.HOLOCENE:
        return b""
    if fork < OptimismFork.JOVIAN:
        return _HOLOCENE.pack(0, parameters.denominator, parameters.elasticity)
    return _JOVIAN.pack(
        1, parameters.denominator, parameters.elasticity, parameters.minimum_base_fee
    )


def check_extra_data(check: Check, header: Header, fork: OptimismFork) -> None:
    """Empty before Holocene; afterwards well formed, and nothing that divides is zero."""
    if fork < OptimismFork.HOLOCENE:
        check.equal("extra data", b"", header.extra_data)
        return
    try:
        parameters = decode_extra_data(header.extra_data, fork)
    except ValueError as expected:
        check.fail("extra data", str(expected), header.extra_data)
    if not (parameters.denominator and parameters.elasticity):
        check.fail("extra data", "a denominator and an elasticity above 0", header.extra_data)


def next_optimism_base_fee(parent: Header, parent_rules: Rules, constants: tuple[int, int]) -> int:
    """The base fee after a parent under Holocene or later rules.

    A genesis may carry zeros for both parameters; they mean the chain's constants
    (elasticity, denominator).
    """
    assert parent_rules.optimism is not None
    assert parent.base_fee_per_gas is not None
    parameters = decode_extra_data(parent.extra_data, parent_rules.optimism)
    elasticity, denominator = constants
    if parameters.denominator or parameters.elasticity:
        elasticity, denominator = parameters.elasticity, parameters.denominator
    used = parent.gas_used
    if parent_rules.includes(OptimismFork.JOVIAN):
        used = max(used, parent.blob_gas_used or 0)
    fee = next_base_fee(parent.base_fee_per_gas, used, parent.gas_limit, elasticity, denominator)
    return max(fee, parameters.minimum_base_fee)
