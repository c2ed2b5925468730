"""The budget of an API key, which all workers share, and its priority.

A budget is one number: the time at which everything that was spent would be repaid (GCRA). It is
above the present by what was spent, and a key may send while at least one unit of its burst is
left. A request is charged when its methods are known, so it may leave the key in debt, which the
key repays before it sends again.

The number is a float in a file that all workers map, read and written whole and without a lock:
two workers that charge a key within the same fraction of a microsecond may count one of both. A
lock would cost every request more, and a worker that is halted while it holds it stops the others.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, NamedTuple, TypeVar

from msgspec import Struct

from foreblock.scheduling.fair_queue import Priority
from foreblock.scheduling.reply import Channel, Client
from foreblock.scheduling.thresholds import THRESHOLDS

T = TypeVar("T")

POLICY_VIOLATION: Final = 1008  # RFC 6455
REVOKED: Final = "the API key is not valid any more"

EVERY: Final = "*"  # at the end of a name: all methods that begin so
DEFAULT_WEIGHT: Final = 1.0

# Units of a method; others have the default. About the CPU time of a usual request, in that of a
# balance, rounded; docs/access.md shows it.
WEIGHTS: Final[Mapping[str, float]] = {
    "eth_call": 2,
    "eth_createAccessList": 5,
    "eth_estimateGas": 5,
    "eth_feeHistory": 5,
    "eth_getBlockReceipts": 10,
    "eth_getFilterLogs": 10,
    "eth_getLogs": 10,
    "eth_getProof": 10,
    "eth_sendRawTransaction": 5,
    "eth_sendRawTransactionSync": 10,
    "eth_simulateV1": 20,
    "eth_subscribe": 10,
    "txpool_content": 20,
    "rpc.discover": 20,
    "debug_*": 50,
    "ots_*": 20,
    "trace_*": 50,
}


class MethodWeights:
    """The units of each method; those that are given take precedence."""

    def __init__(self, given: Mapping[str, float] | None = None) -> None:
        self._units: Final = {**WEIGHTS, **(given or {})}

    def of(self, method: str) -> float:
        """The units of a method: by its name, then by its namespace."""
        found = self._units.get(method)
        if found is not None:
            return found
        return self._units.get(method.partition("_")[0] + "_*", DEFAULT_WEIGHT)


CELL_BYTES: Final = 8


def own_cell() -> "memoryview[float]":
    """A budget that this process has for itself."""
    return memoryview(bytearray(CELL_BYTES)).cast("d")


class KeySpec(Struct, frozen=True):
    """A key as its file has it."""

    name: str
    digest: bytes  # SHA-256 of the secret; empty: clients without a key
    units: float  # a second
    burst: float
    priority: Priority = Priority.NORMAL
    methods: tuple[str, ...] = ()  # that are allowed; empty: all

    def allows(self, method: str) -> bool:
        """Return whether a method is allowed."""
        return not self.methods or any(
            method.startswith(each[:-1]) if each.endswith(EVERY) else method == each
            for each in self.methods
        )


class KeyCounts(NamedTuple):
    """The counters of a key; these count nothing."""

    requests: Callable[[float], None] = lambda _: None
    refused: Callable[[float], None] = lambda _: None
    units: Callable[[float], None] = lambda _: None
    seconds: Callable[[float], None] = lambda _: None


def held_back(refusal: T) -> T | Awaitable[T]:
    """A refusal, so late that refused requests cost little."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return refusal  # without a running loop nothing else waits
    later: asyncio.Future[T] = loop.create_future()
    # Not all at once, or the requests that follow them would come together again and again.
    seconds = THRESHOLDS.refusal_seconds * (0.5 + random.random())  # noqa: S311, no secret
    loop.call_later(seconds, _give, later, refusal)
    return later


def _give(later: asyncio.Future[T], refusal: T) -> None:
    if not later.done():  # else its client has gone
        later.set_result(refusal)


class ApiKey:
    """A key in one worker."""

    __slots__ = (
        "_burst_seconds", "_cell", "_clock", "_seconds_per_unit", "channels", "counts", "spec",
        "weights",
    )  # fmt: skip

    def __init__(
        self,
        spec: KeySpec,
        weights: MethodWeights,
        cell: "memoryview[float]",
        counts: KeyCounts = KeyCounts(),  # noqa: B008, a tuple
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`cell` has the number that the workers share, in seconds of `clock`."""
        self._cell: Final = cell
        self._clock: Final = clock
        self.counts: Final = counts
        self.channels: Final[set[Channel]] = set()  # open WebSockets
        self.change(spec, weights)

    def change(self, spec: KeySpec, weights: MethodWeights) -> None:
        """Apply changes of the file; the spent budget stays spent."""
        self.spec = spec
        self.weights = weights
        self._seconds_per_unit = 1 / spec.units
        self._burst_seconds = (spec.burst - 1) / spec.units

    def wait(self) -> float:
        """Seconds until the key may send; not above 0 if it may now."""
        return self._cell[0] - self._clock() - self._burst_seconds

    def spend(self, units: float, requests: int = 1) -> None:
        """Charge some requests."""
        now = self._clock()
        self._cell[0] = max(self._cell[0], now) + units * self._seconds_per_unit
        self.counts.requests(requests)
        self.counts.units(units)

    def client(self, client: Client) -> Client:
        """The sender of a request: the key takes turns with other keys, and not its addresses."""
        spec = self.spec
        address = f"key {spec.name}" if spec.digest else client.address
        return Client(address, client.connection, spec.priority, client.traceparent)

    def revoke(self) -> None:
        """Close the WebSockets of a key that was removed, or has another secret or other rights."""
        for channel in tuple(self.channels):
            channel.close(POLICY_VIOLATION, REVOKED)
