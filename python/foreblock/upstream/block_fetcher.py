"""Read blocks and heads of a chain from its upstreams, within their budgets.

An upstream that does not respond, or not with a block, counts as failing, and the next one is
used. A block has the requested hash, computed here from its header, and the transactions that its
header names.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
from msgspec import Raw, Struct

from foreblock.backoff import Backoff, Waits
from foreblock.errors import (
    CallerError,
    DisputedBlock,
    EndpointError,
    NoSuchBlock,
    RefusedAnswer,
    Unreachable,
)
from foreblock.lru_cache import LruCache
from foreblock.primitives import format_data, format_quantity, parse_data, parse_hash
from foreblock.types import Block, Header, Withdrawal, decode_block, keccak256, transactions_root
from foreblock.upstream.block_json import UnclesMissing, rebuild_block, rebuild_header
from foreblock.upstream.budget import Purpose, Urgency
from foreblock.upstream.endpoint import Upstream
from foreblock.upstream.json_rpc import RefusalKind, is_null, refuse
from foreblock.upstream.old_blocks import MOST_UNCLES, UNCLE, OldBlock, OldBlocks

SECONDS: Final = 10.0  # for one response
AGREE: Final = 2.0  # for a response that others are compared with
NOT_THERE: Final = (RefusalKind.NULL, RefusalKind.NO_BLOCK)
TRIES: Final = 4  # if a response was damaged or did not come
PATIENCE: Final = 2.0  # seconds for all of them
WAITS: Final = Waits(0.05, 0.4)  # between them
SLOW_HEADS: Final = 8  # reads of the latest block between two of the safe and the final one
MOST_KEPT: Final = 4  # blocks that came with a head

T = TypeVar("T")

_RAW: Final = "debug_getRawBlock"
_NO_METHOD: Final = (RefusalKind.NO_METHOD, RefusalKind.FORBIDDEN)


class CanonicalHead(NamedTuple):
    """Number and hash of a block."""

    number: int
    hash: bytes


class CanonicalHeads(NamedTuple):
    """The heads of the endpoint's chain; it may have no safe or finalized block."""

    latest: CanonicalHead
    safe: CanonicalHead | None
    finalized: CanonicalHead | None


class _WithBlockHash(Struct, rename="camel"):
    """A transaction as JSON; it has no block while it waits."""

    block_hash: str | None = None


class _Witness(Struct):
    state: list[str]


