"""The request of a call: an unsigned message with its fees, and overrides of its block.

Forks are chosen by the overridden number and time, so a distant time crosses forks. BLOCKHASH
still ends at the real block; overridden hashes are added to the state with the accounts. Their
effect on simulated blocks is in `simulated_chain`.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct, structs

from foreblock._engine import AccessList, Authorization, Overrides, State, Withdrawal
from foreblock.ledger.reading.blocks import BlockContext, BlockId, ReadableBlock
from foreblock.ledger.reading.view import LedgerView
from foreblock.primitives import ZERO_ADDRESS

__all__ = ["AccessList", "Call", "Overrides"]


class Call(Struct, frozen=True, gc=False):
    """A call as requested, with its defaults filled in; a fee that is None was not given.

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
        """The price of a unit of gas in a block with this base fee."""
        if base_fee is None or self.gas_price is not None:
            return self.gas_price or 0
        if not self.fee_cap and not self.fee_tip:
            return 0
        return min(self.fee_cap, base_fee + self.fee_tip)


class BlockOverrides(Struct, frozen=True):
    """Fields of a block that are to be seen otherwise; None leaves one as it is."""

    number: int | None = None
    timestamp: int | None = None
    difficulty: int | None = None
    gas_limit: int | None = None
    beneficiary: bytes | None = None
    mix_hash: bytes | None = None
    base_fee_per_gas: int | None = None
    blob_base_fee: int | None = None
    # Of simulated blocks only; a call is not a block.
    parent_beacon_block_root: bytes | None = None
    withdrawals: list[Withdrawal] | None = None


AS_IT_IS: Final = BlockOverrides()


def state_and_context(
    view: LedgerView, named: BlockId, overrides: BlockOverrides | None
) -> tuple[State, BlockContext]:
    """The state that a call in the named block runs on, and the block as it sees it.

    Raises `UnknownRules` where the block cannot be executed.
    """
    block = view.resolve(named)
    view.check_rules(block.number)
    context = block.context if overrides is None else overridden(block, overrides)
    return view.state(block), context


def overridden(block: ReadableBlock, overrides: BlockOverrides) -> BlockContext:
    """The block as overridden; its forks follow from the overridden number and time."""
    fields = {name: value for name, value in structs.asdict(overrides).items() if value is not None}
    blob_fee = fields.pop("blob_base_fee", None)
    if block.merged:
        fields.pop("difficulty", None)  # a block that nobody mined has none
    if block.header.base_fee_per_gas is None:
        fields.pop("base_fee_per_gas", None)  # before London there is nothing to override
    changed = block.header.replace(**fields)
    profile = block.profile
    rules = profile.rules(changed.number, changed.timestamp, merged=block.merged)
    return BlockContext(changed, rules, profile, blob_fee)
