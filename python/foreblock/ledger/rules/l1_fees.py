"""What a transaction of an OP chain costs beyond its gas, from Jovian on.

The parameters come from L1, through the attributes deposit that begins each block. Sizes
are those of `estimated_compressed_size`: millionths of a byte that L1 has to carry.
"""

from dataclasses import dataclass
from typing import Final

MILLION: Final = 10**6
# OP: from Jovian on the operator fee's scalar counts hundreds of wei, before it millionths of one.
OPERATOR_FACTOR: Final = 100


@dataclass(frozen=True, slots=True)
class L1Fees:
    """The prices in force for one block."""

    base_fee: int  # of L1, wei
    blob_base_fee: int  # of L1, wei
    base_fee_scalar: int
    blob_base_fee_scalar: int
    operator_fee_scalar: int
    operator_fee_constant: int  # wei
    da_footprint_gas_scalar: int

    def data_fee(self, estimated_size: int) -> int:
        """What carrying a transaction costs, in wei (OP, from Fjord on)."""
        price = (
            16 * self.base_fee * self.base_fee_scalar
            + self.blob_base_fee * self.blob_base_fee_scalar
        )
        return estimated_size * price // MILLION**2

    def operator_fee(self, gas: int) -> int:
        """What the operator takes for so much gas, in wei (OP, from Jovian on)."""
        return gas * self.operator_fee_scalar * OPERATOR_FACTOR + self.operator_fee_constant

    def data_footprint(self, estimated_size: int) -> int:
        """The share of the block that a transaction takes, in gas (OP, from Jovian on)."""
        return estimated_size // MILLION * self.da_footprint_gas_scalar
