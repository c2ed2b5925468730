"""trace_transaction, trace_block, trace_filter: frames of transactions.

The format is Parity's, as in reth and erigon: all frames of a transaction as one list. Runs with
what they returned and changed are in `replays`.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from msgspec import Raw, Struct

from foreblock.errors import NotHere, TraceTooLong
from foreblock.ledger.reading.blocks import ReadableBlock
from foreblock.ledger.reading.stored_block import read_stored
from foreblock.ledger.reading.transaction_lookup import find_transaction
from foreblock.ledger.reading.view import LedgerView
from foreblock.ledger.tracing import traces
from foreblock.ledger.tracing.traces import TraceBounds, Tracer, read_replay
from foreblock.methods.params import (
    BlockName,
    BlockParam,
    Params,
    address,
    find_block,
    hash32,
    quantity,
    reader,
    refuse,
)
from foreblock.methods.shapes import write_quantity
from foreblock.methods.tracing.debug_traces import encode_hash, pieces_of, whole_text
from foreblock.scheduling.reply import Text, in_pieces
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Pace, Steps, try_in_place
from foreblock.settings import Settings

MOST_ADDRESSES: Final = 1_000  # of a filter


class TransactionParams(Params):
    """The arguments of a method that names a transaction."""

    transaction_hash: str


class BlockParams(Params):
    """The arguments of trace_block."""

    block: BlockName


class TraceFilter(Struct, rename="camel", frozen=True):
    """The requested traces."""

    from_block: BlockParam = None
    to_block: BlockParam = None
    from_address: list[str] | None = None
    to_address: list[str] | None = None
    mode: str | None = None
    after: int | str | None = None
    count: int | str | None = None


class TraceFilterParams(Params):
    """The arguments of trace_filter."""

    filter: TraceFilter


_read_transaction: Final = reader(TransactionParams)
_read_block: Final = reader(BlockParams)
_read_filter: Final = reader(TraceFilterParams)


class ParityMethods:
    """Methods that trace in Parity's format."""

    def __init__(self, settings: Settings, scheduler: Scheduler) -> None:
        self._bounds: Final = TraceBounds(settings.trace.output)
        self._most_blocks: Final = settings.trace.blocks
        self._scheduler: Final = scheduler

    def transaction(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """The traces of a transaction, or null if it is in no block."""
        wanted = hash32(_read_transaction(raw).transaction_hash, 0)
        return self._scheduler.run_text(partial(self._transaction, view, wanted), view.client)

    def block(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """The traces of all transactions of a block, and its rewards; null for an unknown block."""
        params = _read_block(raw)
        try:
            block = find_block(view, params.block, 0)
        except NotHere:
            return b"null"
        return self._scheduler.run_text(partial(self._block, view, block), view.client)

    def filter(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """The traces of a range of blocks, from and to certain addresses."""
        query = _read_filter(raw).filter
        first = find_block(view, query.from_block, 0)
        last = find_block(view, query.to_block, 0)
        count = last.number - first.number + 1
        if count <= 0:
            refuse(0, "$.toBlock", "invalid block range: fromBlock is above toBlock")
        if count > self._most_blocks:
            most = self._most_blocks
            refuse(0, "", f"query exceeds max block range {most}: {count} blocks are asked for")
        # The first block of a chain has no transactions.
        numbers = range(max(first.number, 1), last.number + 1)
        tracer = _tracer(query)
        kept = _count(query.after, "$.after") or 0, _count(query.count, "$.count")
        steps = partial(self._blocks, view, numbers, last, tracer, kept)
        return self._scheduler.run_text(steps, view.client)

    def _transaction(self, view: LedgerView, wanted: bytes, pace: Pace) -> Steps[Text]:
        found = find_transaction(view, wanted)
        if found is None:
            return b"null"
        block, place = found
        replay = read_replay(view, block, place + 1)
        work = traces.block(replay, Tracer("parity"), self._bounds, only=place)
        text = yield from try_in_place(work, pace)
        return (yield from whole_text(text, pace, b"[", b"]"))

    def _block(self, view: LedgerView, block: ReadableBlock, pace: Pace) -> Steps[Text]:
        text = yield traces.block(read_replay(view, block), Tracer("parity"), self._bounds)
        pieces = yield from pieces_of(text, pace)
        rewards = _rewards(view, block)
        comma = [b","] if pieces and rewards else []
        return in_pieces([b"[", *pieces, *comma, b",".join(rewards), b"]"])

    def _blocks(
        self,
        view: LedgerView,
        numbers: range,
        last: ReadableBlock,
        tracer: Callable[..., Tracer],
        kept: tuple[int, int | None],
        pace: Pace,
    ) -> Steps[Text]:
        """The traces of blocks, one after the other; all of them count against one bound.

        `kept` are the traces to skip and those to take after them.
        """
        pieces: list[bytes] = []
        size = 0
        for number in numbers:
            skip, take = kept
            if take == 0:
                break
            left = TraceBounds(self._bounds.output - size)
            if left.output <= 0:
                raise TraceTooLong(self._bounds.output)
            block = last if number == last.number else view.resolve(number)
            replay = read_replay(view, block)
            text = yield traces.block(replay, tracer(skip=skip, take=take), left)
            kept = text.left
            if len(text) > 0:
                pieces += [b","] if pieces else []
                pieces += yield from pieces_of(text, pace)
                size += len(text)
        return in_pieces([b"[", *pieces, b"]"])


def _tracer(query: TraceFilter) -> Callable[..., Tracer]:
    senders, receivers = query.from_address or [], query.to_address or []
    if len(senders) + len(receivers) > MOST_ADDRESSES:
        refuse(0, "", f"more than {MOST_ADDRESSES} addresses")
    if query.mode not in (None, "union", "intersection"):
        refuse(0, "$.mode", "want 'union' or 'intersection'")
    return partial(
        Tracer,
        "parity",
        senders=[address(each, 0, "$.fromAddress") for each in senders],
        receivers=[address(each, 0, "$.toAddress") for each in receivers],
        either=query.mode != "intersection",
    )


def _count(given: int | str | None, path: str) -> int | None:
    if isinstance(given, str):
        return quantity(given, 64, 0, path)
    if given is not None and not 0 <= given < 1 << 64:
        refuse(0, path, "not a count")
    return given


def _rewards(view: LedgerView, block: ReadableBlock) -> list[bytes]:
    """Return the rewards of a block and of its uncles, as traces."""
    reward = block.rules.block_reward
    if not reward:
        return []
    header, uncles = block.header, read_stored(view, block).uncles
    paid = [(header.beneficiary, "block", reward + len(uncles) * (reward // 32))]
    for uncle in uncles:
        age = header.number - uncle.number
        paid.append((uncle.beneficiary, "uncle", reward * (8 - age) // 8))
    return [
        b'{"action":{"author":"0x%b","rewardType":"%b","value":%b},"blockHash":%b,'
        b'"blockNumber":%d,"result":null,"subtraces":0,"traceAddress":[],'
        b'"transactionHash":null,"transactionPosition":null,"type":"reward"}'
        % (
            author.hex().encode(),
            kind.encode(),
            write_quantity(value),
            encode_hash(block.hash),
            block.number,
        )
        for author, kind, value in paid
    ]
