"""Search the history of an address: its transactions, and when its account changed.

Sealed blocks are found by the index of addresses; those after its last section each have a row,
and the few that have none yet, like the blocks in progress, are run again. A block's transactions
stay together, so a page may have more of them than requested.

Facts of an account that stay true once they are, a nonce that was reached or code that was set,
are found by binary search, from the oldest kept state to the newest of the view.
"""

from collections.abc import Callable, Iterator

from msgspec import Struct

from foreblock._engine import LogFilter, LogSearch, State
from foreblock.errors import PrunedState, RefusedTrace
from foreblock.ledger.reading.blocks import ReadableBlock
from foreblock.ledger.reading.stored_block import Portion, read_stored
from foreblock.ledger.reading.transaction_lookup import count_transactions
from foreblock.ledger.reading.view import LedgerView
from foreblock.ledger.rules.transaction_rules import DEPOSIT
from foreblock.ledger.storage.section_index import ADDRESSES, Indexed, touched_key
from foreblock.ledger.tracing.address_indexing import Touched, touched_by
from foreblock.scheduling.steps import UNHURRIED, Pace, Steps, Work
from foreblock.scheduling.thresholds import THRESHOLDS


class TouchingBlock(Struct, frozen=True):
    """A block and the places of its transactions that touch the address, in order."""

    block: ReadableBlock
    transaction_indexes: list[int]


class AddressPage(Struct, frozen=True):
    """Blocks in the order of the search, and whether there are more."""

    blocks: list[TouchingBlock]
    has_more: bool


def search_addresses(
    view: LedgerView, address: bytes, numbers: range, most: int, pace: Pace = UNHURRIED
) -> Steps[AddressPage]:
    """The next transactions that touch an address: `most`, and the rest of the last block.

    Blocks are searched in the order of `numbers`, one step of 1 or -1 after the other. Raises
    `RefusedTrace` where the store has no index, or blocks that are not indexed yet are reached.
    """
    if not ADDRESSES.exists(view.stored):
        raise RefusedTrace(
            "transactions by address need an index, which is not kept here (setting address_index)"
        )
    search = _Search(view, address, ADDRESSES.read(view.stored))
    found: list[TouchingBlock] = []
    count = 0
    for number in search.candidates(numbers):
        if number is None:
            if pace.is_over():
                yield None
            continue
        block = view.resolve(number) if number <= view.latest.number else view.unsealed(number)
        transaction_indexes = yield from search.transaction_indexes(block)
        if not transaction_indexes:
            continue
        if count >= most:
            return AddressPage(found, has_more=True)
        found.append(TouchingBlock(block, transaction_indexes))
        count += len(transaction_indexes)
    return AddressPage(found, has_more=False)


class _Search:
    """A search for one address in one view."""

    def __init__(self, view: LedgerView, address: bytes, indexed: Indexed) -> None:
        self._view = view
        self._address = address
        self._indexed = indexed
        self._run_again = 0

    def candidates(self, numbers: range) -> Iterator[int | None]:
        """The blocks that may have some, in order; None if others may have a turn."""
        end = self._indexed.end
        if numbers.step > 0:
            yield from self._in_sections(numbers.start, min(numbers.stop, end), backwards=False)
            yield from _with_pauses(range(max(numbers.start, end), numbers.stop))
        else:
            first, stop = numbers.stop + 1, numbers.start + 1
            yield from _with_pauses(range(numbers.start, max(first, end) - 1, -1))
            yield from self._in_sections(first, min(stop, end), backwards=True)

    def _in_sections(self, first: int, stop: int, *, backwards: bool) -> Iterator[int | None]:
        """Search one section after the other."""
        wanted = LogFilter([self._address], [])
        runs = self._indexed.runs(first, stop)
        for kind, (start, end) in reversed(runs) if backwards else runs:
            starts = range(start, end, kind[1])
            for section in reversed(starts) if backwards else starts:
                search = LogSearch(wanted, [(kind, (section, section + kind[1]))], first, stop)
                found: list[int] = []
                while search.reached is not None:
                    found += search.go_on(self._view.stored, THRESHOLDS.looked_up_terms)
                yield from reversed(found) if backwards else found
                yield None

    def transaction_indexes(self, block: ReadableBlock) -> Steps[list[int]]:
        """The places of a block's transactions that touch the address."""
        if block.number <= self._view.latest.number:
            row = self._view.stored.row(touched_key(block.number))
            if row is not None and row.startswith(block.hash):
                return Touched.of_row(row).transaction_indexes(self._address)
        if not count_transactions(self._view, block):
            return []
        self._run_again += 1
        if self._run_again > THRESHOLDS.searched_traces:
            end = self._indexed.end
            left = self._view.latest.number + 1 - end
            raise RefusedTrace(
                f"transactions by address are indexed below block {end}, {left} blocks are left"
            )
        touched: Touched = yield touched_by(self._view, block)
        return touched.transaction_indexes(self._address)


def _with_pauses(numbers: range) -> Iterator[int | None]:
    for number in numbers:
        yield number
        yield None


def first_block(view: LedgerView, holds: Callable[[State], bool]) -> ReadableBlock | None:
    """The first block after which it holds; None if it does not yet, or always did.

    Raises `PrunedState` where it became so before the oldest state that is kept.
    """
    oldest, newest = view.behind.earliest, view.latest.number
    if not holds(view.state_of_header(view.latest)):
        return _unsealed(view, holds)
    if holds(view.state(view.resolve(oldest))):
        if oldest > 0:
            raise PrunedState(oldest - 1, oldest)
        return None
    while newest - oldest > 1:
        middle = (oldest + newest) // 2
        if holds(view.state(view.resolve(middle))):
            newest = middle
        else:
            oldest = middle
    return view.resolve(newest)


def _unsealed(view: LedgerView, holds: Callable[[State], bool]) -> ReadableBlock | None:
    """Search the blocks in progress."""
    if view.pending is None:
        return None
    for number in range(view.latest.number + 1, view.pending.number + 1):
        block = view.unsealed(number)
        if holds(view.state(block)):
            return block
    return None


def find_sent(view: LedgerView, sender: bytes, nonce: int) -> Steps[bytes | None]:
    """The hash of the transaction that an account sent with a nonce; raises `PrunedState`."""
    block = first_block(view, lambda state: state.nonce(sender) > nonce)
    if block is None:
        return None
    found: bytes | None = yield _sent(read_stored(view, block).portions(), sender, nonce)
    return found


def _sent(portions: list[Portion], sender: bytes, nonce: int) -> Work:
    """Work that searches for a transaction; recovering senders takes long."""

    def search(**_limits: int | None) -> bytes | None:
        for portion in portions:
            for each in portion.transactions(0, len(portion)):
                if each.sender == sender and each.nonce == nonce and each.type != DEPOSIT:
                    return each.hash
        return None

    return search
