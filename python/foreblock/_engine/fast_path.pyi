"""The fast path: from the bytes of a request to those of its response."""

from collections.abc import Callable
from typing import Self, final

from foreblock._engine.evm import Env
from foreblock._engine.meter import Meter
from foreblock._engine.store import Heads, Store

@final
class FastPath:
    """Complete HTTP responses to the most frequent requests.

    These are, at `latest` and `pending`: eth_getBalance, eth_getBlockByNumber with cached JSON,
    eth_call of a kind known to be short, and batches of balances and calls. It responds only to
    requests with a cached head, and only from the last snapshot that was set.
    """

    def __new__(
        cls,
        store: Store,
        *,
        batch_items: int,
        batch_bytes: int,
        batch_us: int,
        call_gas: int,
        call_us: int,
        step_us: int,
        meter: Meter | None = None,
        rows: tuple[int, int, int] = (0, 0, 0),
    ) -> Self:
        """Set the limits of batches (requests, response bytes, time) and of calls.

        A call has `call_gas` gas. It is not answered if it takes longer than `call_us`, or would
        start an uninterruptible step that takes longer than `step_us`.

        Answered requests are counted by `meter`: balances, blocks and calls in these rows.
        """

    def cache_head(self, head: bytes, length: int, status: bytes, headers: bytes, /) -> None:
        """Add an accepted request head, without the empty line that ends it.

        The body that follows has `length` bytes. A response consists of `status`, the date, the
        header lines of the snapshot, `headers`, its length and its body.
        """

    def clear_heads(self) -> None:
        """Remove all heads."""

    def tell(self, call: Callable[[str], None] | None, /) -> None:
        """Set a callback that gets the method of every answered request."""

    def set_snapshot(
        self,
        heads: Heads,
        headers: bytes,
        latest: int,
        pending: int | None = None,
        remaining_ns: int | None = None,
        latest_read_at: int | None = None,
        calls: bool = True,
    ) -> None:
        """Set the current snapshot: its heads, its header lines and its blocks.

        `latest` is a block number, `pending` the number of a partial block; without one, pending is
        latest. After the remaining time nothing is answered until the next snapshot. If given,
        `latest_read_at` is the partial block whose state is read for `latest`. Without `calls`, no
        eth_call is answered.
        """

    def cache_block(
        self,
        heads: Heads,
        pending: int | None,
        tag: str,
        full: bool,
        text: bytes,
    ) -> None:
        """Cache the JSON of a block. Ignored if the current snapshot is a different one."""

    def allow_call(
        self, heads: Heads, pending: int | None, tag: str, env: Env, to: bytes, data: bytes
    ) -> None:
        """Set the environment of calls at a tag, and that a call with this data was short.

        Calls of a contract are of the same kind if their data start with the same four bytes. A
        kind is no longer considered short after one call that takes too long.
        """

    def answer(self, data: bytes, date: bytes, /) -> bytes | None:
        """Answer one complete request. None if it cannot be answered here."""
