"""Subscriptions to flashblocks: the block in progress after each, and their transactions.

The block in progress grows to megabytes, and a notification repeats all of it. A subscriber to
the newest transactions gets those of each flashblock and the number of all.

A transaction is pending when the block in progress contains it. Transactions in the pool are not
announced: the pool belongs to the sequencer, and only ordered transactions can be resumed.
"""

from collections.abc import Collection, Mapping
from typing import Final

from msgspec import Struct

from foreblock.ledger.reading.events import Event, FlashblockAdded
from foreblock.ledger.reading.logs import (
    FlashblockPortion,
    PlacedLog,
    read_flashblock,
    read_logs,
)
from foreblock.ledger.reading.view import LedgerView
from foreblock.methods import shapes
from foreblock.methods.blocks.block_text import BlockTexts
from foreblock.methods.events.kinds import FLASHBLOCKS, Kind, Notice, Wanted
from foreblock.methods.events.log_methods import log_end, log_text
from foreblock.scheduling.reply import whole
from foreblock.scheduling.steps import Steps
from foreblock.scheduling.thresholds import THRESHOLDS
from foreblock.types import Header

_AFTER_PLACE: Final = b',"type":'  # the first member that does not depend on the block
_NO_PLACE: Final = (
    b'{"blockHash":null,"blockNumber":null,"blockTimestamp":null,"transactionIndex":null'
)

# A header without a base fee, for transactions that are in no block.
_NO_BLOCK: Final = Header(
    parent_hash=bytes(32),
    beneficiary=bytes(20),
    state_root=bytes(32),
    number=0,
    gas_limit=0,
    timestamp=0,
)


class NewestWanted(Struct, frozen=True):
    """A subscriber that wants the newest transactions of each flashblock only."""

    count: int


class NewFlashblocks(Kind):
    """The block in progress after each flashblock: with all transactions, or the newest."""

    code = "b"
    track = FLASHBLOCKS

    def __init__(self, texts: BlockTexts) -> None:
        self._texts: Final = texts

    def render(
        self, view: LedgerView, event: Event, wanted: Collection[Wanted]
    ) -> Steps[Mapping[Wanted, list[Notice]]]:
        """The block as of the flashblock."""
        found: dict[Wanted, list[Notice]] = {}
        if not isinstance(event, FlashblockAdded):
            return found
        newest = [each for each in wanted if isinstance(each, NewestWanted)]
        is_whole_wanted = len(newest) < len(wanted)
        if newest:
            found.update((yield from _render_newest(view, event, newest)))
        if is_whole_wanted:
            text = yield from self._texts.render(view, event.block, full=True)
            found[None] = [Notice(whole(text))]
        return found


def _render_newest(
    view: LedgerView, event: FlashblockAdded, wanted: Collection[NewestWanted]
) -> Steps[Mapping[Wanted, list[Notice]]]:
    """The block with the last transactions of the flashblock, and the number of all."""
    flashblock = read_flashblock(view, event.block)
    count = len(flashblock.portion)
    most = 0 if event.is_empty_index else max(each.count for each in wanted)
    fragments: list[bytes] = []
    for start in range(max(0, count - most), count, THRESHOLDS.rendered_transactions):
        stop = min(start + THRESHOLDS.rendered_transactions, count)
        fragments += flashblock.portion.fragments(
            start, stop, flashblock.transactions, event.block.header
        )
        yield None
    head = b'{%b,"flashblockIndex":%b,"transactionCount":%b,"transactions":' % (
        event.block.header.members(),
        shapes.write_quantity(event.index),
        shapes.write_quantity(flashblock.transactions + count),
    )
    found: dict[Wanted, list[Notice]] = {}
    by_first: dict[int, list[Notice]] = {}
    for each in wanted:
        first = max(0, len(fragments) - each.count)
        if first not in by_first:
            text = shapes.join_fragments(event.block.hash, fragments[first:])
            by_first[first] = [Notice(b"%b%b}" % (head, text))]
            yield None
        found[each] = by_first[first]
    return found


