"""The fast path: from the bytes of a request to those of its answer."""

from collections.abc import Callable
from os import PathLike
from typing import ClassVar, Self, final

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

@final
class CommandQueue:
    """Commands of a dev chain that are put off, and their journal.

    While it is open, a `CommandPath` takes commands of the usual kinds: one slot or one balance
    that is set, a snapshot, the way back to a snapshot that waits.
    """

    def __new__(cls, path: str | PathLike[str], /) -> Self:
        """A queue with this journal, which is made where there is none; raises OSError."""

    def add(self, batch: int, command: bytes, /) -> None:
        """Write a command to the journal, as it is there; raises OSError."""

    def begin(self) -> None:
        """Begin the journal anew, and close the queue."""

    def open(
        self,
        batch: int,
        *,
        commands: int,
        accounts: bool,
        snapshots: int,
        next_snapshot: int,
        waiting: list[int],
    ) -> None:
        """Take so many commands of this batch from now on, of which so many are snapshots.

        They set accounts only where that is said. `waiting` are the ids of snapshots to which
        there is a way back.
        """

    def close(self) -> None:
        """Take nothing any more."""

    def set_headers(self, headers: bytes, /) -> None:
        """The header lines of answers."""

    @property
    def count(self) -> int:
        """How many commands it has, since the last were taken."""

    def take(self) -> tuple[list[bytes], list[tuple[str, int]]]:
        """The commands as they are in the journal, and what was called how often in a row."""

@final
class CommandPath:
    """A fast path that takes commands, too, while their queue is open."""

    NAMES: ClassVar[list[str]]
    """The methods whose commands it takes."""

    def __new__(cls, over: FastPath, queue: CommandQueue, rows: dict[str, int], /) -> Self:
        """What it takes is counted in these rows, those of all names, by the other's meter."""

    def cache_head(self, head: bytes, length: int, status: bytes, headers: bytes, /) -> None:
        """As that of the path below it, which gets it."""

    def clear_heads(self) -> None:
        """The same."""

    def answer(self, data: bytes, date: bytes, /) -> bytes | None:
        """The whole answer to one whole request; none for any other, and never an error."""
