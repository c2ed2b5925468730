"""Gas of a transaction before it runs: its intrinsic gas, and the floor price of its data."""

from typing import Final

from foreblock.ledger.rules.forks import HOMESTEAD, ISTANBUL, PRAGUE, SHANGHAI, Rules

TRANSACTION: Final = 21_000
CREATION: Final = 32_000  # more than a call, from Homestead on (EIP-2)
ZERO_BYTE: Final = 4
OTHER_BYTE: Final = 16  # from Istanbul on (EIP-2028)
OTHER_BYTE_BEFORE_ISTANBUL: Final = 68
WORD_OF_INIT_CODE: Final = 2  # from Shanghai on (EIP-3860)
MAX_INIT_CODE: Final = 49_152  # the same
ACCESSED_ADDRESS: Final = 2_400  # EIP-2930
ACCESSED_SLOT: Final = 1_900
AUTHORIZATION: Final = 25_000  # EIP-7702
FLOOR_PER_TOKEN: Final = 10  # from Prague on (EIP-7623)


def intrinsic_gas(
    data: bytes, *, creates: bool, accessed: tuple[int, int], authorizations: int, rules: Rules
) -> int:
    """The gas that is charged before the first opcode; `accessed` are addresses and slots."""
    fork = rules.ethereum
    zeros = data.count(0)
    other = OTHER_BYTE if fork >= ISTANBUL else OTHER_BYTE_BEFORE_ISTANBUL
    gas = TRANSACTION + zeros * ZERO_BYTE + (len(data) - zeros) * other
    if creates and fork >= HOMESTEAD:
        gas += CREATION
    if creates and fork >= SHANGHAI:
        gas += (len(data) + 31) // 32 * WORD_OF_INIT_CODE
    gas += ACCESSED_ADDRESS * accessed[0] + ACCESSED_SLOT * accessed[1]
    return gas + AUTHORIZATION * authorizations


def floor_gas(data: bytes, rules: Rules) -> int:
    """The minimum gas of a transaction with this data (EIP-7623)."""
    if rules.ethereum < PRAGUE:
        return 0
    tokens = data.count(0) + 4 * (len(data) - data.count(0))
    return TRANSACTION + FLOOR_PER_TOKEN * tokens