class BlockFetcher:
    """Reads from these upstreams, the best first."""

    def __init__(
        self,
        upstreams: Sequence[Upstream],
        purpose: Purpose = Purpose.SEALED,
        *,
        is_unmetered: bool = False,
    ) -> None:
        """If `is_unmetered`, blocks come as RLP where it is served, and all heads each time."""
        self.upstreams: Final = upstreams
        self._asks_for_bytes = is_unmetered
        self._slow_heads: Final = 1 if is_unmetered else SLOW_HEADS
        self.purpose = purpose
        # Whether the latest block comes whole: where nothing else brings it, one request is saved.
        self.brings_latest = False
        # The transactions of what may be the block of a hash, where others bring them too.
        self.bodies: Callable[[bytes], Awaitable[Sequence[tuple[bytes, ...]]]] | None = None
        self._kept: Final = LruCache[bytes, Block](MOST_KEPT)
        self._newest: Block | None = None  # the latest, if it came whole
        self._reads = 0
        self._slow: tuple[CanonicalHead | None, CanonicalHead | None] = (None, None)

    @property
    def shown(self) -> str:
        """The best upstream, without its secrets."""
        return self.upstreams[0].shown

    async def heads(self) -> CanonicalHeads:
        """The current heads; the safe and the final one are read now and then only."""
        latest = await self._latest_block() if self.brings_latest else None
        if latest is None:
            latest = await self.head("latest")
        if self._reads % self._slow_heads == 0:
            self._slow = await self._head_if_known("safe"), await self._head_if_known("finalized")
        self._reads += 1
        return CanonicalHeads(latest, *self._slow)

    async def _latest_block(self) -> CanonicalHead | None:
        """The latest block, kept for whoever asks for it; None if only its header is there."""
        try:
            block = await self._read_block("eth_getBlockByNumber", ["latest", True])
        except Unreachable:
            return None
        self._kept.keep(block.hash, block)
        self._newest = block
        return CanonicalHead(block.header.number, block.hash)

    async def block(self, hash: bytes) -> Block:
        """The block with this hash. Raises `EndpointError`."""
        kept = self._kept.get(hash)
        if kept is not None:
            return kept
        bodies = () if self.bodies is None else await self.bodies(hash)
        if bodies:
            header = await self.header(format_data(hash))
            for body in bodies:
                if transactions_root(body) == header.transactions_root:
                    return Block(header, body, (), _no_withdrawals(header))
        return await self._read_block("eth_getBlockByHash", [format_data(hash), True], hash)

    async def block_at(self, number: int) -> Block:
        """The canonical block with this number. Raises `EndpointError`."""
        if self._newest is not None and self._newest.header.number == number:
            return self._newest
        name = format_quantity(number)
        return await self._read_block("eth_getBlockByNumber", [name, True], number=number)

    async def block_of(self, transaction: bytes) -> Block:
        """The block of the transaction with this hash. Raises `EndpointError`."""
        name = format_data(transaction)
        block = await self.block(await self._read("eth_getTransactionByHash", [name], _block_hash))
        if transaction not in map(keccak256, block.transactions):
            raise Unreachable(self.shown, f"block {format_data(block.hash)} does not have {name}")
        return block

    async def _read_block(
        self,
        method: str,
        params: list[object],
        hash: bytes | None = None,
        number: int | None = None,
    ) -> Block:
        """Return a block; a mined one with its uncles, which are requested one by one."""
        if self._asks_for_bytes:
            try:
                return await self._read_once(
                    _RAW, params[:1], lambda result: _decoded_block(result, hash, number)
                )
            except RefusedAnswer as refused:
                # A missing block is an error of this method too: the other method is used.
                self._asks_for_bytes = refused.kind not in _NO_METHOD
        try:
            return await self._read(method, params, lambda result: _block(result, hash, number))
        except UnclesMissing as missing:
            uncles = [
                await self._read(UNCLE, [format_data(missing.block), format_quantity(at)], _uncle)
                for at in range(min(len(missing.hashes), MOST_UNCLES))
            ]
        try:
            return await self._read(
                method, params, lambda result: _block(result, hash, number, uncles)
            )
        except UnclesMissing as others:
            raise Unreachable(self.shown, str(others)) from None

    async def head_at(self, number: int) -> CanonicalHead:
        """The hash of the canonical block with this number. Raises `EndpointError`."""
        return await self.head(format_quantity(number))

    async def head(self, name: str) -> CanonicalHead:
        """Number and hash of a block by its number or tag."""
        header = await self.header(name)
        return CanonicalHead(header.number, header.hash)

    async def header(self, name: str) -> Header:
        """The header of a block by its number, tag or hash; its hash is computed here."""
        method = "eth_getBlockByHash" if len(name) == 66 else "eth_getBlockByNumber"
        return await self._read(method, [name, False], lambda result: _header(result, name))

    async def hashes_at(self, number: int) -> dict[Upstream, bytes]:
        """The hash of the canonical block with this number at each upstream that has one."""
        name = format_quantity(number)
        params: list[object] = [name, False]
        asking = [
            self._ask(
                each, "eth_getBlockByNumber", params, lambda result: _header(result, name), AGREE
            )
            for each in self.upstreams
        ]
        headers = await asyncio.gather(*asking, return_exceptions=True)
        return {
            upstream: header.hash
            for upstream, header in zip(self.upstreams, headers, strict=True)
            if isinstance(header, Header)
        }

    async def agreed_header(self, name: str) -> Header:
        """The header of a block on which all upstreams agree that have a block of its number.

        Raises `EndpointError`, `DisputedBlock` if they do not agree.
        """
        header = await self.header(name)
        if len(self.upstreams) == 1:
            return header
        found = await self.hashes_at(header.number)
        if set(found.values()) - {header.hash}:
            hashes = [f"{each.shown} has {format_data(other)}" for each, other in found.items()]
            raise DisputedBlock(header.number, ", ".join(hashes))
        return header

    async def is_confirmed(self, header: Header, least: int = 1) -> bool:
        """Return True if the block that is not valid here is canonical at these upstreams.

        All that have a block of its number must agree, and `least` of them have it. Those that
        alone have it, or with fewer than others have another one, are not used for a while.
        """
        found = await self.hashes_at(header.number)
        agreeing = [each for each, block_hash in found.items() if block_hash == header.hash]
        others = len(found) - len(agreeing)
        if others and len(agreeing) <= others:
            for each in agreeing:
                each.report_bad_data(
                    f"its block {header.number} is not valid, and others have another one"
                )
        return not others and len(agreeing) >= least

    async def whole(self, hash: bytes) -> OldBlock | None:
        """A block with its receipts, both verified; None if no upstream has them."""

        async def ask(method: str, params: bytes) -> bytes:
            return await self._read(method, msgspec.json.decode(params, type=list[Any]), bytes)

        blocks = OldBlocks(ask)
        try:
            block = await blocks.by_hash(hash)
            return None if block is None else OldBlock(block, await blocks.receipts_of(block))
        except EndpointError:
            return None

    async def witness_nodes(self, number: int) -> list[bytes]:
        """The trie nodes of a block's witness, where one is served; whether they fit, a root tells.

        Raises `EndpointError`.
        """
        return await self._read("debug_executionWitness", [format_quantity(number)], _nodes)

    async def _head_if_known(self, tag: str) -> CanonicalHead | None:
        try:
            return await self.head(tag)
        except NoSuchBlock:
            return None
        except Unreachable:
            return None  # requested again later

    def close(self) -> None:
        """Close the upstreams."""
        for upstream in self.upstreams:
            upstream.close()

    async def _read(self, method: str, params: list[object], read: Callable[[Raw], T]) -> T:
        """Return the first usable response. Raises `NoSuchBlock` or `Unreachable`.

        If the responses of all upstreams were damaged or missing, they are requested again soon:
        a walk of many blocks restarts if one of them fails.
        """
        until, backoff = self.upstreams[0].now + PATIENCE, Backoff(WAITS)
        for number in range(TRIES):
            try:
                return await self._read_once(method, params, read)
            except RefusedAnswer as refused:
                why = refused
            if why.kind in NOT_THERE or number + 1 == TRIES or self.upstreams[0].now > until:
                break
            await asyncio.sleep(backoff.after())
        if why.kind in NOT_THERE:
            raise NoSuchBlock(self.shown, str(params[0]))
        raise Unreachable(self.shown, str(why))

    async def _read_once(self, method: str, params: list[object], read: Callable[[Raw], T]) -> T:
        """The first usable answer of one round. Raises `RefusedAnswer`, why the last had none."""
        why: RefusedAnswer | None = None
        for upstream in sorted(self.upstreams, key=lambda each: each.wait(self.purpose)):
            try:
                return await self._ask(upstream, method, params, read)
            except RefusedAnswer as refused:
                why = refused
        assert why is not None, "there is an upstream"
        raise why

    async def _ask(
        self,
        upstream: Upstream,
        method: str,
        params: list[object],
        read: Callable[[Raw], T],
        seconds: float = SECONDS,
    ) -> T:
        """The response of one upstream. Raises `RefusedAnswer`."""
        urgency = Urgency(self.purpose)
        result = (await upstream.ask([(method, params)], urgency, upstream.now + seconds))[1]
        try:
            if not isinstance(result, Raw):
                raise result
            return read(result)
        except RefusedAnswer as refused:
            upstream.refuse(refused)
            raise


