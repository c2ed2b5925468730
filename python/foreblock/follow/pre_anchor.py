"""Verified history: blocks, transactions and receipts before the anchor of a followed chain.

They come through the network's upstreams, are verified against the hash of their block, rendered
here, and marked by the header `Foreblock-Source: upstream`. A block that a client names by hash is
verified by that hash. A block found by its number, or by a transaction in it, must be proven to be
of this chain: by the contract of EIP-2935, which has the last 8,191 hashes, or by the parents of
the anchor. If upstreams are trusted, their word is enough. The anchor itself is such a block if no
upstream had its receipts when it was stored: then only its header is here.

A transaction that no upstream knows is not requested again at once: clients poll.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from functools import partial
from typing import Any, Final

from msgspec import Raw

from foreblock.errors import BeforeAnchor, NotHere, NoUpstream, StateMissing, UnknownBlockHash
from foreblock.follow.passthrough import FIRST, NULL, Find, beside
from foreblock.follow.worker_state import WorkerState
from foreblock.ledger.reading.blocks import BlockId, ByHash, SealedBlock
from foreblock.ledger.reading.transaction_lookup import find_transaction, find_unsealed
from foreblock.ledger.reading.view import Ledger, LedgerView
from foreblock.ledger.rules.execution import HISTORY_STORAGE, HISTORY_WINDOW
from foreblock.ledger.storage.mirror_rows import why_dropped
from foreblock.lru_cache import LruCache
from foreblock.methods.blocks.block_methods import read_by_hash, read_by_number
from foreblock.methods.blocks.old_texts import OldBlockTexts
from foreblock.methods.blocks.receipts import read_hash, read_receipts
from foreblock.methods.params import hash32, read_block
from foreblock.methods.table import MethodFunction
from foreblock.rpc.envelope import NO_PARAMS
from foreblock.rpc.fetching_dispatcher import Missed
from foreblock.scheduling.reply import Text
from foreblock.types import Block
from foreblock.upstream.old_blocks import AskUpstream, OldBlocks, index_of

ABSENT_SECONDS: Final = 2.0  # until an unknown transaction is requested again
MOST_ABSENT: Final = 4096
MOST_ANCESTORS: Final = 256  # of the anchor, each of which its child names


class VerifiedHistory:
    """The methods of one network that reach before its anchor."""

    def __init__(
        self,
        ledger: Ledger,
        state: WorkerState,
        ask: AskUpstream,
        clock: Callable[[], float] = time.monotonic,
        *,
        believes: bool = False,
        only_below: bool = False,
    ) -> None:
        """With `believes`, the upstream decides which block has a number.

        With `only_below`, blocks above the anchor are of another branch than the chain here.
        """
        self._believes: Final = believes
        self._only_below: Final = only_below
        self._ledger: Final = ledger
        self._state: Final = state
        self._blocks: Final = OldBlocks(ask)
        self._clock: Final = clock
        self._absent: Final = LruCache[bytes, float](MOST_ABSENT)  # until when

    def add(self, methods: dict[str, MethodFunction]) -> None:
        """Make methods of this table serve blocks before the anchor."""
        wrap = {
            "eth_getBlockByHash": self._block_by_hash,
            "eth_getBlockByNumber": self._block_by_number,
            "eth_getBlockReceipts": self._receipts_of_block,
            "eth_getTransactionByHash": self._transaction,
            "eth_getTransactionReceipt": self._receipt,
        }
        for name, method in wrap.items():
            methods[name] = beside(methods[name], partial(self._in_time, method))

    def _in_time(
        self, method: Callable[[LedgerView, Raw], Find | None], view: LedgerView, raw: Raw
    ) -> Find | None:
        """Bound a method by `fetch_timeout`, however many requests it makes."""
        find, seconds = method(view, raw), self._state.settings.fetch_timeout
        if find is None:
            return None

        async def find_in_time() -> Text:
            try:
                async with asyncio.timeout(seconds):
                    return await find()
            except TimeoutError:
                raise NoUpstream(f"nothing in {seconds:g} s", 1) from None

        return find_in_time

    def _block_by_hash(self, view: LedgerView, raw: Raw) -> Find | None:
        params = read_by_hash(raw)
        wanted = hash32(params.hash, 0)
        is_here = self._hash_elsewhere(view, ByHash(wanted)) is None
        return None if is_here else lambda: self._show_block(wanted, params)

    def _block_by_number(self, view: LedgerView, raw: Raw) -> Find | None:
        params = read_by_number(raw)
        find_hash = self._hash_elsewhere(view, read_block(params.block, 0))
        if find_hash is None:
            return None

        async def find() -> Text:
            wanted = await find_hash()
            return NULL if wanted is None else await self._show_block(wanted, params)

        return find

    def _receipts_of_block(self, view: LedgerView, raw: Raw) -> Find | None:
        find_hash = self._hash_elsewhere(view, read_block(read_receipts(raw).block, 0))
        if find_hash is None:
            return None

        async def find() -> Text:
            wanted = await find_hash()
            block = None if wanted is None else await self._by_hash(wanted)
            return NULL if block is None else (await self._texts(block)).receipts()

        return find

    def _transaction(self, view: LedgerView, raw: Raw) -> Find | None:
        return self._of_transaction(view, raw, OldBlockTexts.transaction)

    def _receipt(self, view: LedgerView, raw: Raw) -> Find | None:
        return self._of_transaction(view, raw, OldBlockTexts.receipt)

    def _of_transaction(
        self, view: LedgerView, raw: Raw, show: Callable[[OldBlockTexts, int], bytes]
    ) -> Find | None:
        wanted = read_hash(raw)
        if find_transaction(view, wanted) is not None or find_unsealed(view, wanted) is not None:
            return None
        if self._is_absent(wanted) or why_dropped(view.stored, wanted) is not None:
            return None

        async def find() -> Text:
            found = await self._find_transaction(wanted)
            return NULL if found is None else show(await self._texts(found[0]), found[1])

        return find

    async def _show_block(self, block_hash: bytes, params: Any) -> Text:  # noqa: ANN401, of either method
        block = await self._by_hash(block_hash)
        if block is None:
            return NULL
        if params.full_transactions:
            return (await self._texts(block)).block(full=True)
        return OldBlockTexts(block, (), self._ledger.profile).block(full=False)

    async def _by_hash(self, block_hash: bytes) -> Block | None:
        block = await self._blocks.by_hash(block_hash)
        if block is None or not self._only_below:
            return block
        with closing(self._ledger.view()) as view:
            return block if block.header.number <= view.base.number else None

    async def _find_transaction(self, transaction_hash: bytes) -> tuple[Block, int] | None:
        """The old block that has a transaction, and its index in it."""
        block_hash = await self._blocks.block_of(transaction_hash)
        block = None if block_hash is None else await self._blocks.by_hash(block_hash)
        index = None if block is None else index_of(block, transaction_hash)
        with closing(self._ledger.view()) as view:
            anchor = view.base.number
            find_hash = None if block is None else self._hash_elsewhere(view, block.header.number)
        if block is None or index is None or find_hash is None:
            self._note_absent(transaction_hash)  # blocks since the anchor are known here
            return None
        if await find_hash() != block.hash:
            raise BeforeAnchor(block.header.number, anchor)
        return block, index

    def _hash_elsewhere(
        self, view: LedgerView, named: BlockId
    ) -> Callable[[], Awaitable[bytes | None]] | None:
        """A way to find the hash of a block whose body upstreams have; None if it is here."""
        if isinstance(named, int) and named < view.base.number:
            return partial(self._hash_of, named)
        if named == FIRST and self._believes:
            return None  # passed on: the first block of the chain, not the first one here
        try:
            block = view.resolve(named)
        except UnknownBlockHash as unknown:
            return partial(_known, unknown.hash)
        except NotHere:
            return None
        if isinstance(block, SealedBlock) and not block.has_body:
            return partial(_known, block.hash)
        return None

    async def _hash_of(self, number: int) -> bytes | None:
        """The hash of an ancestor; None if there is none. Raises `BeforeAnchor`."""
        proven = await self._proven_hash(number)
        if proven is not None:
            return proven
        with closing(self._ledger.view()) as view:
            if view.trust != "trusted" and not self._believes:
                raise BeforeAnchor(number, view.base.number)
        return await self._blocks.hash_of_number(number)

    async def _proven_hash(self, number: int) -> bytes | None:
        """The hash of an ancestor in the state of this chain; None if it has none."""
        rounds = self._state.new_fetch_budget()
        while True:
            try:
                with closing(self._ledger.view()) as view:
                    latest = view.latest
                    if view.base.number - MOST_ANCESTORS <= number < view.base.number:
                        return view.state(latest).block_hash(number)
                    if not latest.number - HISTORY_WINDOW <= number < latest.number:
                        return None
                    slot = number % HISTORY_WINDOW
                    value = view.state(latest).storage(HISTORY_STORAGE, slot)
                    return value.to_bytes(32) if value else None
            except StateMissing as missing:
                missed = missing
            await rounds.fetch([Missed("eth_getStorageAt", NO_PARAMS, missed)])

    async def _texts(self, block: Block) -> OldBlockTexts:
        """All texts of a block; deposits need fields of their receipts."""
        receipts = await self._blocks.receipts_of(block)
        return OldBlockTexts(block, receipts, self._ledger.profile)

    def _is_absent(self, transaction_hash: bytes) -> bool:
        return (self._absent.get(transaction_hash) or 0.0) > self._clock()

    def _note_absent(self, transaction_hash: bytes) -> None:
        self._absent.keep(transaction_hash, self._clock() + ABSENT_SECONDS)


async def _known(block_hash: bytes) -> bytes:
    return block_hash
