"""Commands that are put off: their results are known before they are carried out. No I/O.

Only where one process serves a chain and writes it. A command that was put off is carried out
before anything else looks at the chain, so nobody can tell.
"""

from collections.abc import Callable
from typing import Any, Final, Protocol

from foreblock.bus.commands import AnyCommand


class NotPutOff:
    """The result of a command that was not put off."""


NOT_PUT_OFF: Final = NotPutOff()


class Deferral(Protocol):
    """Puts off commands of one chain."""

    # Whether the request that is answered now may be put off: all before it are done.
    may_put_off: bool

    def put_off(self, command: AnyCommand) -> Any:  # noqa: ANN401, its own
        """The result of a command that is carried out later, or `NOT_PUT_OFF`."""

    def settle(self) -> None:
        """Carry out what was put off."""

    def watch(self, call: Callable[[bool], None]) -> None:
        """Say whether something waits when that changes."""
