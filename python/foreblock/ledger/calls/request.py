"""What a caller asks for: a message that nobody signed, with its fees."""

from collections.abc import Sequence

from msgspec import Struct

from foreblock._engine import AccessList, Authorization, Overrides
from foreblock.primitives import ZERO_ADDRESS

__all__ = ["AccessList", "Call", "Overrides"]


class Call(Struct, frozen=True, gc=False):
    """A call as asked for, its defaults filled in; a fee that is None was not given.

    A Struct, because it is made for every call and a frozen dataclass takes ten times as
    long to make.
    """

    to: bytes | None  # None creates a contract
    gas: int
    sender: bytes = ZERO_ADDRESS
    data: bytes = b""
    value: int = 0
    is_plain: bool = True  # whether all below is left out
    chain_id: int | None = None
    gas_price: int | None = None
    max_fee_per_gas: int | None = None
    max_priority_fee_per_gas: int | None = None
    access_list: AccessList | None = None
    blob_hashes: Sequence[bytes] | None = None
    max_fee_per_blob_gas: int | None = None
    authorizations: Sequence[Authorization] | None = None

    @property
    def accessed(self) -> tuple[int, int]:
        """How many addresses and slots its access list has."""
        listed = self.access_list
        return (0, 0) if listed is None else (listed.addresses, listed.slots)

    @property
    def fee_cap(self) -> int:
        """The most that a unit of gas may cost."""
        return (self.max_fee_per_gas if self.gas_price is None else self.gas_price) or 0

    @property
    def fee_tip(self) -> int:
        """The most that goes to who made the block, per unit of gas."""
        return (self.max_priority_fee_per_gas if self.gas_price is None else self.gas_price) or 0

    @property
    def highest_fee(self) -> int:
        """The largest of all fees given."""
        return max(self.fee_cap, self.fee_tip, self.max_fee_per_blob_gas or 0)

    def price(self, base_fee: int | None) -> int:
        """What a unit of gas costs in a block with this base fee."""
        if base_fee is None or self.gas_price is not None:
            return self.gas_price or 0
        if not self.fee_cap and not self.fee_tip:
            return 0
        return min(self.fee_cap, base_fee + self.fee_tip)
