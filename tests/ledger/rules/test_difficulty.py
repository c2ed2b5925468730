"""The vectors of the bomb are mainnet headers, whose difficulties anybody can look up."""

from foreblock.ledger.rules.forks import EthereumFork
from foreblock.ledger.rules.header_rules import MINIMUM_DIFFICULTY, next_difficulty
from support.each_case import each_case
from support.payloads.headers import MINED, header

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