class TransactionsWanted(Struct, frozen=True):
    """The form in which a subscriber gets transactions."""

    full: bool  # as objects, or by their hashes
    of_pool: bool = False  # as those of a pool: without deposits, logs and a place in a block


class FlashblockTransactions(Kind):
    """Transactions of flashblocks, each by itself."""

    code = "t"
    track = FLASHBLOCKS

    def render(
        self, view: LedgerView, event: Event, wanted: Collection[Wanted]
    ) -> Steps[Mapping[Wanted, list[Notice]]]:
        """Every transaction that the flashblock adds, in each of the forms that are wanted."""
        if not isinstance(event, FlashblockAdded) or event.is_empty_index:
            return {}
        found: dict[Wanted, list[Notice]] = {each: [] for each in wanted}
        flashblock = read_flashblock(view, event.block)
        logs: dict[int, list[bytes]] = {}
        if TransactionsWanted(full=True) in found:
            logs = yield from _logs_of(view, event)
        first, count = flashblock.transactions, len(flashblock.portion)
        for start in range(0, count, THRESHOLDS.rendered_transactions):
            stop = min(start + THRESHOLDS.rendered_transactions, count)
            forms = _Forms(flashblock, event, start, stop, logs)
            for each, notices in found.items():
                assert isinstance(each, TransactionsWanted)
                texts = forms.texts(each)
                notices += [
                    Notice(text, place + 1)
                    for place, text in enumerate(texts, first + start)
                    if text and place >= event.start
                ]
            yield None
        return found


class _Forms:
    """Some transactions of a flashblock, in the forms that subscribers want."""

    def __init__(
        self,
        flashblock: FlashblockPortion,
        event: FlashblockAdded,
        start: int,
        stop: int,
        logs: Mapping[int, list[bytes]],
    ) -> None:
        self._flashblock = flashblock
        self._block = event.block
        self._range = (start, stop)
        self._logs = logs

    def texts(self, wanted: TransactionsWanted) -> list[bytes]:
        """One text for each transaction; an empty one if it is not wanted."""
        portion, (start, stop) = self._flashblock.portion, self._range
        if not wanted.full:
            texts = portion.items.hashes(start, stop).split(b",") if stop > start else []
        elif wanted.of_pool:
            texts = [_without_position(each) for each in self._fragments(priced=False)]
        else:
            texts = [
                self._with_logs(place, fragment)
                for place, fragment in enumerate(
                    self._fragments(priced=True), self._flashblock.transactions + start
                )
            ]
        if not wanted.of_pool:
            return texts
        raws = portion.items.take(start, stop)
        return [
            b"" if raw[0] == shapes.DEPOSIT else text for raw, text in zip(raws, texts, strict=True)
        ]

    def _fragments(self, *, priced: bool) -> list[bytes]:
        """Fragments; without the price that a block gives, gas costs what is offered at most."""
        header = self._block.header if priced else _NO_BLOCK
        return self._flashblock.portion.fragments(
            *self._range, self._flashblock.transactions, header
        )

    def _with_logs(self, place: int, fragment: bytes) -> bytes:
        whole_text = shapes.whole_transaction(self._block.hash, fragment)
        return b'%b,"logs":%b}' % (whole_text[:-1], shapes.array(self._logs.get(place, [])))


def _without_position(fragment: bytes) -> bytes:
    return b"".join((_NO_PLACE, fragment[fragment.index(_AFTER_PLACE) :], b"}"))


def _logs_of(view: LedgerView, event: FlashblockAdded) -> Steps[dict[int, list[bytes]]]:
    """The logs of a flashblock by the places of their transactions in the block."""
    end, found = log_end(event.block.header), dict[int, list[bytes]]()

    def take(placed: PlacedLog) -> None:
        found.setdefault(placed.transaction_index, []).append(log_text(placed, end))

    yield from read_logs(view, FlashblockAdded(event.block), take)
    return found
