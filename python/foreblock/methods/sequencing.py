"""The sequencer of a network as methods use it: submissions, pool, commands and keys."""

from collections.abc import Awaitable
from typing import Any, Literal, NamedTuple, Protocol

from foreblock.bus.commands import AnyCommand
from foreblock.methods.keys import NO_KEYS, Keys
from foreblock.methods.pool.sending import NoSequencer, Submissions
from foreblock.methods.waiting_pool import EmptyPool, WaitingPool
from foreblock.types import Transaction


class Commands(Protocol):
    """The connection to the sequencer of one development chain."""

    async def submit_next(self, transaction: Transaction) -> None:
        """Return when the pool has a transaction; refused where it has one of the same nonce.

        Raises as `Submissions.submit` does.
        """

    def try_submit_next(self, transaction: Transaction) -> bool:
        """Submit it without waiting; if that is false, use `submit_next`. Raises the same."""

    def execute(self, command: AnyCommand) -> Awaitable[Any]:
        """Return when the command is executed and all workers serve the change.

        Raises `RefusedCommand` with the reason, `SequencerUnavailable`, `CommandUnknown`.
        """

    def try_execute(self, command: AnyCommand) -> Any:  # noqa: ANN401, its own
        """Execute a command without waiting, or return `WOULD_BLOCK`; raises `RefusedCommand`."""


class Sequencing(NamedTuple):
    """The sequencer of one network; by default there is none."""

    submissions: Submissions = NoSequencer()
    pool: WaitingPool = EmptyPool()
    commands: Commands | None = None  # of a development chain only
    keys: Keys = NO_KEYS  # of its accounts
    order: Literal["fees", "fifo"] = "fees"  # of its transactions
    hidden: str = ""  # why methods of development chains are refused, if they are
