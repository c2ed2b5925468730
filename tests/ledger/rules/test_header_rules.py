from typing import Any

import pytest

from foreblock._engine import Header
from foreblock.errors import BadBlock
from foreblock.ledger.rules.fees import GAS_PER_BLOB
from foreblock.ledger.rules.forks import EthereumFork
from foreblock.ledger.rules.header_rules import MINIMUM_DIFFICULTY, check_header, next_difficulty
from foreblock.ledger.rules.profile import ChainProfile
from support.chains.profiles import JOVIAN, MERGED, OSAKA, profile
from support.each_case import each_case
from support.payloads.headers import MINED, PRAGUE, header

FRONTIER = {"chainId": 1}
HOMESTEAD = profile(FRONTIER, homesteadBlock=0)
LONDON_AT_ONE = profile(MERGED, londonBlock=1, terminalTotalDifficulty=10**9)
ETHEREUM = profile(OSAKA)
OPTIMISM = profile(JOVIAN)

JOVIAN_EXTRA_DATA = bytes.fromhex("010000003200000006") + bytes(8)
OPTIMISM_HEADER = PRAGUE | {"extra_data": JOVIAN_EXTRA_DATA}


def check(child: Header, parent: Header, chain: ChainProfile) -> None:
    merged = chain.merged(parent.difficulty)
    rules = chain.rules(child.number, child.timestamp, merged=merged)
    parent_rules = chain.rules_of_genesis(parent.timestamp)
    check_header(child, parent, rules, parent_rules, chain)


def child_of(parent: Header, fields: dict[str, Any], **changes: object) -> Header:
    """A valid child of a half-full parent, or one with changes."""
    valid = {"parent_hash": parent.hash, "number": parent.number + 1, "timestamp": 1_010}
    return header(fields | valid, **changes)


# A proof-of-work chain, a merged one and an OP chain: a parent each, and the fields of a valid
# child.
MINED_PARENT = header(MINED)
MERGED_PARENT = header(PRAGUE, gas_used=15_000_000)
OPTIMISM_PARENT = header(OPTIMISM_HEADER, gas_used=5_000_000)
CHAINS = {
    "mined": (HOMESTEAD, MINED_PARENT, MINED),
    "merged": (ETHEREUM, MERGED_PARENT, PRAGUE),
    "optimism": (OPTIMISM, OPTIMISM_PARENT, OPTIMISM_HEADER),
}


@pytest.mark.parametrize("name", CHAINS)
def test_valid_headers_are_accepted(name: str) -> None:
    chain, parent, fields = CHAINS[name]
    check(child_of(parent, fields), parent, chain)


def test_only_chains_of_short_blocks_have_equal_timestamps() -> None:
    section = {"eip1559Elasticity": 6, "eip1559Denominator": 50, "blockTime": 0.2}
    short = profile(JOVIAN, optimism=section)
    parent = OPTIMISM_PARENT
    check(child_of(parent, OPTIMISM_HEADER, timestamp=parent.timestamp), parent, short)
    with pytest.raises(BadBlock, match="time: expected not below the parent's"):
        check(child_of(parent, OPTIMISM_HEADER, timestamp=parent.timestamp - 1), parent, short)


