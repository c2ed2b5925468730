"""ots_searchTransactionsBefore, ots_searchTransactionsAfter: the transactions of an address.

A page has the transactions that touch the address and their receipts, the newest first. Block 0
means the newest page of a search downwards and the oldest of one upwards. The transactions of a
block stay together, so a page may be longer than was asked for.
"""

from collections.abc import Awaitable
from functools import partial
from typing import Final

from msgspec import Raw

from foreblock.ledger.reading.blocks import ReadableBlock
from foreblock.ledger.reading.placed_receipts import read_receipt
from foreblock.ledger.reading.view import LedgerView
from foreblock.ledger.tracing.address_search import search_addresses
from foreblock.methods import shapes
from foreblock.methods.blocks.block_places import BlockPlaces
from foreblock.methods.params import Params, address, reader, refuse
from foreblock.methods.shapes import write_quantity
from foreblock.methods.tracing.otterscan import plain_number
from foreblock.scheduling.reply import Text, in_pieces
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Pace, Steps

MOST_OF_A_PAGE: Final = 25  # transactions, but for the rest of a block


class SearchParams(Params):
    """The arguments of ots_searchTransactionsBefore and After."""

    address: str
    block: int | str
    page_size: int


_read_search: Final = reader(SearchParams)


class OtterscanSearchMethods:
    """Searches by address."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler: Final = scheduler
        self._places: Final = BlockPlaces()

    def before(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """A page of the transactions that touch an address, in blocks before one."""
        wanted, block, size = _read(raw)
        newest = view.shown.number
        is_first = block == 0 or block > newest
        numbers = range(newest if is_first else block - 1, 0, -1)
        return self._give(view, wanted, numbers, size, is_edge=is_first)

    def after(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """A page of the transactions that touch an address, in blocks after one."""
        wanted, block, size = _read(raw)
        numbers = range(block + 1, view.shown.number + 1)
        return self._give(view, wanted, numbers, size, is_edge=block == 0)

    def _give(
        self, view: LedgerView, wanted: bytes, numbers: range, size: int, *, is_edge: bool
    ) -> bytes | Awaitable[Text]:
        begin = partial(self._search, view, wanted, numbers, size, is_edge=is_edge)
        text = self._scheduler.run(begin, view.client, self._scheduler.searches)
        return self._scheduler.give(text) if isinstance(text, list) else text

    def _search(
        self,
        view: LedgerView,
        wanted: bytes,
        numbers: range,
        size: int,
        pace: Pace,
        *,
        is_edge: bool,
    ) -> Steps[Text]:
        """The page; `is_edge` says that it begins at an end of the chain."""
        page = yield from search_addresses(view, wanted, numbers, size, pace)
        upwards = numbers.step > 0
        blocks = page.blocks[::-1] if upwards else page.blocks
        transactions: list[bytes] = []
        receipts: list[bytes] = []
        for found in blocks:
            for place in reversed(found.places):
                transaction, receipt = yield from self._show(view, found.block, place)
                transactions.append(transaction)
                receipts.append(receipt)
                if pace.is_over():
                    yield None
        is_first, is_last = (
            (not page.has_more, is_edge) if upwards else (is_edge, not page.has_more)
        )
        return in_pieces(
            [
                b'{"txs":[', *_joined(transactions), b'],"receipts":[', *_joined(receipts),
                b'],"firstPage":%b,"lastPage":%b}' % (_boolean(is_first), _boolean(is_last)),
            ]
        )  # fmt: skip

    def _show(
        self, view: LedgerView, block: ReadableBlock, place: int
    ) -> Steps[tuple[bytes, bytes]]:
        """A transaction and its receipt."""
        portion = yield from self._places.portion_at(view, block, place)
        placed = read_receipt(view, block, portion, place)
        assert placed is not None, "its row names transactions of the block"
        receipt, transaction = placed.receipt, placed.transaction
        deposit = None
        if receipt.deposit_nonce is not None and receipt.deposit_receipt_version is not None:
            deposit = receipt.deposit_nonce, receipt.deposit_receipt_version
        fragment = transaction.fragment(block.header, place, deposit)
        time = b',"timestamp":%b}' % write_quantity(block.header.timestamp)
        text = self._places.shape(view, block).receipt(placed)[:-1] + time
        return shapes.whole_transaction(block.hash, fragment), text


def _read(raw: Raw) -> tuple[bytes, int, int]:
    """The address, the block and the size of the page."""
    params = _read_search(raw)
    if not 0 < params.page_size <= MOST_OF_A_PAGE:
        refuse(2, "", f"a page has 1 to {MOST_OF_A_PAGE} transactions")
    return address(params.address, 0), plain_number(params.block, 1), params.page_size


def _joined(texts: list[bytes]) -> list[bytes]:
    """The texts with commas between them."""
    return [part for text in texts for part in (b",", text)][1:]


def _boolean(value: bool) -> bytes:  # noqa: FBT001, it is written
    return b"true" if value else b"false"
