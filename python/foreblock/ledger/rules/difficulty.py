"""The difficulty of a mined block, from its parent.

Three formulas by fork, each with the exponential "bomb" that later forks delayed.
The seal itself (nonce and mix hash) is not checked: published test chains have none,
and the hashes of a chain cover those fields.
"""

from typing import Final

from foreblock._engine import Header
from foreblock.ledger.rules.empty_roots import EMPTY_OMMERS_HASH
from foreblock.ledger.rules.forks import EthereumFork

MINIMUM_DIFFICULTY: Final = 131_072

# By how many blocks each fork sets the bomb back, newest first.
_BOMB_DELAYS: Final = (
    (EthereumFork.GRAY_GLACIER, 11_400_000),  # EIP-5133
    (EthereumFork.ARROW_GLACIER, 10_700_000),  # EIP-4345
    (EthereumFork.LONDON, 9_700_000),  # EIP-3554
    (EthereumFork.MUIR_GLACIER, 9_000_000),  # EIP-2384
    (EthereumFork.CONSTANTINOPLE, 5_000_000),  # EIP-1234
    (EthereumFork.BYZANTIUM, 3_000_000),  # EIP-649
    (EthereumFork.FRONTIER, 0),
)


def next_difficulty(parent: Header, time: int, fork: EthereumFork) -> int:
    """The difficulty of the child of `parent` at this time under `fork`'s rules."""
    step = parent.difficulty // 2048 * _direction(parent, time, fork)
    difficulty = max(parent.difficulty + step, MINIMUM_DIFFICULTY)
    return difficulty + _bomb(parent.number + 1, fork)


def _direction(parent: Header, time: int, fork: EthereumFork) -> int:
    """Steps up or, negative, down, from the time since the parent."""
    elapsed = time - parent.timestamp
    if fork >= EthereumFork.BYZANTIUM:  # EIP-100
        uncles = 1 if parent.ommers_hash == EMPTY_OMMERS_HASH else 2
        return max(uncles - elapsed // 9, -99)
    if fork >= EthereumFork.HOMESTEAD:  # EIP-2
        return max(1 - elapsed // 10, -99)
    return 1 if elapsed < 13 else -1


def _bomb(number: int, fork: EthereumFork) -> int:
    delay = next(blocks for since, blocks in _BOMB_DELAYS if fork >= since)
    period = max(number - delay, 0) // 100_000
    return 1 << (period - 2) if period > 1 else 0