# The name of each wrong field in the error, for every chain that checks it.
WRONG: list[tuple[str, str, dict[str, object]]] = [
    ("mined", "parent hash", {"parent_hash": b"\x01" * 32}),
    ("mined", "number", {"number": 2}),
    ("mined", "time", {"timestamp": 1_000}),
    ("mined", "difficulty", {"difficulty": 131_073}),
    ("mined", "length of extra data", {"extra_data": bytes(33)}),
    ("mined", "gas used", {"gas_used": 30_000_001}),
    ("mined", "gas limit", {"gas_limit": 30_029_296}),
    ("mined", "gas limit", {"gas_limit": 29_970_704}),
    ("mined", "base fee", {"base_fee_per_gas": 10**9}),
    ("merged", "difficulty", {"difficulty": 1}),
    ("merged", "nonce", {"nonce": b"\0" * 7 + b"\1"}),
    ("merged", "ommers hash", {"ommers_hash": b"\x01" * 32}),
    ("merged", "base fee", {"base_fee_per_gas": 10**9 + 1}),
    ("merged", "gas limit", {"gas_limit": 30_029_296}),
    ("merged", "excess blob gas", {"excess_blob_gas": GAS_PER_BLOB}),
    ("merged", "blob gas used", {"blob_gas_used": 10 * GAS_PER_BLOB}),
    ("merged", "requests hash", {"requests_hash": None}),
    ("merged", "length of extra data", {"extra_data": bytes(33)}),
    ("optimism", "extra data", {"extra_data": b""}),
    ("optimism", "base fee", {"base_fee_per_gas": 10**9 - 1}),
    ("optimism", "excess blob gas", {"excess_blob_gas": 1}),
    ("optimism", "difficulty", {"difficulty": 1}),
]


@each_case(("name", "what", "changes"), WRONG)
def test_each_wrong_field_is_named(name: str, what: str, changes: dict[str, object]) -> None:
    chain, parent, fields = CHAINS[name]
    with pytest.raises(BadBlock) as caught:
        check(child_of(parent, fields, **changes), parent, chain)
    assert caught.value.what == what
    assert caught.value.expected != caught.value.found


def test_gas_limit_may_move_by_less_than_a_1024th() -> None:
    for gas_limit in (30_029_295, 29_970_705):
        check(child_of(MINED_PARENT, MINED, gas_limit=gas_limit), MINED_PARENT, HOMESTEAD)


def test_gas_limit_of_an_optimism_block_is_its_own() -> None:
    child = child_of(OPTIMISM_PARENT, OPTIMISM_HEADER, gas_limit=400_000_000)
    check(child, OPTIMISM_PARENT, OPTIMISM)


def test_gas_limit_has_a_floor() -> None:
    parent = header(MINED, gas_limit=5_000)
    check(child_of(parent, MINED, gas_limit=5_001), parent, HOMESTEAD)
    with pytest.raises(BadBlock, match="gas limit: expected 5000 to 5003, found 4999"):
        check(child_of(parent, MINED, gas_limit=4_999), parent, HOMESTEAD)


def test_first_london_block_doubles_the_limit_and_starts_the_base_fee() -> None:
    first = {"gas_limit": 60_000_000, "base_fee_per_gas": 10**9}
    check(child_of(MINED_PARENT, MINED, **first), MINED_PARENT, LONDON_AT_ONE)
    with pytest.raises(BadBlock, match="base fee: expected 1000000000, found 7"):
        check(
            child_of(MINED_PARENT, MINED, **(first | {"base_fee_per_gas": 7})),
            MINED_PARENT,
            LONDON_AT_ONE,
        )
    with pytest.raises(BadBlock, match="gas limit"):
        check(
            child_of(MINED_PARENT, MINED, **(first | {"gas_limit": 30_000_000})),
            MINED_PARENT,
            LONDON_AT_ONE,
        )


def test_data_footprint_stands_in_blob_gas_used_from_jovian_on() -> None:
    check(
        child_of(OPTIMISM_PARENT, OPTIMISM_HEADER, blob_gas_used=80_000), OPTIMISM_PARENT, OPTIMISM
    )
    isthmus = profile(JOVIAN, jovianTime=None)
    fields = PRAGUE | {"extra_data": bytes.fromhex("000000003200000006")}
    parent = header(fields, gas_used=5_000_000)
    check(child_of(parent, fields), parent, isthmus)
    with pytest.raises(BadBlock, match="blob gas used: expected 0, found 80000"):
        check(child_of(parent, fields, blob_gas_used=80_000), parent, isthmus)


