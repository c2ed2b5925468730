"""Rows of the table of methods: signature, function, and other names on the wire.

A signature is `name(parameters) -> shape`, each parameter `name: Shape`; after a name, `?` means
that it may be omitted or null, and `!` that the dialect decides: `preconf` requires it. After a
shape, `?` means that it may be null.
"""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from msgspec import Raw

from foreblock.ledger.reading.view import LedgerView
from foreblock.scheduling.reply import Text

# From a view and the raw parameters to the JSON text of the result, at once or as an awaitable;
# raises exceptions with a row in `rpc.error_codes`.
MethodFunction = Callable[[LedgerView, Raw], bytes | Awaitable[Text]]


class Method(NamedTuple):
    """One method; the first line of the docstring of `run` is its summary."""

    signature: str
    run: MethodFunction
    also: tuple[str, ...] = ()  # other names on the wire
    reads: bool = True  # the chain; others only change it
    # A body runs again when missing state was fetched (`rpc.fetching_dispatcher`). A method that
    # changes something besides its response runs once for each request.
    once: bool = False

    @property
    def name(self) -> str:
        """The name on the wire."""
        return self.signature.partition("(")[0]

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, *self.also)


def command(signature: str, run: MethodFunction, also: tuple[str, ...] = ()) -> Method:
    """A method that changes the chain and does not read its view."""
    return Method(signature, run, also, reads=False, once=True)


class MethodTable(NamedTuple):
    """The methods of one view, by name."""

    functions: dict[str, MethodFunction]
    writing: frozenset[str]  # those that change the chain and do not read it
    once: frozenset[str]  # those that run once for each request


class Family(NamedTuple):
    """Methods that belong together, with a title for documents."""

    title: str
    methods: tuple[Method, ...]
