"""The prices of gas: base fee and blob fee of a block, from its parent.

Plain integer formulas, dividing in the order of the specifications; every division truncates. The
caller passes the parameters in force.

Since Holocene the extra data of an OP header states the elasticity and the denominator by which
its *child's* base fee changes, since Jovian also a minimum. Layout, big-endian:

    byte 0        version: 0 (Holocene), 1 (Jovian)
    bytes 1-4     denominator
    bytes 5-8     elasticity
    bytes 9-16    lowest base fee, in wei (Jovian)
"""

import struct
from typing import Final

from msgspec import Struct

from foreblock._engine import Header
from foreblock.ledger.rules.check import Check
from foreblock.ledger.rules.forks import OptimismFork, Rules
from foreblock.ledger.rules.profile import BlobParameters

INITIAL_BASE_FEE: Final = 10**9  # EIP-1559, the first London block
GAS_PER_BLOB: Final = 2**17  # EIP-4844
BLOB_BASE_COST: Final = 2**13  # EIP-7918
MINIMUM_BLOB_BASE_FEE: Final = 1  # EIP-4844


def next_base_fee(
    base_fee: int, gas_used: int, gas_limit: int, elasticity: int, denominator: int
) -> int:
    """The base fee after a block with these facts (EIP-1559)."""
    target = gas_limit // elasticity
    if target in (0, gas_used):
        return base_fee
    change = base_fee * abs(gas_used - target) // target // denominator
    return base_fee + max(change, 1) if gas_used > target else base_fee - change


def blob_base_fee(excess: int, parameters: BlobParameters) -> int:
    """The price of a unit of blob gas at this excess (EIP-4844)."""
    return _fake_exponential(MINIMUM_BLOB_BASE_FEE, excess, parameters.update_fraction)


def next_excess_blob_gas(
    excess: int, used: int, base_fee: int, parameters: BlobParameters, *, reserve_price: bool
) -> int:
    """The excess after a block with these facts, under the new block's parameters.

    With `reserve_price` blobs cost at least the gas that carrying them takes: while they are
    cheaper, the excess does not fall (EIP-7918).
    """
    target = parameters.target * GAS_PER_BLOB
    if excess + used < target:
        return 0
    reserve = BLOB_BASE_COST * base_fee
    if reserve_price and reserve > GAS_PER_BLOB * blob_base_fee(excess, parameters):
        return excess + used * (parameters.maximum - parameters.target) // parameters.maximum
    return excess + used - target


def _fake_exponential(factor: int, numerator: int, denominator: int) -> int:
    """An integer approximation of factor * e ** (numerator / denominator), by Taylor series."""
    i, output, term = 1, 0, factor * denominator
    while term > 0:
        output += term
        term = term * numerator // (denominator * i)
        i += 1
    return output // denominator


_HOLOCENE: Final = struct.Struct(">BII")
_JOVIAN: Final = struct.Struct(">BIIQ")


class FeeParameters(Struct, frozen=True):
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
