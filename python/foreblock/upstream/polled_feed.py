"""Poll an endpoint for its pending block, and read it as a feed: see `feed.polled`.

It has the interface of `feed.client.FeedClient`, so that a chain can be followed by either. It is
used as any upstream is: within its budget, not while it rests, and without showing its secrets.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
from msgspec import Raw

from foreblock.backoff import Backoff, Waits
from foreblock.clock import Clock
from foreblock.errors import CallerError, InvalidArgument, MalformedFlashblock, RefusedAnswer
from foreblock.feed.inbox import Inbox
from foreblock.feed.messages import encode
from foreblock.feed.polled import PolledPending
from foreblock.primitives import harmless, parse_hash
from foreblock.types import Block
from foreblock.upstream.block_json import rebuild_block
from foreblock.upstream.budget import Purpose, Urgency, price
from foreblock.upstream.endpoint import Upstream
from foreblock.upstream.json_rpc import RefusalKind, is_null, refuse

PREFIX: Final = "poll+"
INTERVAL: Final = 0.1  # seconds between two polls: two for each flashblock of 200 ms
LOOKS_SHARE: Final = 1 / 3  # of a budget that pays for state too
SECONDS: Final = 2.0  # for one response
_WAITS: Final = Waits(0.25, 5.0)
_CALL: Final = ("eth_getBlockByNumber", ["pending", True])
# What a pending block may lack.
_ZEROS: Final = {"nonce": "0x" + "00" * 8, "hash": "0x" + "00" * 32, "stateRoot": "0x" + "00" * 32}


class PolledFeed:
    """Polls one endpoint into an inbox."""

    def __init__(
        self,
        url: str,
        inbox: Inbox,
        clock: Clock,
        *,
        arrived: Callable[[], None],
        interval: float = INTERVAL,
        upstream: Upstream | None = None,
    ) -> None:
        """`arrived` is called for each message; an `upstream` of others stays open at the end.

        It pays for the polls, which take no more than their share of its budget. Raises
        `InvalidArgument` for a bad URL.
        """
        self._upstream: Final = upstream or Upstream(endpoint_of(url), clock)
        self._is_own: Final = upstream is None
        self.url: Final = PREFIX + self._upstream.shown
        self.inbox: Final = inbox
        self._clock: Final = clock
        self._arrived: Final = arrived
        units = self._upstream.budget.units * (1 if self._is_own else LOOKS_SHARE)
        self.interval: Final = max(interval, price(_CALL[0]) / units)
        self._pending: Final = PolledPending()
        self._backoff: Final = Backoff(_WAITS)

        self._waits_until = 0.0  # monotonic seconds

        # Shown by /readyz?verbose.
        self.connected = False
        self.connections = 0
        self.messages = 0
        self.last_message_ns: int | None = None  # monotonic
        self.last_error = ""

    def pause(self, seconds: float) -> None:
        """Ask nothing for this time, at most the longest wait after a failure."""
        self._waits_until = self._upstream.now + min(seconds, _WAITS.longest)

    async def run(self) -> None:
        """Poll until cancelled."""
        try:
            while True:
                await asyncio.sleep(max(0.0, self._waits_until - self._upstream.now))
                try:
                    await self.poll()
                except (RefusedAnswer, MalformedFlashblock) as failure:
                    self._failed(failure)
                    await asyncio.sleep(self._backoff.after())
                else:
                    self._backoff.succeeded()
                    await asyncio.sleep(self.interval)
        finally:
            if self._is_own:
                self._upstream.close()

    async def poll(self) -> None:
        """Read the pending block once. Raises `RefusedAnswer` or `MalformedFlashblock`."""
        until = self._upstream.now + SECONDS
        said = (await self._upstream.ask([_CALL], Urgency(Purpose.FLASHBLOCK), until))[1]
        if not isinstance(said, Raw):
            raise said
        block, block_hash = read_pending(said)
        if not self.connected:
            self.connected = True
            self.connections += 1
        flashblock = self._pending.see(block.header, block.transactions, block_hash)
        if flashblock is not None:
            await self.inbox.put(encode(flashblock))
            self.messages += 1
            self.last_message_ns = self._clock.monotonic_ns()
            self._arrived()

    def _failed(self, failure: Exception) -> None:
        self.connected = False
        self.last_error = harmless(str(failure))


def endpoint_of(url: str) -> str:
    """The endpoint of a URL of the form poll+https://HOST. Raises `InvalidArgument`."""
    if not url.startswith((f"{PREFIX}http://", f"{PREFIX}https://")):
        raise InvalidArgument("a polled feed has a URL of the form poll+https://HOST")
    return url.removeprefix(PREFIX)


def upstream_at(url: str, upstreams: Sequence[Upstream]) -> Upstream | None:
    """The upstream that a polled feed's URL names too: one endpoint has one budget."""
    return next((each for each in upstreams if each.is_at(endpoint_of(url))), None)


def read_pending(result: Raw) -> tuple[Block, bytes]:
    """The pending block, and the hash that the endpoint provides for it, which its feed gave it.

    Without one the hash is zero, and a state root or withdrawals root that is null is too.
    Raises `RefusedAnswer`.
    """
    if is_null(result):
        raise refuse(RefusalKind.NULL, "there is no pending block")
    try:
        answer = msgspec.json.decode(result, type=dict[str, Any])
        zeros = {key: zero for key, zero in _ZEROS.items() if answer.get(key) is None}
        answer |= zeros
        return rebuild_block(answer), parse_hash(answer["hash"])
    except (msgspec.MsgspecError, ValueError, CallerError, RecursionError) as why:
        raise refuse(RefusalKind.WRONG_SHAPE, f"the pending block: {why}") from why
