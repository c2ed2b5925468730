"""Rows of the table of methods: signature, function, and other names on the wire.

A signature is `name(parameters) -> shape`, each parameter `name: Shape`; after a name, `?` means
that it may be omitted or null, and `!` that the dialect decides: `preconf` requires it. After a
shape, `?` means that it may be null.
"""

from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from msgspec import Raw

from foreblock.ledger.reading.view import LedgerView
from foreblock.scheduling.reply import Text

# From a view and the raw parameters to the JSON text of the result, at once or as an
# awaitable; raises what `rpc.faults` has codes for.
MethodFunction = Callable[[LedgerView, Raw], bytes | Awaitable[Text]]


class Method(NamedTuple):
    """One method; the first line of the docstring of `run` is its summary."""

    signature: str
    run: MethodFunction
    also: tuple[str, ...] = ()  # other names on the wire
    reads: bool = True  # the chain; others only change it

    @property
    def name(self) -> str:
        """The name on the wire."""
        return self.signature.partition("(")[0]

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, *self.also)


def command(signature: str, run: MethodFunction, also: tuple[str, ...] = ()) -> Method:
    """A method that changes the chain and does not read its view."""
    return Method(signature, run, also, reads=False)


class MethodTable(NamedTuple):
    """The methods of one view, by name."""

    functions: dict[str, MethodFunction]
    writing: frozenset[str]  # those that change the chain and do not read it


class Family(NamedTuple):
    """Methods that belong together, with a title for documents."""

    title: str
    methods: tuple[Method, ...]


# Methods that change something besides their response; they run once for each request. If state is
# fetched, the others may run any number of times: a body runs again until nothing is missing
# (`rpc.fetching_dispatcher`).
RUN_ONCE: Final = frozenset(
    {
        "eth_getFilterChanges",
        "eth_newBlockFilter",
        "eth_newFilter",
        "eth_newPendingTransactionFilter",
        "eth_sendRawTransaction",
        "eth_sendRawTransactionSync",
        "eth_subscribe",
        "eth_uninstallFilter",
        "eth_unsubscribe",
    }
)
