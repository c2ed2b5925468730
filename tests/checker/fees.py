"""Fees of a transaction on the L2 beyond its gas, and changes of the base fee: Jovian's rules."""

import struct
from dataclasses import dataclass

ATTRIBUTES_SELECTOR = bytes.fromhex("3db6be2b")  # setL1BlockValuesJovian()
ATTRIBUTES_BYTES = 178

# EIP-2028, EIP-7623: gas per byte of call data, and its floor price.
TRANSACTION_GAS = 21_000
ZERO_BYTE_GAS, BYTE_GAS = 4, 16
FLOOR_TOKEN_GAS, TOKENS_OF_A_BYTE = 10, 4


@dataclass(frozen=True, slots=True)
class L1Terms:
    """The fee parameters in a block's attributes deposit."""

    base_fee_scalar: int
    blob_base_fee_scalar: int
    base_fee: int
    blob_base_fee: int
    operator_fee_scalar: int
    operator_fee_constant: int
    footprint_scalar: int

    def fee(self, compressed_size: int) -> int:
        """The L1 data fee of a transaction of this estimated size (OP stack, Fjord)."""
        weighted = (
            16 * self.base_fee * self.base_fee_scalar
            + self.blob_base_fee * self.blob_base_fee_scalar
        )
        return compressed_size * weighted // 10**12

    def operator_fee(self, gas: int) -> int:
        """The operator fee (OP stack, Jovian)."""
        return gas * self.operator_fee_scalar * 100 + self.operator_fee_constant

    def footprint(self, compressed_size: int) -> int:
        """The contribution of a transaction to `blobGasUsed` (OP stack, Jovian)."""
        return compressed_size // 10**6 * self.footprint_scalar


def read_terms(attributes: bytes) -> L1Terms:
    """Parse the call data of an attributes deposit; `ValueError` for another call."""
    if attributes[:4] != ATTRIBUTES_SELECTOR or len(attributes) != ATTRIBUTES_BYTES:
        raise ValueError("not the attributes of Jovian")
    base_fee_scalar, blob_base_fee_scalar = struct.unpack_from(">II", attributes, 4)
    operator_scalar, operator_constant, footprint = struct.unpack_from(">IQH", attributes, 164)
    return L1Terms(
        base_fee_scalar=base_fee_scalar,
        blob_base_fee_scalar=blob_base_fee_scalar,
        base_fee=int.from_bytes(attributes[36:68]),
        blob_base_fee=int.from_bytes(attributes[68:100]),
        operator_fee_scalar=operator_scalar,
        operator_fee_constant=operator_constant,
        footprint_scalar=footprint,
    )


def intrinsic_gas(data: bytes) -> int:
    """The gas of a transaction with this call data before execution."""
    zeros = data.count(0)
    return TRANSACTION_GAS + ZERO_BYTE_GAS * zeros + BYTE_GAS * (len(data) - zeros)


def gas_used(data: bytes, execution: int) -> int:
    """The gas of a transaction with this call data and this execution gas."""
    zeros = data.count(0)
    tokens = zeros + TOKENS_OF_A_BYTE * (len(data) - zeros)
    return max(intrinsic_gas(data) + execution, TRANSACTION_GAS + FLOOR_TOKEN_GAS * tokens)


def next_base_fee(
    base_fee: int, gas_limit: int, gas_used: int, footprint: int, extra_data: bytes
) -> int:
    """The base fee after a block with these values (EIP-1559; OP stack, Holocene and Jovian)."""
    denominator, elasticity = int.from_bytes(extra_data[1:5]), int.from_bytes(extra_data[5:9])
    least = int.from_bytes(extra_data[9:17])
    target = gas_limit // elasticity
    used = max(gas_used, footprint)
    if used > target:
        found = base_fee + max(1, base_fee * (used - target) // target // denominator)
    else:
        found = base_fee - base_fee * (target - used) // target // denominator
    return max(found, least)
