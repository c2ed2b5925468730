"""The fast path: from the bytes of a request to those of its answer."""

from collections.abc import Callable
from typing import Self, final

from foreblock._engine.evm import Env
from foreblock._engine.meter import Meter
from foreblock._engine.store import Heads, Store

@final
class FastPath:
    """Whole HTTP answers to the requests that are asked most.

    Those are, at `latest` and `pending`, eth_getBalance, eth_getBlockByNumber of which the
    text is known, eth_call of a kind that is known to be short, and batches of the first and
    the last. It answers only under a head that it was told of, and only from the snapshot
    that it was told of last.
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
        """Answers no batch of more requests, with a longer answer, or that takes longer.

        A call has so much gas, and no answer when it takes longer than `call_us` or would
        begin a step that cannot be stopped and takes longer than `step_us`.

        What is answered is counted by `meter`: balances, blocks and calls in these rows.
        """

    def cache_head(self, head: bytes, length: int, status: bytes, headers: bytes, /) -> None:
        """A head that was accepted, without the empty line that ends it.

        So many bytes of body follow it. An answer is `status`, the date, the lines of the
        snapshot, `headers`, its length and its body.
        """

    def clear_heads(self) -> None:
        """Forget all heads."""

    def tell(self, call: Callable[[str], None] | None, /) -> None:
        """Call this from now on with the method of every request that is answered."""

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
        """The last snapshot: its heads, its header lines and its blocks.

        `latest` is a number, `pending` that of a partial block; without one, it is the
        latest. After the remaining time there is no answer until the next snapshot. The
        state of `latest` is that of the partial block `latest_read_at`, where there is one.
        Without `calls`, no eth_call is answered.
        """

    def cache_block(
        self,
        heads: Heads,
        pending: int | None,
        tag: str,
        full: bool,
        text: bytes,
    ) -> None:
        """How a block reads; in vain if the last snapshot is another one than this."""

    def allow_call(
        self, heads: Heads, pending: int | None, tag: str, env: Env, to: bytes, data: bytes
    ) -> None:
        """What calls see at a tag; and that one with this data was short.

        Calls of a contract are of one kind when their data begins with the same four bytes.
        A kind that takes too long once is none of the short ones any more.
        """

    def answer(self, data: bytes, date: bytes, /) -> bytes | None:
        """The whole answer to one whole request; none for any other, and never an error."""