def test_denominator_changes_with_canyon_by_the_childs_time() -> None:
    canyon = {key: None for key in JOVIAN if key.endswith("Time") and key != "regolithTime"} | {
        "canyonTime": 1_010
    }
    chain = profile(JOVIAN, **canyon)
    bedrock = MINED | {"difficulty": 0, "base_fee_per_gas": 10**9}
    parent = header(bedrock, gas_used=0)
    before = child_of(parent, bedrock, timestamp=1_009, base_fee_per_gas=980_000_000)
    check(before, parent, chain)
    shanghai = bedrock | {"withdrawals_root": PRAGUE["withdrawals_root"]}
    check(child_of(parent, shanghai, base_fee_per_gas=996_000_000), parent, chain)


UNCLES = b"\x01" * 32


@each_case(
    ("fork", "elapsed", "steps"),
    [
        (EthereumFork.FRONTIER, 12, 1),
        (EthereumFork.FRONTIER, 13, -1),
        (EthereumFork.HOMESTEAD, 9, 1),
        (EthereumFork.HOMESTEAD, 10, 0),
        (EthereumFork.HOMESTEAD, 20, -1),
        (EthereumFork.HOMESTEAD, 100_000, -99),
        (EthereumFork.BYZANTIUM, 8, 1),
        (EthereumFork.BYZANTIUM, 9, 0),
        (EthereumFork.BYZANTIUM, 18, -1),
        (EthereumFork.BYZANTIUM, 100_000, -99),
    ],
)
def test_difficulty_moves_in_steps_by_the_time_a_block_took(
    fork: EthereumFork, elapsed: int, steps: int
) -> None:
    parent = header(MINED, difficulty=2048 * 10**6)
    assert next_difficulty(parent, 1_000 + elapsed, fork) == (2048 + steps) * 10**6


def test_uncles_of_the_parent_raise_it_from_byzantium_on() -> None:
    parent = header(MINED, difficulty=2048 * 10**6, ommers_hash=UNCLES)
    assert next_difficulty(parent, 1_000, EthereumFork.BYZANTIUM) == 2050 * 10**6
    assert next_difficulty(parent, 1_000, EthereumFork.HOMESTEAD) == 2049 * 10**6


def test_difficulty_has_a_floor() -> None:
    parent = header(MINED, difficulty=MINIMUM_DIFFICULTY)
    assert next_difficulty(parent, 2_000, EthereumFork.BYZANTIUM) == MINIMUM_DIFFICULTY


@each_case(
    ("number", "fork", "bomb"),
    [
        (199_999, EthereumFork.FRONTIER, 0),
        (200_000, EthereumFork.FRONTIER, 1),
        (299_999, EthereumFork.FRONTIER, 1),
        (300_000, EthereumFork.FRONTIER, 2),
        (1_200_000, EthereumFork.HOMESTEAD, 2**10),
        (4_370_000, EthereumFork.BYZANTIUM, 2**11),
        (7_280_000, EthereumFork.CONSTANTINOPLE, 2**20),
        (9_200_000, EthereumFork.MUIR_GLACIER, 1),
        (12_965_000, EthereumFork.LONDON, 2**30),
        (13_773_000, EthereumFork.ARROW_GLACIER, 2**28),
        (15_050_000, EthereumFork.GRAY_GLACIER, 2**34),
    ],
)
def test_bomb_grows_with_the_number_and_each_delay_sets_it_back(
    number: int, fork: EthereumFork, bomb: int
) -> None:
    parent = header(MINED, difficulty=2048 * 10**6, number=number - 1)
    calm = header(MINED, difficulty=2048 * 10**6)
    elapsed = 1_000 + 5
    assert next_difficulty(parent, elapsed, fork) - next_difficulty(calm, elapsed, fork) == bomb


def test_first_mainnet_blocks() -> None:
    """Blocks 0 and 1 of Ethereum's main network."""
    genesis = header(MINED, difficulty=17_179_869_184, timestamp=0)
    first = next_difficulty(genesis, 1_438_269_988, EthereumFork.FRONTIER)
    assert first == 17_171_480_576
