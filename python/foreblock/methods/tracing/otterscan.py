"""ots_*: transactions and accounts for the explorer Otterscan, at API level 8.

A page of a search has the transactions that touch an address and their receipts, the newest
first. Block 0 means the newest page of a search downwards and the oldest of one upwards. The
transactions of a block stay together, so a page may be longer than requested. Blocks in
Otterscan's format are in `otterscan_blocks`.
"""

from collections.abc import Awaitable
from functools import partial
from typing import Final

import msgspec
from msgspec import Raw, Struct

from foreblock.ledger.reading.blocks import ReadableBlock
from foreblock.ledger.reading.transaction_lookup import find_transaction
from foreblock.ledger.reading.view import LedgerView
from foreblock.ledger.tracing import traces
from foreblock.ledger.tracing.address_search import find_sent, first_block, search_addresses
from foreblock.ledger.tracing.traces import TraceBounds, Tracer, read_replay
from foreblock.methods import shapes
from foreblock.methods.blocks.receipts import ReceiptCache
from foreblock.methods.params import (
    BlockParam,
    Params,
    address,
    find_block,
    hash32,
    quantity,
    reader,
    refuse,
    take_none,
)
from foreblock.methods.shapes import write_data, write_quantity
from foreblock.methods.tracing.debug_traces import pieces_of, whole_text
from foreblock.scheduling.reply import Text, in_pieces
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Pace, Steps, try_in_place
from foreblock.settings import Settings

API_LEVEL: Final = b"8"


class HasCodeParams(Params):
    """The arguments of ots_hasCode."""

    address: str
    block: BlockParam = None


class OtsTransactionParams(Params):
    """The arguments of a method that names a transaction."""

    transaction_hash: str


class AddressParams(Params):
    """The arguments of ots_getContractCreator."""

    address: str


class SenderAndNonceParams(Params):
    """The arguments of ots_getTransactionBySenderAndNonce."""

    sender: str
    nonce: int | str


class _Action(Struct, frozen=True):
    """The part of a trace with the creator."""

    sender: str = msgspec.field(name="from")


class _Creation(Struct, rename="camel", frozen=True):
    """A trace of a creation."""

    action: _Action
    transaction_hash: str


_read_has_code: Final = reader(HasCodeParams)
_read_transaction: Final = reader(OtsTransactionParams)
_read_address: Final = reader(AddressParams)
_read_sender_and_nonce: Final = reader(SenderAndNonceParams)


