"""What an OP chain is told about L1: the call data of the deposit that begins each block.

Layouts are big-endian and told apart by the selector, because the block that activates a
fork still has the layout of the fork before. The prices hold for the block they stand in.

    bytes          Bedrock 015d8eb9    Ecotone 440a5e20, Isthmus 098999be, Jovian 3db6be2b
    4-7                                base fee scalar
    8-11                               blob base fee scalar
    36-67                              base fee
    68-99          base fee            blob base fee
    164-167                            operator fee scalar (Isthmus)
    168-175                            operator fee constant (Isthmus)
    176-177                            data footprint scalar (Jovian)
    196-227        overhead
    228-259        scalar
"""

from dataclasses import dataclass
from typing import Final

from foreblock._engine import decode_transaction
from foreblock.ledger.rules.l1_fees import L1Fees

L1_BLOCK: Final = bytes.fromhex("4200000000000000000000000000000000000015")  # OP
ATTRIBUTES_DEPOSITOR: Final = bytes.fromhex("deaddeaddeaddeaddeaddeaddeaddeaddead0001")  # OP
DEPOSIT: Final = 0x7E  # the type of the transaction that carries them
BEDROCK: Final = bytes.fromhex("015d8eb9")
# Selectors of the later layouts, each of which adds to the one before, and their lengths.
LENGTHS: Final = {
    bytes.fromhex("440a5e20"): 164,
    bytes.fromhex("098999be"): 176,
    bytes.fromhex("3db6be2b"): 178,
}
BEDROCK_LENGTH: Final = 260


@dataclass(frozen=True, slots=True)
class BedrockAttributes:
    """The prices before Ecotone."""

    base_fee: int  # of L1, wei
    overhead: int  # gas that every transaction is charged
    scalar: int  # millionths


@dataclass(frozen=True, slots=True)
class EcotoneAttributes:
    """The prices from Ecotone on; those that came later are None before."""

    base_fee: int  # of L1, wei
    blob_base_fee: int  # of L1, wei
    base_fee_scalar: int
    blob_base_fee_scalar: int
    operator_fee_scalar: int | None  # Isthmus
    operator_fee_constant: int | None  # Isthmus, wei
    da_footprint_gas_scalar: int | None  # Jovian

    @property
    def fees(self) -> L1Fees:
        """What transactions are charged by."""
        return L1Fees(
            base_fee=self.base_fee,
            blob_base_fee=self.blob_base_fee,
            base_fee_scalar=self.base_fee_scalar,
            blob_base_fee_scalar=self.blob_base_fee_scalar,
            operator_fee_scalar=self.operator_fee_scalar or 0,
            operator_fee_constant=self.operator_fee_constant or 0,
            da_footprint_gas_scalar=self.da_footprint_gas_scalar or 0,
        )


L1Attributes = BedrockAttributes | EcotoneAttributes


def attributes_in(raw: bytes) -> L1Attributes | None:
    """The attributes that a block's first transaction brings, if it brings any."""
    return decode_attributes(decode_transaction(raw).input) if raw[0] == DEPOSIT else None


def decode_attributes(data: bytes) -> L1Attributes | None:
    """The attributes in a deposit's call data; none where it is another call."""
    if data[:4] == BEDROCK and len(data) == BEDROCK_LENGTH:
        return BedrockAttributes(
            _number(data, 68, 100), _number(data, 196, 228), _number(data, 228, 260)
        )
    if LENGTHS.get(data[:4]) != len(data):
        return None
    isthmus, jovian = len(data) >= 176, len(data) >= 178
    return EcotoneAttributes(
        base_fee=_number(data, 36, 68),
        blob_base_fee=_number(data, 68, 100),
        base_fee_scalar=_number(data, 4, 8),
        blob_base_fee_scalar=_number(data, 8, 12),
        operator_fee_scalar=_number(data, 164, 168) if isthmus else None,
        operator_fee_constant=_number(data, 168, 176) if isthmus else None,
        da_footprint_gas_scalar=_number(data, 176, 178) if jovian else None,
    )


def _number(data: bytes, start: int, stop: int) -> int:
    return int.from_bytes(data[start:stop])
