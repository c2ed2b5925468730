"""The fast path: from the bytes of a request to those of its response."""

from collections.abc import Callable, Sequence
from typing import Self, final

from foreblock._engine.evm import Env
from foreblock._engine.meter import Meter
from foreblock._engine.simulate import BlockTemplate
from foreblock._engine.store import Heads, Store, View
from foreblock._engine.stored import StoredBlock

@final
class FastPath:
    """Complete HTTP responses to the most frequent requests.

    These are, at `latest` and `pending`: eth_getBalance, eth_getBlockByNumber with cached JSON,
    eth_call of a kind known to be short and eth_simulateV1 of few plain calls;
    eth_getTransactionReceipt in cached blocks; short searches of eth_getLogs in sealed blocks; and
    batches of all but blocks and simulations. It responds only to requests with a cached head, and
    only from the last snapshot that was set.
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
        simulated_calls: int = 0,
        simulated_output: int = 0,
        simulation_us: int = 0,
        meter: Meter | None = None,
        rows: Sequence[int] = (),
    ) -> Self:
        """Set the limits of batches (requests, response bytes, time), calls and simulations.

        A call has `call_gas` gas. It is not answered if it takes longer than `call_us`, or would
        start an uninterruptible step that takes longer than `step_us`. A simulation has as much
        gas, `batch_bytes` for its payload and its response each, at most `simulated_calls` blocks
        and calls, which return at most `simulated_output` bytes, and takes `simulation_us`.

        Answered requests are counted by `meter`: balances, blocks, calls, receipts, logs and
        simulations in these rows.
        """

    def cache_head(
        self,
        head: bytes,
        length: int,
        status: bytes,
        headers: bytes,
        /,
        *,
        is_at_root: bool = False,
    ) -> None:
        """Add an accepted request head, without the empty line that ends it.

        The body that follows has `length` bytes. A response consists of `status`, the date, the
        header lines of the snapshot, `headers`, its length and its body. Simulations are answered
        only at the root, in the `preconf` dialect.
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
        `latest_read_at` is the partial block whose state is read for `latest`. Without `calls`,
        neither eth_call nor eth_simulateV1 is answered.
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

    def cache_receipts(self, view: View, block: StoredBlock) -> None:
        """Answer requests for receipts of a block while it is sealed as in this view.

        Ignored if it is not sealed there.
        """

    def allow_logs(
        self,
        heads: Heads,
        pending: int | None,
        runs: Sequence[tuple[tuple[bytes, int], tuple[int, int]]],
        first: int,
        end: int,
        *,
        logs: int,
        distance: int | None = None,
    ) -> None:
        """Allow searches for logs. Ignored if the current snapshot is a different one.

        `runs` are the sections of all indexed blocks, as in `LogSearch`. `first` is the first block
        with logs, `end` the first that is not indexed. More than one block have at most `logs` logs
        and this `distance` between the first and the last.
        """

    def allow_call(
        self, heads: Heads, pending: int | None, tag: str, env: Env, to: bytes, data: bytes
    ) -> None:
        """Set the environment of calls at a tag, and that a call with this data was short.

        Calls of a contract are of the same kind if their data start with the same four bytes. A
        kind is no longer considered short after one call that takes too long.
        """

    def allow_simulations(
        self, heads: Heads, pending: int | None, tag: str, template: BlockTemplate
    ) -> None:
        """Set the first block of simulations on the block of a tag, for any number of blocks.

        Ignored if the current snapshot is a different one.
        """

    def answer(self, data: bytes, date: bytes, /) -> bytes | None:
        """Answer one complete request. None if it cannot be answered here."""
