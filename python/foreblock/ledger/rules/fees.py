"""The prices of gas: base fee and blob fee of a block, from its parent.

Plain integer formulas, dividing in the order the specifications do; every division
truncates. Nothing here looks at a schedule: the caller passes the parameters in force.
"""

from typing import Final

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
