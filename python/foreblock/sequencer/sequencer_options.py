"""The options of a sequencer."""

from dataclasses import dataclass
from typing import Final, Literal

from foreblock.clock import SECOND_NS
from foreblock.errors import InvalidArgument
from foreblock.ledger.rules.l1 import L1Fees
from foreblock.sequencer.timing import BlockPace

Order = Literal["fees", "fifo"]  # of transactions: the highest tip first, or the first to come

_MILLISECOND_NS: Final = 10**6

# As on Base mainnet in block 50393250: a smallest transaction costs 1,918,900,020 wei of L1 fee.
DEFAULT_L1_FEES: Final = L1Fees(
    base_fee=184_831_724,
    blob_base_fee=11_819_775,
    base_fee_scalar=2_269,
    blob_base_fee_scalar=1_055_762,
    operator_fee_scalar=0,
    operator_fee_constant=0,
    da_footprint_gas_scalar=148,
)

# As on OP Mainnet before Ecotone: gas for each transaction, and millionths of the base fee of L1.
BEDROCK_OVERHEAD: Final = 188
BEDROCK_SCALAR: Final = 684_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SequencerOptions:
    """The options, checked; `InvalidArgument` names a bad one."""

    block_time: int = 2  # seconds
    interval_ms: int = 200  # from one flashblock to the next
    leeway_ms: int = 75  # between the last flashblock of a block and its seal
    seed: int = 0  # of pseudo-random values: payload ids, randao, L1 hashes
    instant: bool = False  # a transaction goes out at once
    gas_limit: int | None = None  # of each block; none: the parent's
    transaction_gas: int | None = None  # of a transaction at most; none: of a block
    order: Order = "fees"
    minimum_base_fee: int | None = None  # wei; none: what the parent's extra data says
    l1_fees: L1Fees = DEFAULT_L1_FEES
    shows_sealed: bool = False  # readers who name no block see sealed ones only

    def __post_init__(self) -> None:
        """Refuse what no schedule can be made of."""
        block_time_ms = self.block_time * 1_000
        for name, least, most in (
            ("block_time", 1, 3_600),
            ("interval_ms", 10, max(block_time_ms, 10)),
            ("leeway_ms", 0, max(block_time_ms - 1, 0)),
            ("seed", 0, 2**64 - 1),
        ):
            value = getattr(self, name)
            if not least <= value <= most:
                words = name.replace("_", " ")
                raise InvalidArgument(f"the {words} is {value}; it may be {least} to {most}")

    @property
    def pace(self) -> BlockPace:
        """The intervals in nanoseconds, for schedules."""
        return BlockPace(
            block_time_ns=self.block_time * SECOND_NS,
            interval_ns=self.interval_ms * _MILLISECOND_NS,
            leeway_ns=self.leeway_ms * _MILLISECOND_NS,
        )
