"""L1 charges of an OP chain: the prices in force for a block, and the cost of a transaction.

The deposit that begins each block carries the prices; they hold for that block. Its call data
is big-endian. The selector names the layout, not the fork in force: the block that activates
a fork still has the layout of the fork before.

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

The cost of carrying a transaction is charged beside its gas and computed again for receipts;
it is not stored. It counts the signed encoding; deposits come from L1 and cost nothing. Sizes
are those of `estimated_compressed_size`, in millionths of a byte.
"""

from typing import Final, NamedTuple

from msgspec import Struct

from foreblock._engine import decode_transaction, estimated_compressed_size
from foreblock.ledger.rules.forks import OptimismFork
from foreblock.ledger.rules.transaction_rules import DEPOSIT

L1_BLOCK: Final = bytes.fromhex("4200000000000000000000000000000000000015")  # OP
ATTRIBUTES_DEPOSITOR: Final = bytes.fromhex("deaddeaddeaddeaddeaddeaddeaddeaddead0001")  # OP
BEDROCK: Final = bytes.fromhex("015d8eb9")
# Selectors of the later layouts, each of which adds to the one before, and their lengths.
LENGTHS: Final = {
    bytes.fromhex("440a5e20"): 164,
    bytes.fromhex("098999be"): 176,
    bytes.fromhex("3db6be2b"): 178,
}
BEDROCK_LENGTH: Final = 260

ZERO_BYTE: Final = 4  # gas of L1's call data (EIP-2028)
OTHER_BYTE: Final = 16
SIGNATURE_BYTES: Final = 68  # OP: counted again before Regolith, by mistake
MILLION: Final = 10**6
MOST: Final = 2**256 - 1  # larger amounts saturate in the engine
# OP: from Jovian on the operator fee's scalar counts hundreds of wei, before it millionths of one.
OPERATOR_FACTOR: Final = 100


class L1Fees(Struct, frozen=True):
    """The prices in force for one block."""

    base_fee: int  # of L1, wei
    blob_base_fee: int  # of L1, wei
    base_fee_scalar: int
    blob_base_fee_scalar: int
    operator_fee_scalar: int
    operator_fee_constant: int  # wei
    da_footprint_gas_scalar: int

    @property
    def size_price(self) -> int:
        """The price of a millionth of a byte, in 10⁻¹² wei (OP, from Ecotone on)."""
        return (
            16 * self.base_fee * self.base_fee_scalar
            + self.blob_base_fee * self.blob_base_fee_scalar
        )

    def data_fee(self, estimated_size: int) -> int:
        """The fee in wei for carrying a transaction (OP, from Fjord on)."""
        return estimated_size * self.size_price // MILLION**2

    def operator_fee(self, gas: int) -> int:
        """The operator's fee in wei for this amount of gas (OP, from Jovian on)."""
        return gas * self.operator_fee_scalar * OPERATOR_FACTOR + self.operator_fee_constant

    def data_footprint(self, estimated_size: int) -> int:
        """The share of the block that a transaction takes, in gas (OP, from Jovian on)."""
        return estimated_size // MILLION * self.da_footprint_gas_scalar


class BedrockAttributes(Struct, frozen=True):
    """The prices before Ecotone."""

    base_fee: int  # of L1, wei
    overhead: int  # gas that every transaction is charged
    scalar: int  # millionths


class EcotoneAttributes(Struct, frozen=True):
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
        """The prices, with zeros for those that are not set."""
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
    """The attributes in a block's first transaction, if it is such a deposit."""
    return decode_attributes(decode_transaction(raw).input) if raw[0] == DEPOSIT else None


def decode_attributes(data: bytes) -> L1Attributes | None:
    """The attributes in a deposit's call data; None if it is another call."""
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


class L1Cost(NamedTuple):
    """The cost of one transaction."""

    gas: int  # of call data, as it would be; of no effect from Ecotone on
    fee: int  # wei
    footprint: int  # its share of the block's data, in gas; 0 before Jovian


FREE: Final = L1Cost(0, 0, 0)


class L1Costs:
    """Costs of the transactions of one block, from its attributes."""

    def __init__(self, attributes: L1Attributes, fork: OptimismFork) -> None:
        self._fork: Final = fork
        self._prices: Final[BedrockAttributes | L1Fees] = (
            attributes if isinstance(attributes, BedrockAttributes) else attributes.fees
        )

    @property
    def prices(self) -> tuple[tuple[int | None, int], tuple[bool, int]]:
        """The prices as the engine takes them: overhead, price, compression, footprint."""
        prices = self._prices
        if isinstance(prices, BedrockAttributes):
            overhead = prices.overhead
            if self._fork < OptimismFork.REGOLITH:
                overhead += SIGNATURE_BYTES * OTHER_BYTE
            price = prices.base_fee * prices.scalar
            return (min(overhead, MOST), min(price, MOST)), (False, 0)
        scalar = prices.da_footprint_gas_scalar
        return (None, min(prices.size_price, MOST)), (self._fork >= OptimismFork.FJORD, scalar)

    def of(self, raw: bytes) -> L1Cost:
        """The cost of a transaction that is no deposit."""
        prices = self._prices
        if isinstance(prices, BedrockAttributes):
            return self._before_ecotone(raw, prices)
        size = self._size(raw)
        gas = size * OTHER_BYTE // MILLION
        return L1Cost(gas, prices.data_fee(size), prices.data_footprint(size))

    def _size(self, raw: bytes) -> int:
        """The size in millionths of a byte; before Fjord a zero byte counts for a fourth."""
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