def _block(
    result: Raw, hash: bytes | None, number: int | None, uncles: Sequence[Header] = ()
) -> Block:
    block = _decoded(result, lambda answer: rebuild_block(answer, uncles))
    _check_claim(result, block.header)
    return _checked(block, hash, number)


def _decoded_block(result: Raw, hash: bytes | None, number: int | None) -> Block:
    """A block that came as the JSON of its RLP."""
    if is_null(result):
        raise refuse(RefusalKind.NULL, "there is no such block")
    try:
        data = parse_data(msgspec.json.decode(result))
        block, end = decode_block(data)
    except (msgspec.MsgspecError, ValueError, CallerError) as why:
        raise refuse(RefusalKind.WRONG_SHAPE, f"{_RAW}: {why}") from why
    if end != len(data):
        raise refuse(RefusalKind.WRONG_SHAPE, f"{_RAW}: bytes after the block")
    return _checked(block, hash, number)


def _checked(block: Block, hash: bytes | None, number: int | None) -> Block:
    if hash is not None and block.hash != hash:
        raise refuse(RefusalKind.WRONG_BLOCK, f"{format_data(block.hash)} for {format_data(hash)}")
    if number is not None and block.header.number != number:
        raise refuse(RefusalKind.WRONG_BLOCK, f"block {block.header.number} for {number}")
    if transactions_root(block.transactions) != block.header.transactions_root:
        raise refuse(RefusalKind.WRONG_BLOCK, "its transactions are not those of its header")
    return block


