"""ots_getBlockDetails…, ots_getBlockTransactions, erigon_getHeaderByNumber: blocks for Otterscan.

A block comes without its transactions, with its issuance and fees; its transactions come in
pages, with inputs cut after the selector and receipts without their logs.
"""

import re
from collections.abc import Awaitable
from typing import Final

from msgspec import Raw

from foreblock.errors import NotHere
from foreblock.ledger.reading.blocks import ReadableBlock
from foreblock.ledger.reading.stored_block import (
    BlockParts,
    Portion,
    read_stored,
    some_receipts,
)
from foreblock.ledger.reading.view import LedgerView
from foreblock.ledger.storage.partial_rows import Position
from foreblock.methods import shapes
from foreblock.methods.blocks.receipts import ReceiptCache
from foreblock.methods.params import BlockName, Params, find_block, hash32, reader, refuse
from foreblock.methods.shapes import array, write_quantity
from foreblock.scheduling.reply import Text, in_pieces
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Steps
from foreblock.scheduling.thresholds import THRESHOLDS

MOST_OF_A_PAGE: Final = 100  # transactions
BLOOM: Final = re.compile(rb'"logsBloom":"0x[0-9a-f]*"')
INPUT: Final = re.compile(rb'"input":"0x([0-9a-f]{0,8})[0-9a-f]*"')


class DetailsParams(Params):
    """The arguments of a method that names a block by number or tag."""

    block: BlockName | int


class DetailsByHashParams(Params):
    """The arguments of ots_getBlockDetailsByHash."""

    block_hash: str


class BlockTransactionsParams(Params):
    """The arguments of ots_getBlockTransactions."""

    block: BlockName | int
    page_number: int
    page_size: int


_read_details: Final = reader(DetailsParams)
_read_details_by_hash: Final = reader(DetailsByHashParams)
_read_transactions: Final = reader(BlockTransactionsParams)


class OtterscanBlockMethods:
    """Methods about blocks."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler: Final = scheduler
        self._cache: Final = ReceiptCache()

    def block_details(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """A block without its transactions, with its rewards and fees, or null."""
        return self._details(view, _read_details(raw).block)

    def block_details_by_hash(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """The details of a block that is named by its hash."""
        named = _read_details_by_hash(raw).block_hash
        hash32(named, 0)
        return self._details(view, named)

    def block_transactions(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """A page of a block's transactions with their receipts; page 0 has the last ones."""
        params = _read_transactions(raw)
        if not 0 < params.page_size <= MOST_OF_A_PAGE:
            refuse(2, "", f"a page has 1 to {MOST_OF_A_PAGE} transactions")
        if params.page_number < 0:
            refuse(1, "", "page number below 0")
        block = _find(view, params.block)
        if block is None:
            return b"null"
        steps = self._page(view, block, params.page_number, params.page_size)
        return self._reply(steps)

    def header_by_number(self, view: LedgerView, raw: Raw) -> bytes:
        """The header of a block, or null."""
        block = _find(view, _read_details(raw).block)
        if block is None:
            return b"null"
        text = b"{%b}" % block.header.members()
        return text.replace(b'"size":"0x0",', b"")

    def _details(self, view: LedgerView, named: BlockName | int) -> bytes | Awaitable[Text]:
        block = _find(view, named)
        return b"null" if block is None else self._reply(self._describe(view, block))

    def _reply(self, steps: Steps[Text]) -> bytes | Awaitable[Text]:
        text = self._scheduler.read(steps)
        return self._scheduler.send_text(text) if isinstance(text, list) else text

    def _describe(self, view: LedgerView, block: ReadableBlock) -> Steps[Text]:
        stored = read_stored(view, block)
        portions = stored.portions()
        fees = yield from _fees(block, portions)
        return b'{"block":%b,"issuance":%b,"totalFees":%b}' % (
            b"{%b}" % _head(stored, portions),
            _issuance(block, stored),
            write_quantity(fees),
        )

    def _page(self, view: LedgerView, block: ReadableBlock, number: int, size: int) -> Steps[Text]:
        stored = read_stored(view, block)
        portions = stored.portions()
        end = max(0, sum(map(len, portions)) - size * number)
        start = max(0, end - size)
        fragments: list[bytes] = []
        first = 0
        for portion in portions:
            for place in range(max(start, first), min(end, first + len(portion))):
                at = place - first
                (fragment,) = portion.fragments(at, at + 1, first, block.header)
                fragments.append(INPUT.sub(rb'"input":"0x\1"', fragment))
                yield None
            first += len(portion)
        receipts = yield from self._receipts(view, block, start, end)
        return in_pieces(
            [
                b'{"fullblock":{%b,"transactions":' % _head(stored, portions),
                shapes.join_fragments(block.hash, fragments),
                b'},"receipts":%b}' % array(receipts),
            ]
        )

    def _receipts(
        self, view: LedgerView, block: ReadableBlock, start: int, end: int
    ) -> Steps[list[bytes]]:
        stored = self._cache.stored(view, block)
        time = b',"timestamp":%b}' % write_quantity(block.header.timestamp)
        receipts: list[bytes] = []
        for place in range(start, end):
            receipt = stored.receipt(view.stored, place)
            assert receipt is not None, "its transaction is there"
            receipts.append(_without_logs(receipt)[:-1] + time)
            yield None
        return receipts


def _find(view: LedgerView, named: BlockName | int) -> ReadableBlock | None:
    if isinstance(named, int):
        if not 0 <= named < 1 << 63:
            refuse(0, "", "not a block number")
        named = hex(named)
    try:
        return find_block(view, named, 0)
    except NotHere:
        return None


def _head(stored: BlockParts, portions: list[Portion]) -> bytes:
    """The members of a block without its transactions."""
    size = stored.size(sum(portion.items.encoded_size for portion in portions))
    parts = [
        BLOOM.sub(b'"logsBloom":null', stored.header.members(size)),
        b'"uncles":' + array([shapes.write_data(uncle.hash) for uncle in stored.uncles]),
    ]
    if stored.withdrawals is not None:
        parts.append(b'"withdrawals":' + array(list(map(shapes.withdrawal, stored.withdrawals))))
    parts.append(b'"transactionCount":%b' % write_quantity(sum(map(len, portions))))
    return b",".join(parts)


def _issuance(block: ReadableBlock, stored: BlockParts) -> bytes:
    reward = block.rules.block_reward or 0
    mined = reward + len(stored.uncles) * (reward // 32)
    ages = [block.number - uncle.number for uncle in stored.uncles]
    uncles = sum(reward * (8 - age) // 8 for age in ages)
    return b'{"blockReward":%b,"uncleReward":%b,"issuance":%b}' % (
        write_quantity(mined),
        write_quantity(uncles),
        write_quantity(mined + uncles),
    )


def _fees(block: ReadableBlock, portions: list[Portion]) -> Steps[int]:
    """Return the fees that all transactions paid for gas."""
    fees, position = 0, Position()
    base_fee, some = block.header.base_fee_per_gas, THRESHOLDS.recovered_senders
    for portion in portions:
        for start in range(0, len(portion), some):
            for placed in some_receipts(portion, start, min(start + some, len(portion)), position):
                fees += placed.gas_used * placed.transaction.effective_gas_price(base_fee)
                position = placed.end
            yield None
    return fees


def _without_logs(receipt: bytes) -> bytes:
    """A receipt with null for its logs and their bloom."""
    start = receipt.index(b'"logs":')
    bloom = receipt.rindex(b'"logsBloom":"0x')
    end = receipt.index(b",", bloom)
    return receipt[:start] + b'"logs":null,"logsBloom":null' + receipt[end:]
