"""The requests of calls and simulations: messages with their fees, and overrides of their blocks.

A call is a message that nobody signed. Forks are chosen by the overridden number and time, so a
distant time crosses forks. BLOCKHASH still ends at the real block; overridden hashes are added to
the state with the accounts. Their effect on simulated blocks is in `simulated_chain`.

The plan of a simulation gives each block its number and time before anything runs. Both only ever
increase; a number may be skipped, and an empty block fills the gap, so its time counts as well. A
base block in progress may itself be the first: its number and time are then used again.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct, structs

from foreblock._engine import AccessList, Authorization, Overrides, PlainCalls, State
from foreblock.errors import RefusedSimulation, Rule
from foreblock.ledger.reading.blocks import BlockContext, BlockId, ReadableBlock
from foreblock.ledger.reading.view import LedgerView
from foreblock.primitives import ZERO_ADDRESS
from foreblock.types import Withdrawal

__all__ = [
    "FILLER",
    "AccessList",
    "BlockRequest",
    "Call",
    "CallRequest",
    "Overrides",
    "PlainCalls",
    "SimulationRequest",
    "plain_request",
]


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
        return (0, 0) if listed is None else listed.counts

    @property
    def fee_cap(self) -> int:
        """The most that a unit of gas may cost."""
        return (self.max_fee_per_gas if self.gas_price is None else self.gas_price) or 0

    @property
    def fee_tip(self) -> int:
        """The highest fee per unit of gas for the proposer of the block."""
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
    """Overridden fields of a block; None leaves a field unchanged."""

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
        fields.pop("difficulty", None)  # a simulated block has none
    if block.header.base_fee_per_gas is None:
        fields.pop("base_fee_per_gas", None)  # before London there is nothing to override
    changed = block.header.replace(**fields)
    profile = block.profile
    rules = profile.rules(changed.number, changed.timestamp, merged=block.merged)
    return BlockContext(changed, rules, profile, blob_fee)


class CallRequest(Struct, frozen=True):
    """A call of a simulated block; `gas` counts, that of `call` is ignored."""

    call: Call
    gas: int | None = None  # all that is left in the block
    nonce: int | None = None  # that of the state at that point


def plain_request(calls: PlainCalls, index: int) -> CallRequest:
    """A plain call as a general request."""
    sender, to, value, data, gas = calls[index]
    return CallRequest(Call(to, 0, sender, data, value), gas)


class BlockRequest(Struct, frozen=True):
    """A block to simulate; its calls are `PlainCalls` where all of them are plain."""

    calls: Sequence[CallRequest] | PlainCalls = ()
    overrides: Overrides | None = None
    block: BlockOverrides = AS_IT_IS


FILLER: Final = BlockRequest()  # an empty block that fills a gap in the numbers


class SimulationRequest(Struct, frozen=True):
    """Blocks to simulate one after the other."""

    blocks: Sequence[BlockRequest]
    validation: bool = False  # whether nonces and fees are judged as in a real block
    trace_transfers: bool = False  # whether transfers of ether are shown as logs
    state_roots: bool = True  # whether they are computed; else they are zero


class SimulationLimits(Struct, frozen=True):
    """The numbers of geth."""

    blocks: int = 256  # entries, and how far the last block may be from the base
    block_calls: int = 5_000
    calls: int = 10_000
    gas: int = 50_000_000  # of all calls together; calls are lowered to what is left of it
    output: int = 16 << 20  # bytes that all calls return; ours, for half of the gas buys 50 MB


LAST_TIME: Final = 2**64 - 1  # a header's time has 64 bits


class PlannedBlock(Struct, frozen=True):
    """Number and time of a block to simulate, and its request; none for a filler."""

    number: int
    time: int
    request: BlockRequest | None


def timeline(
    requests: Iterable[BlockRequest],
    number: int,
    time: int,
    step: int,
    reach: int,
    *,
    in_progress: bool = False,
) -> list[PlannedBlock]:
    """Plan all blocks after the base block of this number and time.

    Without a time of its own, a block comes `step` seconds after the one before it. The last
    number may be at most `reach` above the base block. If that is `in_progress`, the first
    block may have its number.
    """
    base = number
    plan: list[PlannedBlock] = []
    for request in requests:
        wanted = number + 1 if request.block.number is None else request.block.number
        if in_progress and not plan and wanted == base:
            asked = request.block.timestamp
            time = _after(time - 1, time if asked is None else asked)
            plan.append(PlannedBlock(number, time, request))
            continue
        if wanted <= number:
            why = f"block numbers must be in order: {wanted} <= {number}"
            raise RefusedSimulation(Rule.BLOCK_NUMBER, why)
        if wanted - base > reach:
            raise RefusedSimulation(Rule.LIMIT, "too many blocks")
        for filler in range(number + 1, wanted):
            time = _after(time, time + step)
            plan.append(PlannedBlock(filler, time, None))
        asked = request.block.timestamp
        time = _after(time, time + step if asked is None else asked)
        number = wanted
        plan.append(PlannedBlock(number, time, request))
    return plan


def _after(before: int, time: int) -> int:
    if time <= before:
        why = f"block timestamps must be in order: {time} <= {before}"
        raise RefusedSimulation(Rule.BLOCK_TIME, why)
    if time > LAST_TIME:
        raise RefusedSimulation(Rule.BLOCK_TIME, f"block timestamps end at {LAST_TIME}")
    return time
