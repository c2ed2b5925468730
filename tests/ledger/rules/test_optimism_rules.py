import struct

import pytest

from foreblock._engine import Header
from foreblock.errors import BadBlock
from foreblock.ledger.rules.check import Check
from foreblock.ledger.rules.fees import (
    FeeParameters,
    check_extra_data,
    decode_extra_data,
    encode_extra_data,
    next_optimism_base_fee,
)
from foreblock.ledger.rules.forks import ETHEREUM_RULES_OF, OptimismFork, Rules
from support.each_case import each_case
from support.payloads.headers import PRAGUE, header

CONSTANTS = (6, 250)


def rules(fork: OptimismFork) -> Rules:
    return Rules(ETHEREUM_RULES_OF[fork], fork)


def jovian(denominator: int, elasticity: int, minimum: int) -> bytes:
    return struct.pack(">BIIQ", 1, denominator, elasticity, minimum)


def parent(extra_data: bytes, base_fee: int, gas_used: int, blob_gas_used: int = 0) -> Header:
    return header(
        PRAGUE,
        extra_data=extra_data,
        base_fee_per_gas=base_fee,
        gas_used=gas_used,
        gas_limit=400_000_000,
        blob_gas_used=blob_gas_used,
    )


def test_published_samples_of_extra_data() -> None:
    """Unichain Sepolia under Holocene; Base's main network under Jovian."""
    holocene = bytes.fromhex("00000000320000000c")
    assert decode_extra_data(holocene, OptimismFork.HOLOCENE) == FeeParameters(50, 12, 0)
    base = bytes.fromhex("01000000640000000500000000004c4b40")
    assert decode_extra_data(base, OptimismFork.JOVIAN) == FeeParameters(100, 5, 5_000_000)
    assert encode_extra_data(FeeParameters(100, 5, 5_000_000)) == bytes.fromhex(
        "01000000640000000500000000004c4b40"
    )


@pytest.mark.parametrize(
    ("base_fee", "gas_used", "expected"),
    [
        (10**9, 200_000_000, 1_015_000_000),
        (10**9, 0, 990_000_000),
        (5_000_000, 0, 5_000_000),
    ],
)
def test_base_fee_follows_the_parents_own_parameters(
    base_fee: int, gas_used: int, expected: int
) -> None:
    before = parent(jovian(100, 5, 5_000_000), base_fee, gas_used)
    assert next_optimism_base_fee(before, rules(OptimismFork.JOVIAN), CONSTANTS) == expected


def test_zeros_in_a_genesis_mean_the_chains_constants() -> None:
    """(250, 6) without a floor: 997,800,001 from 10^9 at 30 of 400 million gas."""
    before = parent(jovian(0, 0, 0), 10**9, 30_000_000)
    assert next_optimism_base_fee(before, rules(OptimismFork.JOVIAN), CONSTANTS) == 997_800_001


def test_data_footprint_counts_as_use_from_jovian_on() -> None:
    heavy = parent(jovian(100, 5, 0), 10**9, gas_used=0, blob_gas_used=200_000_000)
    assert next_optimism_base_fee(heavy, rules(OptimismFork.JOVIAN), CONSTANTS) == 1_015_000_000
    holocene = parent(struct.pack(">BII", 0, 100, 5), 10**9, gas_used=0, blob_gas_used=200_000_000)
    assert next_optimism_base_fee(holocene, rules(OptimismFork.ISTHMUS), CONSTANTS) == 990_000_000


@each_case(
    ("fork", "extra_data", "expected"),
    [
        (OptimismFork.GRANITE, b"\0", "0x"),
        (OptimismFork.HOLOCENE, b"", "9 bytes"),
        (OptimismFork.HOLOCENE, jovian(50, 6, 0), "9 bytes"),
        (OptimismFork.HOLOCENE, struct.pack(">BII", 1, 50, 6), "version 0"),
        (OptimismFork.HOLOCENE, struct.pack(">BII", 0, 0, 6), "above 0"),
        (OptimismFork.HOLOCENE, struct.pack(">BII", 0, 50, 0), "above 0"),
        (OptimismFork.JOVIAN, struct.pack(">BII", 0, 50, 6), "17 bytes"),
        (OptimismFork.JOVIAN, struct.pack(">BIIQ", 0, 50, 6, 0), "version 1"),
        (OptimismFork.KARST, struct.pack(">BIIQ", 1, 0, 0, 0), "above 0"),
    ],
)
def test_malformed_extra_data_is_refused(
    fork: OptimismFork, extra_data: bytes, expected: str
) -> None:
    with pytest.raises(BadBlock) as caught:
        check_extra_data(Check(5), header(PRAGUE, extra_data=extra_data), fork)
    assert caught.value.what == "extra data"
    assert expected in caught.value.expected


def test_wellformed_extra_data_is_accepted() -> None:
    check_extra_data(Check(5), header(PRAGUE), OptimismFork.GRANITE)
    holocene = struct.pack(">BII", 0, 50, 6)
    check_extra_data(Check(5), header(PRAGUE, extra_data=holocene), OptimismFork.ISTHMUS)
    check_extra_data(Check(5), header(PRAGUE, extra_data=jovian(50, 6, 1)), OptimismFork.KARST)
