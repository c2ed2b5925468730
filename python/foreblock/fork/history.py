"""What clients read below the fork block: blocks and receipts verified, the rest as upstreams say.

As on a followed chain, with two differences: logs of a range that includes the fork come from both
sides of it, and nothing comes from upstreams that is of a block after it.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

import msgspec
from msgspec import Raw

from foreblock.errors import CallerError, IncompleteState, NotHere
from foreblock.follow.passthrough import MARK, Passthrough, UpstreamAnswer
from foreblock.ledger.reading.view import LedgerView
from foreblock.methods.params import BlockName, read_block
from foreblock.methods.table import MethodFunction
from foreblock.primitives import format_quantity
from foreblock.rpc.fetching_dispatcher import mark_batch
from foreblock.scheduling.reply import Text, whole
from foreblock.settings import FollowSettings, ForkSettings
from foreblock.types import Header
from foreblock.upstream.old_blocks import AskUpstream

LOGS: Final = "eth_getLogs"
PROOF: Final = "eth_getProof"
PROOF_BLOCK: Final = 2  # the position of its block parameter
FIRST: Final = "earliest"
# On a fork nearly every call misses much, so it is hinted at once.
HINTED_ROUND: Final = 1

_decode: Final = msgspec.json.Decoder(list[dict[str, Any]]).decode
_params: Final = msgspec.json.Decoder(list[Raw]).decode
_name: Final[Callable[[Raw], BlockName]] = msgspec.json.Decoder(BlockName).decode


def block_of(header: Header) -> bytes:
    """The block of a fork as a parameter."""
    return b'"0x%x"' % header.number


def reading_settings(fork: ForkSettings) -> FollowSettings:
    """How workers read what is not in the store of a fork."""
    return FollowSettings(fetch_timeout=fork.timeout, beyond="pass")


class ForkedHistory(Passthrough):
    """The methods of one network that reach below its fork."""

    def __init__(self, ask: AskUpstream) -> None:
        super().__init__(ask)
        self._ask_upstream: Final = ask

    def add(self, methods: dict[str, MethodFunction]) -> None:
        """Make methods of this table pass requests about blocks below the fork on."""
        here = methods.get(LOGS)
        super().add(methods)
        if PROOF in methods:
            methods[PROOF] = _below_only(methods[PROOF])
        if here is not None:
            methods[LOGS] = self._logs_beside(here)

    def _logs_beside(self, here: MethodFunction) -> MethodFunction:
        def logs(view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
            return self._logs(here, view, raw)

        logs.__doc__ = here.__doc__
        return logs

    def _logs(self, here: MethodFunction, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """The logs of a range, or of a block: from upstreams up to the fork block."""
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
        named = _params(raw)[PROOF_BLOCK : PROOF_BLOCK + 1] or [Raw(b'"latest"')]
        try:
            block = view.resolve(read_block(_name(named[0]), PROOF_BLOCK))
        except (msgspec.MsgspecError, CallerError, NotHere):
            return proof(view, raw)
        if block.header.number > view.base.number:
            raise IncompleteState("a proof of a block above the fork")
        return proof(view, raw)

    below.__doc__ = proof.__doc__
    return below


def split_range(view: LedgerView, raw: Raw) -> tuple[bytes, bytes | None] | None:
    """The parameters up to the fork block, and above it; None if nothing is below.

    The body of the fork block is not here.
    """
    base = view.base.number
    try:
        (wanted, *_) = _decode(raw)
        if wanted.get("blockHash") is not None:
            hash_of_base = f"0x{view.base.hash.hex()}"
            return (bytes(raw), None) if wanted["blockHash"] == hash_of_base else None
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
