"""Block overrides: a block as a call or a simulation asks to see it.

Forks are chosen by the overridden number and time, so a far time crosses forks. BLOCKHASH
still ends at the real block, and hashes that are overridden are laid over the state with
accounts. What simulated blocks make of them is in `simulation.header`.
"""

from typing import Final

from msgspec import Struct, structs

from foreblock._engine import State, Withdrawal
from foreblock.ledger.reading.block_context import BlockContext
from foreblock.ledger.reading.blocks import BlockId, ReadableBlock
from foreblock.ledger.reading.view import LedgerView


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
