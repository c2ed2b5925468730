import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreblock.ledger.rules.fees import (
    GAS_PER_BLOB,
    blob_base_fee,
    next_base_fee,
    next_excess_blob_gas,
)
from foreblock.ledger.rules.profile import BlobParameters
from support.each_case import each_case

CANCUN = BlobParameters(3, 6, 3_338_477)
PRAGUE = BlobParameters(6, 9, 5_007_716)


@each_case(
    ("base_fee", "gas_used", "gas_limit", "elasticity", "denominator", "expected"),
    [
        # The published chain's head (execution of the 55th block).
        (27_399_063, 339_825, 200_000_000, 2, 8, 23_985_819),
        # EIP-1559's own table.
        (1_000_000_000, 10_000_000, 20_000_000, 2, 8, 1_000_000_000),
        (1_000_000_000, 9_000_000, 20_000_000, 2, 8, 987_500_000),
        (1_000_000_000, 11_000_000, 20_000_000, 2, 8, 1_012_500_000),
        # A rise is at least one wei; a fall may be zero.
        (1, 20_000_000, 20_000_000, 2, 8, 2),
        (1, 0, 20_000_000, 2, 8, 1),
        (0, 20_000_000, 20_000_000, 2, 8, 1),
    ],
)
def test_base_fee_follows_the_use_of_gas(
    base_fee: int,
    gas_used: int,
    gas_limit: int,
    elasticity: int,
    denominator: int,
    expected: int,
) -> None:
    assert next_base_fee(base_fee, gas_used, gas_limit, elasticity, denominator) == expected


def test_a_limit_below_the_elasticity_does_not_divide_by_zero() -> None:
    assert next_base_fee(7, 1, 1, 2, 8) == 7


@pytest.mark.parametrize(
    ("excess", "fee"),
    [
        # EIP-4844 test vectors (consensus tests, blob base fee).
        (0, 1),
        (2_314_057, 1),
        (2_314_058, 2),
        (10 * 2**20, 23),
    ],
)
def test_blob_base_fee_at_an_excess(excess: int, fee: int) -> None:
    assert blob_base_fee(excess, CANCUN) == fee


def test_excess_falls_to_zero_below_the_target() -> None:
    used = CANCUN.target * GAS_PER_BLOB
    assert next_excess_blob_gas(0, used - GAS_PER_BLOB, 10**9, CANCUN, reserve_price=False) == 0
    assert next_excess_blob_gas(0, used, 10**9, CANCUN, reserve_price=False) == 0
    assert (
        next_excess_blob_gas(0, used + GAS_PER_BLOB, 10**9, CANCUN, reserve_price=False)
        == GAS_PER_BLOB
    )


def test_excess_grows_slower_while_blobs_cost_less_than_their_reserve() -> None:
    """EIP-7918: blobs at 1 wei while 8192 times the base fee is more than a blob's gas."""
    used = PRAGUE.maximum * GAS_PER_BLOB
    cheap = next_excess_blob_gas(0, used, 10**9, PRAGUE, reserve_price=True)
    assert cheap == used * 3 // 9
    at_the_reserve = next_excess_blob_gas(0, used, 16, PRAGUE, reserve_price=True)
    assert at_the_reserve == used - PRAGUE.target * GAS_PER_BLOB
    just_above = next_excess_blob_gas(0, used, 17, PRAGUE, reserve_price=True)
    assert just_above == cheap


@given(st.integers(0, 10**12), st.integers(0, 60_000_000), st.integers(5_000, 60_000_000))
def test_base_fee_moves_at_most_by_its_denominator(base_fee: int, used: int, limit: int) -> None:
    after = next_base_fee(base_fee, min(used, limit), limit, 2, 8)
    assert abs(after - base_fee) <= max(base_fee // 8 + 1, 1) * 2
    assert after >= 0
