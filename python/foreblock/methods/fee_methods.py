"""eth_gasPrice, eth_baseFee, eth_blobBaseFee, eth_feeHistory and others: prices of gas."""

from collections import deque
from collections.abc import Awaitable, Sequence
from functools import partial
from itertools import chain
from typing import Final

import msgspec
from msgspec import Raw

from foreblock.ledger.reading.blocks import ReadableBlock
from foreblock.ledger.reading.transaction_lookup import (
    BlockTips,
    blob_fees_of,
    next_base_fee,
    read_tips,
)
from foreblock.ledger.reading.view import LedgerView
from foreblock.ledger.rules.fees import GAS_PER_BLOB
from foreblock.ledger.rules.forks import EthereumFork
from foreblock.lru_cache import LruCache, size_of
from foreblock.methods.params import (
    BlockName,
    Params,
    quantity,
    read_block,
    reader,
    refuse,
    take_none,
)
from foreblock.methods.shapes import array, members, write_quantity
from foreblock.scheduling.reply import Text
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Steps

KEPT_BYTES: Final = 32 << 20  # 1,024 blocks of 2,000 transactions

# The suggestion is made as in geth, except that blocks without a bid do not count.
BLOCKS: Final = 20  # sealed ones, the latest last
LOWEST: Final = 3  # priority fees of each block, the cheapest that got in
PERCENTILE: Final = 60
MOST: Final = 500 * 10**9  # wei
# OP nodes suggest no less. On an idle chain it is a thousandth of a gwei, which is negligible,
# and wallets that refuse 0 accept it.
LEAST: Final = 10**6

MOST_BLOCKS: Final = 1024  # of a history, as in geth; larger counts are lowered to it
MOST_PERCENTILES: Final = 100  # as in geth
DECIMAL_DIGITS: Final = 20  # of the largest number of 64 bits


class FeeHistoryParams(Params):
    """The arguments of eth_feeHistory."""

    block_count: str | int
    newest_block: BlockName
    reward_percentiles: list[float] | None = None


_read_history = reader(FeeHistoryParams)


class PriorityFees:
    """Priority fees of blocks, kept between requests, and the fee suggested from them."""

    def __init__(self) -> None:
        self._kept: Final = LruCache[bytes | int, BlockTips](KEPT_BYTES, size_of)
        self._suggested: tuple[bytes, int] = b"", 0  # with the hash of the block it was made at
        # The cheapest of the blocks up to that one, the newest first.
        self._recent: deque[list[int]] = deque(maxlen=BLOCKS)

    def of(self, view: LedgerView, block: ReadableBlock) -> Steps[BlockTips]:
        """The priority fees of a block of a view."""
        found = self._kept.get(block.key)
        if found is None:
            found = yield from read_tips(view, block)
            self._kept.keep(block.key, found)
        return found

    def known(self, view: LedgerView) -> int | None:
        """The suggestion at the latest block, if it was made already."""
        made_at, tip = self._suggested
        return tip if made_at == view.latest.hash else None

    def suggested(self, view: LedgerView) -> Steps[int]:
        """A priority fee in wei that recently got transactions into blocks."""
        known = self.known(view)
        if known is not None:
            return known
        made_at, _ = self._suggested
        has_body = view.latest.number >= view.first_block.whole
        if has_body and view.latest.header.parent_hash == made_at:  # it continues
            tips = yield from self.of(view, view.latest)
            recent = deque(self._recent, maxlen=BLOCKS)
            recent.appendleft(tips.lowest(LOWEST))
        else:
            recent = yield from self._recent_of(view)
        tip = suggestion(list(chain.from_iterable(recent)))
        self._suggested, self._recent = (view.latest.hash, tip), recent
        return tip

    def _recent_of(self, view: LedgerView) -> Steps[deque[list[int]]]:
        recent: deque[list[int]] = deque(maxlen=BLOCKS)
        newest, first = view.latest.number, view.first_block.whole
        for number in range(newest, max(newest - BLOCKS, first - 1), -1):
            tips = yield from self.of(view, view.resolve(number))
            recent.append(tips.lowest(LOWEST))
        return recent