def _no_withdrawals(header: Header) -> tuple[Withdrawal, ...] | None:
    """Those of a block that came as flashblocks: it has none, once forks have them."""
    return None if header.withdrawals_root is None else ()


def _uncle(result: Raw) -> Header:
    """An uncle, which has the right hash if it is named by its block."""
    return _decoded(result, rebuild_header)


def _header(result: Raw, name: str) -> Header:
    header = _decoded(result, rebuild_header)
    _check_claim(result, header)
    by_number = name.startswith("0x") and len(name) < 66
    if by_number and header.number != int(name, 16):
        raise refuse(RefusalKind.WRONG_BLOCK, f"block {header.number} for {int(name, 16)}")
    if len(name) == 66 and format_data(header.hash) != name.lower():
        raise refuse(RefusalKind.WRONG_BLOCK, f"{format_data(header.hash)} for {name}")
    return header


def _block_hash(result: Raw) -> bytes:
    """The hash of the block of a transaction."""
    try:
        found = msgspec.json.decode(result, type=_WithBlockHash | None)
        if found is None or found.block_hash is None:
            raise refuse(RefusalKind.NULL, "there is no such transaction in a block")
        return parse_hash(found.block_hash)
    except (msgspec.MsgspecError, ValueError) as why:
        raise refuse(RefusalKind.WRONG_SHAPE, f"a transaction: {why}") from why


def _nodes(result: Raw) -> list[bytes]:
    try:
        return list(map(parse_data, msgspec.json.decode(result, type=_Witness).state))
    except (msgspec.MsgspecError, ValueError) as why:
        raise refuse(RefusalKind.WRONG_SHAPE, f"a witness: {why}") from why


def _decoded(result: Raw, rebuild: Callable[[object], T]) -> T:
    if is_null(result):
        raise refuse(RefusalKind.NULL, "there is no such block")
    try:
        return rebuild(msgspec.json.decode(result))
    except UnclesMissing:
        raise
    except (msgspec.MsgspecError, ValueError, CallerError, RecursionError) as why:
        raise refuse(RefusalKind.WRONG_SHAPE, f"a block: {why}") from why


def _check_claim(result: Raw, header: Header) -> None:
    """Refuse a header that has not the hash that it comes with."""
    claimed = msgspec.json.decode(result, type=dict[str, object]).get("hash")
    if claimed != format_data(header.hash):
        text = f"a header that hashes to {format_data(header.hash)} and claims {claimed}"
        raise refuse(RefusalKind.WRONG_BLOCK, text)
