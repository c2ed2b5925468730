"""Reads below the fork block: blocks and receipts are verified, the rest is trusted.

As on a followed chain, with two differences: logs of a range that includes the fork come from both
sides of it, and nothing comes from upstreams that is of a block above it: the number of a block, or
of the block of a transaction, that is named by its hash is requested first.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from foreblock.errors import CallerError, HeaderOnly, IncompleteState, NotHere
from foreblock.follow.passthrough import (
    BLOCK_AT,
    FIRST,
    MARK,
    OF_TRANSACTION,
    Passthrough,
    UpstreamAnswer,
    is_old,
)
from foreblock.ledger.reading.blocks import ByHash
from foreblock.ledger.reading.view import LedgerView
from foreblock.methods.params import BlockName, read_block
from foreblock.methods.table import MethodFunction
from foreblock.primitives import format_data, format_quantity, parse_quantity
from foreblock.rpc.fetching_dispatcher import mark_batch
from foreblock.scheduling.reply import Text, whole
from foreblock.scheduling.steps import discard
from foreblock.settings import FollowSettings, ForkSettings
from foreblock.types import Header
from foreblock.upstream.old_blocks import AskUpstream

LOGS: Final = "eth_getLogs"
PROOF: Final = "eth_getProof"
# On a fork nearly every call misses much, so it is hinted at once.
HINTED_ROUND: Final = 1

_decode: Final = msgspec.json.Decoder(list[dict[str, Any]]).decode
_params: Final = msgspec.json.Decoder(list[Raw]).decode
_name: Final[Callable[[Raw], BlockName]] = msgspec.json.Decoder(BlockName).decode


class _Placed(Struct, rename="camel"):
    """A block, or a transaction in a block."""

    number: str | None = None
    block_number: str | None = None


_placed: Final = msgspec.json.Decoder(_Placed | None).decode


def block_of(header: Header) -> bytes:
    """The block of a fork as a parameter."""
    return b'"0x%x"' % header.number


def reading_settings(fork: ForkSettings) -> FollowSettings:
    """The settings with which workers read what is not in the store of a fork."""
    return FollowSettings(fetch_timeout=fork.timeout, beyond="pass")


class ForkedHistory(Passthrough):
    """The methods of one network that reach below its fork."""

    def __init__(self, ask: AskUpstream) -> None:
        super().__init__(ask)
        self._ask_upstream: Final = ask

    def add(self, methods: dict[str, MethodFunction]) -> None:
        """Make methods of this table pass requests about blocks below the fork on."""
        here = dict(methods)
        super().add(methods)
        for name in {*BLOCK_AT, *OF_TRANSACTION} & methods.keys():
            methods[name] = self._not_above(name, here[name], methods[name])
        if PROOF in methods:
            methods[PROOF] = _below_only(methods[PROOF])
        if LOGS in methods:
            methods[LOGS] = self._logs_beside(here[LOGS])

    def _not_above(self, name: str, here: MethodFunction, passed: MethodFunction) -> MethodFunction:
        """Pass on no request about a block above the fork: it is unknown here."""

        def run(view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
            try:
                found = passed(view, raw)
            except HeaderOnly:
                at_base = partial(self._ask_upstream, name, _of_base(name, view, raw))
                return UpstreamAnswer(at_base, view.headers)
            named = _named_by_hash(name, raw) if isinstance(found, UpstreamAnswer) else None
            return found if named is None else self._if_below(name, here, view, raw, named)

        run.__doc__ = passed.__doc__
        return run

    def _if_below(
        self, name: str, here: MethodFunction, view: LedgerView, raw: Raw, named: tuple[str, bytes]
    ) -> UpstreamAnswer:
        """Pass a request on if the block that it names is not above the fork."""
        base = view.base.number
        try:
            unknown: Any = here(view, raw)
        except Exception as why:  # noqa: BLE001, it is raised below
            unknown = why

        async def find() -> Text:
            placed = _placed(await self._ask_upstream(*named)) or _Placed()
            number = placed.number or placed.block_number
            if number is not None and parse_quantity(number) <= base:
                discard(unknown)
                return await self._ask_upstream(name, bytes(raw))
            if isinstance(unknown, Exception):
                raise unknown
            return unknown if isinstance(unknown, bytes | list) else await unknown

        return UpstreamAnswer(find, view.headers)

    def _logs_beside(self, here: MethodFunction) -> MethodFunction:
        def logs(view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
            return self._logs(here, view, raw)

        logs.__doc__ = here.__doc__
        return logs

    def _logs(self, here: MethodFunction, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """The logs of a range, or of a block: from upstreams up to the fork block."""
        named = _block_of_logs(view, raw)
        if named is not None:
            return self._if_below(LOGS, here, view, raw, _request_for(named))
        parts = split_range(view, raw)
        if parts is None:
            return here(view, raw)
        below, above = parts
        if above is None:
            return UpstreamAnswer(partial(self._ask_upstream, LOGS, below), view.headers)
        return self._both(below, here(view, Raw(above)))

    async def _both(self, below: bytes, above: Text | Awaitable[Text]) -> bytes:
        found = whole(await above if isinstance(above, Awaitable) else above)
        before = await self._ask_upstream(LOGS, below)
        mark_batch(MARK)
        return b"[%b]" % b",".join(
            part for each in (before, found) if (part := each.strip()[1:-1].strip())
        )


def _below_only(proof: MethodFunction) -> MethodFunction:
    """Refuse proofs of local blocks: only a part of their trie is known."""

    def below(view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        named = _params(raw)[BLOCK_AT[PROOF] : BLOCK_AT[PROOF] + 1] or [Raw(b'"latest"')]
        try:
            block = view.resolve(read_block(_name(named[0]), BLOCK_AT[PROOF]))
        except (msgspec.MsgspecError, CallerError, NotHere):
            return proof(view, raw)
        if block.header.number > view.base.number:
            raise IncompleteState("a proof of a block above the fork")
        return proof(view, raw)

    below.__doc__ = proof.__doc__
    return below


def _of_base(name: str, view: LedgerView, raw: Raw) -> bytes:
    """Parameters that name the fork block, by its number or hash in place of a tag."""
    params = _params(raw)
    position = BLOCK_AT[name]
    if not isinstance(read_block(_name(params[position]), position), ByHash):
        params[position] = Raw(block_of(view.resolve(view.base.number).header))
    return msgspec.json.encode(params)


def _named_by_hash(name: str, raw: Raw) -> tuple[str, bytes] | None:
    """The request for the block, or the transaction, that parameters name by its hash."""
    params = _params(raw)
    if name in OF_TRANSACTION:
        return "eth_getTransactionByHash", b"[%b]" % bytes(params[0])
    position = BLOCK_AT[name]
    block = read_block(_name(params[position]), position)
    return _request_for(block.hash) if isinstance(block, ByHash) else None


def _request_for(block_hash: bytes) -> tuple[str, bytes]:
    return "eth_getBlockByHash", b'["%b",false]' % format_data(block_hash).encode()


def _block_of_logs(view: LedgerView, raw: Raw) -> bytes | None:
    """The hash of the block whose logs are requested, if its body is not here."""
    try:
        (wanted, *_) = _decode(raw)
        if wanted.get("blockHash") is None:
            return None
        block = read_block(msgspec.convert(wanted["blockHash"], str), 0)
        if not isinstance(block, ByHash):
            return None
        return block.hash if block.hash == view.base.hash or is_old(view, block) else None
    except (msgspec.MsgspecError, CallerError, ValueError):
        return None  # the error is raised here


def split_range(view: LedgerView, raw: Raw) -> tuple[bytes, bytes | None] | None:
    """Split parameters into those up to the fork block and those above it; None if all are above.

    The body of the fork block is not here.
    """
    base = view.base.number
    try:
        (wanted, *_) = _decode(raw)
        if wanted.get("blockHash") is not None:
            return None
        first, last = (wanted.get(name) for name in ("fromBlock", "toBlock"))
        begins = view.latest.number if first is None else _number(view, first)
        ends = view.latest.number + 1 if last is None else _number(view, last)
    except (msgspec.MsgspecError, CallerError, ValueError):
        return None  # the error is raised here
    if begins > base or ends < begins:
        return None
    to_base = {**wanted, "fromBlock": format_quantity(begins)}
    to_base["toBlock"] = format_quantity(min(ends, base))
    below = msgspec.json.encode([to_base])
    if ends <= base:
        return below, None
    above = {**wanted, "fromBlock": format_quantity(base + 1)}
    if view.latest.number == base and last != "pending":
        return below, None
    return below, msgspec.json.encode([above])


def _number(view: LedgerView, name: Any) -> int:  # noqa: ANN401, of JSON
    block = read_block(msgspec.convert(name, str), 0)
    if isinstance(block, int):
        return block
    if block == FIRST:
        return 0
    return view.resolve(block).number
