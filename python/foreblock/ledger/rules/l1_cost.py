"""What it costs to carry the transactions of an OP block to L1, under every fork.

Charged beside gas and found again by rule: nothing of it is stored. What is carried is the
signed encoding; deposits come from L1 and are not carried. How sizes become fees from
Ecotone on is in `l1_fees`.
"""

from typing import Final, NamedTuple

from foreblock._engine import estimated_compressed_size
from foreblock.ledger.rules.forks import OptimismFork
from foreblock.ledger.rules.l1_attributes import BedrockAttributes, L1Attributes
from foreblock.ledger.rules.l1_fees import MILLION, L1Fees

ZERO_BYTE: Final = 4  # gas of L1's call data (EIP-2028)
OTHER_BYTE: Final = 16
SIGNATURE_BYTES: Final = 68  # OP: counted again before Regolith, by mistake


class L1Cost(NamedTuple):
    """What one transaction costs."""

    gas: int  # of call data, as it would be; of no effect from Ecotone on
    fee: int  # wei
    footprint: int  # its share of the block's data, in gas; 0 before Jovian


FREE: Final = L1Cost(0, 0, 0)


class L1Costs:
    """The costs of one block, by what it was told of L1."""

    def __init__(self, attributes: L1Attributes, fork: OptimismFork) -> None:
        self._fork: Final = fork
        self._prices: Final[BedrockAttributes | L1Fees] = (
            attributes if isinstance(attributes, BedrockAttributes) else attributes.fees
        )

    def of(self, raw: bytes) -> L1Cost:
        """The cost of a transaction that is no deposit."""
        prices = self._prices
        if isinstance(prices, BedrockAttributes):
            return self._before_ecotone(raw, prices)
        size = self._size(raw)
        gas = size * OTHER_BYTE // MILLION
        return L1Cost(gas, prices.data_fee(size), prices.data_footprint(size))

    def _size(self, raw: bytes) -> int:
        """Millionths of a byte that count: until Fjord, zeros for a fourth and the rest whole."""
        if self._fork < OptimismFork.FJORD:
            return _data_gas(raw) * MILLION // OTHER_BYTE
        return estimated_compressed_size(raw)

    def _before_ecotone(self, raw: bytes, prices: BedrockAttributes) -> L1Cost:
        gas = _data_gas(raw) + prices.overhead
        if self._fork < OptimismFork.REGOLITH:
            gas += SIGNATURE_BYTES * OTHER_BYTE
        return L1Cost(gas, gas * prices.base_fee * prices.scalar // MILLION, 0)


def _data_gas(raw: bytes) -> int:
    zeros = raw.count(0)
    return zeros * ZERO_BYTE + (len(raw) - zeros) * OTHER_BYTE