def suggestion(sample: list[int]) -> int:
    """The priority fee that a sample suggests."""
    if not sample:
        return LEAST
    found = sorted(sample)[(len(sample) - 1) * PERCENTILE // 100]
    return min(max(found, LEAST), MOST)


class FeeMethods:
    """Methods that suggest a price, and the history of prices."""

    def __init__(self, scheduler: Scheduler, priority_fees: PriorityFees) -> None:
        self._priority_fees = priority_fees
        self._scheduler = scheduler

    def gas_price(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """The price of a unit of gas now, with the suggested priority fee."""
        take_none(raw)
        return self._suggest(view, _base_fee(view))

    def max_priority_fee_per_gas(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """The suggested priority fee."""
        take_none(raw)
        return self._suggest(view, 0)

    def blob_base_fee(self, view: LedgerView, raw: Raw) -> bytes:
        """The price of a unit of blob gas in the latest block."""
        take_none(raw)
        return write_quantity(blob_fees_of(view.latest)[0])

    def base_fee(self, view: LedgerView, raw: Raw) -> bytes:
        """The base fee of the block after the latest one, or null before London."""
        take_none(raw)
        if view.latest.rules.ethereum < EthereumFork.LONDON:
            return b"null"
        if view.shown is not view.latest:
            return write_quantity(view.shown.header.base_fee_per_gas or 0)
        return write_quantity(next_base_fee(view, view.latest))

    def _suggest(self, view: LedgerView, base_fee: int) -> bytes | Awaitable[bytes]:
        known = self._priority_fees.known(view)
        if known is not None:
            return write_quantity(base_fee + known)
        return self._scheduler.read(self._suggested(view, base_fee))

    def _suggested(self, view: LedgerView, base_fee: int) -> Steps[bytes]:
        return write_quantity(base_fee + (yield from self._priority_fees.suggested(view)))

    def fee_history(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """Base fees, how full blocks were, and priority fees at the given percentiles."""
        params = _read_history(raw)
        count = min(_read_count(params.block_count), MOST_BLOCKS)
        percentiles = _check_percentiles(params.reward_percentiles or ())
        newest = view.resolve(read_block(params.newest_block, 1))
        first = view.first_block
        count = min(count, newest.number + 1 - (first.whole if percentiles else first.number))
        next_fee = next_base_fee(view, newest)
        return self._scheduler.coalesce(
            (self, newest.key, next_fee, count, tuple(percentiles)),
            partial(self._render_history, view, newest, next_fee, count, percentiles),
        )

    def _render_history(
        self,
        view: LedgerView,
        newest: ReadableBlock,
        next_fee: int,
        count: int,
        percentiles: Sequence[float],
    ) -> Steps[Text]:
        """Render the history in steps, one for each block."""
        history = FeeHistory()
        for number in range(newest.number - count + 1, newest.number + 1):
            block = newest if number == newest.number else view.resolve(number)
            history.add(block)
            if percentiles:
                tips = yield from self._priority_fees.of(view, block)
                history.rewards.append(tips.percentiles(percentiles))
            yield None
        return history.render(newest if count else None, next_fee, newest.number - count + 1)


def _base_fee(view: LedgerView) -> int:
    """Enough for the block in progress and, as it is now, for the one after it."""
    if view.shown is view.latest:
        return next_base_fee(view, view.latest)
    return max(view.shown.header.base_fee_per_gas or 0, next_base_fee(view, view.shown))


def _read_count(given: str | int) -> int:
    """A quantity; as in geth also a number, with or without quotes, or with leading zeros."""
    if isinstance(given, str):
        if not given.isascii() or not given.isdecimal() or len(given) > DECIMAL_DIGITS:
            return quantity(_without_zeros(given), 64, 0)
        given = int(given)
    if given < 0:
        refuse(0, "", "block count below 0")
    return given


def _without_zeros(text: str) -> str:
    digits = text[2:].lstrip("0") if text[:2] in ("0x", "0X") else ""
    return f"0x{digits}" if digits else text


def _check_percentiles(given: Sequence[float]) -> Sequence[float]:
    if len(given) > MOST_PERCENTILES:
        refuse(2, "", f"over the query limit {MOST_PERCENTILES}")
    for index, each in enumerate(given):
        if not 0 <= each <= 100:
            refuse(2, f"$[{index}]", f"invalid reward percentile: {each:g}")
        if index and each <= given[index - 1]:
            refuse(2, f"$[{index}]", f"reward percentile {each:g} is not above the one before it")
    return given


class FeeHistory:
    """Fees of consecutive blocks as JSON texts, the oldest first."""

    def __init__(self) -> None:
        self.rewards: Final[list[bytes]] = []
        self._base_fees: Final[list[bytes]] = []
        self._gas: Final[list[float]] = []
        self._blob_fees: Final[list[bytes]] = []
        self._blob_gas: Final[list[float]] = []

    def add(self, block: ReadableBlock) -> None:
        """Append the next block."""
        self._base_fees.append(write_quantity(block.header.base_fee_per_gas or 0))
        self._gas.append(_fullness(block))
        self._blob_fees.append(write_quantity(blob_fees_of(block)[0]))
        self._blob_gas.append(_blob_fullness(block))

    def render(self, newest: ReadableBlock | None, next_fee: int, oldest: int) -> bytes:
        """The result; fees have one more entry, for the block after the newest."""
        following, blob_following = [], []
        if newest is not None:
            following = [write_quantity(next_fee)]
            blob_following = [write_quantity(blob_fees_of(newest)[1])]
        fields = {
            b"oldestBlock": write_quantity(oldest if newest is not None else 0),
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
    """The share of blob gas used; 0 on OP chains, where the field means something else."""
    parameters = block.profile.blob_parameters(block.header.timestamp)
    if parameters is None or not parameters.maximum:
        return 0.0
    return (block.header.blob_gas_used or 0) / (parameters.maximum * GAS_PER_BLOB)