class OtterscanMethods:
    """Methods about transactions and accounts."""

    def __init__(self, settings: Settings, scheduler: Scheduler) -> None:
        self._bounds: Final = TraceBounds(settings.trace.output)
        self._scheduler: Final = scheduler

    def api_level(self, _view: LedgerView, raw: Raw) -> bytes:
        """The version of this part of the API."""
        take_none(raw)
        return API_LEVEL

    def has_code(self, view: LedgerView, raw: Raw) -> bytes:
        """True if an account has code after a block."""
        params = _read_has_code(raw)
        state = view.state(find_block(view, params.block, 1))
        return b"true" if state.code(address(params.address, 0)) else b"false"

    def trace_transaction(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """All calls of a transaction in order, each with its depth."""
        return self._trace(view, raw, Tracer("entries"))

    def internal_operations(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """Transfers, creations and self-destructs inside a transaction."""
        return self._trace(view, raw, Tracer("operations"))

    def transaction_error(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """The data that a transaction reverted with, `0x` if it did not."""
        return self._trace(view, raw, Tracer("revertData"))

    def transaction_by_sender_and_nonce(
        self, view: LedgerView, raw: Raw
    ) -> bytes | Awaitable[bytes]:
        """The hash of the transaction that a sender sent with a nonce, or null."""
        params = _read_sender_and_nonce(raw)
        sender, nonce = address(params.sender, 0), plain_number(params.nonce, 1)
        steps = partial(self._by_nonce, view, sender, nonce)
        return self._scheduler.run(steps, view.client)

    def contract_creator(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """The transaction that created a contract and the account that did, or null."""
        contract = address(_read_address(raw).address, 0)
        return self._scheduler.run(partial(self._creator, view, contract), view.client)

    def _trace(self, view: LedgerView, raw: Raw, tracer: Tracer) -> bytes | Awaitable[Text]:
        wanted = hash32(_read_transaction(raw).transaction_hash, 0)
        return self._scheduler.run_text(partial(self._traced, view, wanted, tracer), view.client)

    def _traced(self, view: LedgerView, wanted: bytes, tracer: Tracer, pace: Pace) -> Steps[Text]:
        found = find_transaction(view, wanted)
        if found is None:
            return b"null"
        block, place = found
        replay = read_replay(view, block, place + 1)
        work = traces.block(replay, tracer, self._bounds, only=place)
        text = yield from try_in_place(work, pace)
        return (yield from whole_text(text, pace))

    def _by_nonce(self, view: LedgerView, sender: bytes, nonce: int, _pace: Pace) -> Steps[bytes]:
        found = yield from find_sent(view, sender, nonce)
        return b"null" if found is None else write_data(found)

    def _creator(self, view: LedgerView, contract: bytes, pace: Pace) -> Steps[bytes]:
        block = first_block(view, lambda state: bool(state.code(contract)))
        if block is None:
            return b"null"
        tracer = Tracer("parity", receivers=[contract], creations=True, take=1)
        text = yield traces.block(read_replay(view, block), tracer, self._bounds)
        pieces = yield from pieces_of(text, pace)
        if not pieces:
            return b"null"
        made = msgspec.json.decode(b"".join(pieces), type=_Creation)
        return msgspec.json.encode({"hash": made.transaction_hash, "creator": made.action.sender})


def plain_number(given: int | str, argument: int) -> int:
    """A quantity, or a plain number, as the explorer sends it."""
    if isinstance(given, str):
        return quantity(given, 64, argument)
    if not 0 <= given < 1 << 64:
        refuse(argument, "", "not a number of 64 bits")
    return given


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
        self._cache: Final = ReceiptCache()

    def before(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """A page of the transactions that touch an address, in blocks before one."""
        wanted, block, size = _read(raw)
        newest = view.shown.number
        is_first = block == 0 or block > newest
        numbers = range(newest if is_first else block - 1, 0, -1)
        return self._reply(view, wanted, numbers, size, is_edge=is_first)

    def after(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """A page of the transactions that touch an address, in blocks after one."""
        wanted, block, size = _read(raw)
        numbers = range(block + 1, view.shown.number + 1)
        return self._reply(view, wanted, numbers, size, is_edge=block == 0)

    def _reply(
        self, view: LedgerView, wanted: bytes, numbers: range, size: int, *, is_edge: bool
    ) -> bytes | Awaitable[Text]:
        begin = partial(self._search, view, wanted, numbers, size, is_edge=is_edge)
        text = self._scheduler.run(begin, view.client, self._scheduler.searches)
        return self._scheduler.send_text(text) if isinstance(text, list) else text

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
            for place in reversed(found.transaction_indexes):
                transaction, receipt = self._show(view, found.block, place)
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

    def _show(self, view: LedgerView, block: ReadableBlock, place: int) -> tuple[bytes, bytes]:
        """A transaction and its receipt."""
        stored = self._cache.stored(view, block)
        found = stored.transaction(view.stored, place)
        assert found is not None, "its row names transactions of the block"
        transaction, deposit = found
        fragment = transaction.fragment(block.header, place, deposit)
        time = b',"timestamp":%b}' % write_quantity(block.header.timestamp)
        text = stored.receipt(view.stored, place)
        assert text is not None, "it was read above"
        return shapes.whole_transaction(block.hash, fragment), text[:-1] + time


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
