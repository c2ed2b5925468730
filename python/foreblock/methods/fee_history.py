"""eth_feeHistory: what gas cost in a range of blocks, and what was paid above that."""

from collections.abc import Awaitable, Sequence
from functools import partial
from typing import Final

import msgspec
from msgspec import Raw, Struct
from msgspec.json import Decoder

from foreblock.ledger.reading.next_fees import blob_fees_of, next_base_fee_of
from foreblock.ledger.reading.preconfirmed_block import ReadableBlock
from foreblock.ledger.reading.view import LedgerView
from foreblock.ledger.rules.fees import GAS_PER_BLOB
from foreblock.methods.block_param import BlockParam, read_block
from foreblock.methods.params import DECODING, explain, quantity, refuse
from foreblock.methods.priority_fees import Tips
from foreblock.methods.shapes import array, members
from foreblock.methods.shapes import quantity as shown
from foreblock.scheduling.reply import Text
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Steps

MOST_BLOCKS: Final = 1024  # as in geth; more is lowered to it
MOST_PERCENTILES: Final = 100  # as in geth
DECIMAL_DIGITS: Final = 20  # of the largest number of 64 bits


class FeeHistoryParams(
    Struct, array_like=True, forbid_unknown_fields=True, rename="camel", gc=False
):
    """The arguments of eth_feeHistory."""

    block_count: str | int | None = None
    newest_block: BlockParam = None
    reward_percentiles: list[float] | None = None


_decode = Decoder(FeeHistoryParams).decode


class FeeHistoryMethods:
    """The method that looks back."""

    def __init__(self, tips: Tips, scheduler: Scheduler) -> None:
        self._tips = tips
        self._scheduler = scheduler

    def fee_history(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """Base fees, how full blocks were, and tips at the percentiles asked for."""
        try:
            params = _decode(raw)
        except DECODING:
            params = explain(raw, FeeHistoryParams, 2)
        if params.block_count is None or params.newest_block is None:
            params = explain(raw, FeeHistoryParams, 2)
        assert params.block_count is not None, "explain refuses a missing one"
        assert params.newest_block is not None, "the same"
        count = min(_read_count(params.block_count), MOST_BLOCKS)
        percentiles = _check_percentiles(params.reward_percentiles or ())
        newest = view.resolve(read_block(params.newest_block, 1))
        count = min(count, newest.number + 1)
        return self._scheduler.share(
            (self, newest.key, count, tuple(percentiles)),
            partial(self._look_back, view, newest, count, percentiles),
        )

    def _look_back(
        self, view: LedgerView, newest: ReadableBlock, count: int, percentiles: Sequence[float]
    ) -> Steps[Text]:
        """Write what each block says as it is come by, others having their turn in between."""
        history = History()
        for number in range(newest.number - count + 1, newest.number + 1):
            block = newest if number == newest.number else view.resolve(number)
            history.add(block)
            if percentiles:
                tips = yield from self._tips.of(view, block)
                history.rewards.append(tips.percentiles(percentiles))
            yield None
        return history.render(newest if count else None, newest.number - count + 1)


def _read_count(given: str | int) -> int:
    """A quantity; as in geth also a number, which may stand in quotes."""
    if isinstance(given, str):
        if not given.isascii() or not given.isdecimal() or len(given) > DECIMAL_DIGITS:
            return quantity(given, 64, 0)
        given = int(given)
    if given < 0:
        refuse(0, "", "block count below 0")
    return given


def _check_percentiles(given: Sequence[float]) -> Sequence[float]:
    if len(given) > MOST_PERCENTILES:
        refuse(2, "", f"over the query limit {MOST_PERCENTILES}")
    for index, each in enumerate(given):
        if not 0 <= each <= 100:
            refuse(2, f"$[{index}]", f"invalid reward percentile: {each:g}")
        if index and each <= given[index - 1]:
            refuse(2, f"$[{index}]", f"reward percentile {each:g} is not above the one before it")
    return given


class History:
    """What blocks say of their fees, as JSON texts, the oldest first."""

    def __init__(self) -> None:
        self.rewards: Final[list[bytes]] = []
        self._base_fees: Final[list[bytes]] = []
        self._gas: Final[list[float]] = []
        self._blob_fees: Final[list[bytes]] = []
        self._blob_gas: Final[list[float]] = []

    def add(self, block: ReadableBlock) -> None:
        """The next block."""
        self._base_fees.append(shown(block.header.base_fee_per_gas or 0))
        self._gas.append(_fullness(block))
        self._blob_fees.append(shown(blob_fees_of(block)[0]))
        self._blob_gas.append(_blob_fullness(block))

    def render(self, newest: ReadableBlock | None, oldest: int) -> bytes:
        """Fees have one entry more than there are blocks: that of the block after the newest."""
        following, blob_following = [], []
        if newest is not None:
            following = [shown(next_base_fee_of(newest))]
            blob_following = [shown(blob_fees_of(newest)[1])]
        fields = {
            b"oldestBlock": shown(oldest if newest is not None else 0),
            b"baseFeePerGas": array(self._base_fees + following),
            b"gasUsedRatio": msgspec.json.encode(self._gas),
            b"baseFeePerBlobGas": array(self._blob_fees + blob_following),
            b"blobGasUsedRatio": msgspec.json.encode(self._blob_gas),
        }
        if self.rewards:
            fields[b"reward"] = array(self.rewards)
        return b"{%b}" % members(fields)


def _fullness(block: ReadableBlock) -> float:
    return block.header.gas_used / max(block.header.gas_limit, 1)


def _blob_fullness(block: ReadableBlock) -> float:
    """Of what blobs may use; 0 on a chain without blobs, whose field means something else."""
    parameters = block.profile.blob_parameters(block.header.timestamp)
    if parameters is None or not parameters.maximum:
        return 0.0
    return (block.header.blob_gas_used or 0) / (parameters.maximum * GAS_PER_BLOB)
