"""What one process that serves a chain and writes it puts off, and what it does at once. No I/O.

The result of a command that is put off is known before it is carried out; that is done before
anything else looks at the chain, so nobody can tell. What is short and cannot be put off is done
while its request is answered: nobody has to be woken for it.
"""

from collections.abc import Callable
from typing import Any, Final, Protocol

from foreblock.bus.commands import AnyCommand
from foreblock.types import Transaction


class NotPutOff:
    """The result of a command that was not put off."""


NOT_PUT_OFF: Final = NotPutOff()


class NotDone:
    """The result of what is not done at once: it has to wait, or takes long."""


NOT_DONE: Final = NotDone()


class DoneHere(Protocol):
    """Changes one chain at once, on the loop."""

    def submit_now(self, transaction: Transaction, *, may_replace: bool) -> bool:
        """Whether a transaction was taken, and all has happened that comes of it.

        False where that has to wait. Raises `RejectedTransaction` with the pool's reason, and
        `OutcomeUnknown`.
        """

    def execute_now(self, command: AnyCommand) -> Any:  # noqa: ANN401, its own
        """The result of a command, or `NOT_DONE`; raises `RefusedCommand`."""


class Deferral(Protocol):
    """Puts off commands of one chain."""

    # Whether the request that is answered now may be put off: all before it are done.
    may_put_off: bool
    # Whether it may be done at once: it is no part of a batch, whose requests have their order.
    is_alone: bool

    def hear(self) -> None:
        """Hear of commands that were taken from the bytes of their requests."""

    def put_off(self, command: AnyCommand) -> Any:  # noqa: ANN401, its own
        """The result of a command that is carried out later, or `NOT_PUT_OFF`."""

    @property
    def here(self) -> DoneHere:
        """Does what is not put off."""

    def settle(self) -> None:
        """Carry out what was put off."""

    def watch(self, call: Callable[[bool], None]) -> None:
        """Say whether something waits when that changes."""
