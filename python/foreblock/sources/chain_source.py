"""The interface of a block source that accepts transactions and commands.

`dev_network` has the one of dev chains; `network_writer` says which thread calls it.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from foreblock.bus.commands import AddBalance, AnyCommand, SetAccount
from foreblock.bus.messages import BusRequest
from foreblock.errors import RefusedCommand
from foreblock.sequencer.pool_snapshot import PoolReader
from foreblock.types import Transaction


class WorkerAnswers(Protocol):
    """Fetches the state that workers miss."""

    def answer(self, request: BusRequest) -> None:
        """Reply to a worker some time later."""


class ChainSource(Protocol):
    """A writer of a chain. One call at a time, but for `next_due_ns` and `last_commit`."""

    @property
    def fork(self) -> "WorkerAnswers | None":
        """The source of missing state, if the chain is a fork of another one."""

    @property
    def next_due_ns(self) -> int:
        """When `tick` has something to do, in monotonic time."""

    @property
    def last_commit(self) -> int:
        """The number of the last commit."""

    def tick(self) -> None:
        """Do what is due."""

    def submit(self, raw: bytes, sender: bytes) -> None:
        """Take a transaction, or raise `ForeblockError` with the reason why not."""

    def submit_next(self, raw: bytes, sender: bytes) -> None:
        """Submit a transaction that may not replace another one with its nonce."""

    def take(self, transaction: Transaction, *, may_replace: bool) -> None:
        """Submit a decoded transaction."""

    def is_short_transaction(self, transaction: Transaction) -> bool:
        """Return True if it takes at most a millisecond, with the work that must follow."""

    def run_immediate(self) -> None:
        """Do what must happen before the senders of transactions get their responses."""

    def is_short(self, command: AnyCommand, *, lazily: bool = False) -> bool:
        """Return True if a command takes at most a millisecond and does not wait for a disk.

        Its commit does not count if that can be made later, `lazily`.
        """

    def are_short(self, raws: Sequence[bytes], senders: Sequence[bytes]) -> bool:
        """Return True if transactions and the work that follows take at most a millisecond."""

    def execute(self, command: AnyCommand, *, lazily: bool = False) -> Any:  # noqa: ANN401, its own
        """Carry out a command; raises `RefusedCommand`.

        It is committed when this returns; `lazily`, `flush` may be left to commit it.
        """

    @property
    def has_uncommitted(self) -> bool:
        """Return True if a command has changed something that is not committed."""

    def flush(self) -> None:
        """Commit what commands have changed."""

    def execute_together(
        self, commands: Sequence[SetAccount | AddBalance]
    ) -> list[RefusedCommand | None]:
        """Carry out commands that set accounts, in one commit; return the refusals."""

    def next_nonce(self, sender: bytes) -> int:
        """The nonce after a sender's transactions that wait."""

    def next_nonces(self) -> dict[bytes, int]:
        """The next nonces of a bounded number of senders whose transactions wait."""

    @property
    def waiting(self) -> int:
        """How many transactions wait."""

    @property
    def window(self) -> PoolReader:
        """A reader of the transactions that wait."""

    def close(self) -> None:
        """Close the store."""
