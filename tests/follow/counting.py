"""The requests to an upstream, as billed: by method, by second, in units; and their times.

Prices are those published by Alchemy for its compute units; an unlisted method costs as much as a
read of state.
"""

import time
from collections import Counter, deque
from typing import Any, NamedTuple

Json = Any
PRICES = {
    "eth_chainId": 0, "net_version": 0, "eth_blockNumber": 10, "eth_call": 26, "eth_getProof": 20,
    "eth_getStorageAt": 20, "eth_getBalance": 20, "eth_getCode": 20, "eth_getTransactionCount": 20,
    "eth_getBlockByHash": 20, "eth_getBlockByNumber": 20, "eth_getBlockReceipts": 20,
    "eth_getTransactionReceipt": 20, "eth_getTransactionByHash": 20, "eth_createAccessList": 10,
    "eth_getLogs": 60, "eth_sendRawTransaction": 40, "eth_estimateGas": 20, "eth_simulateV1": 40,
    "debug_traceBlockByHash": 40, "debug_traceBlockByNumber": 40,
}  # fmt: skip
OTHER_PRICE = 20
KEPT = 1_000_000  # exchanges and seconds, a bound of memory


class Exchanged(NamedTuple):
    """One HTTP request from its first byte at the proxy to the last of its response."""

    begun: float  # seconds of the monotonic clock
    ended: float
    methods: list[str]


class Counts:
    """Counts of one proxy."""

    def __init__(self) -> None:
        self.requests = 0  # of HTTP
        self.items = 0  # of JSON-RPC
        self.units = 0
        self.sent = 0  # bytes of responses
        self.answered = 0  # HTTP requests
        self.methods: Counter[str] = Counter()
        self.struck: Counter[str] = Counter()  # by kind of fault
        self.exchanges: deque[Exchanged] = deque(maxlen=KEPT)
        self._seconds: dict[int, list[int]] = {}  # requests, items and units

    def asked(self, methods: list[str]) -> float:
        """Count a request; return its time."""
        now = time.monotonic()
        units = sum(PRICES.get(method, OTHER_PRICE) for method in methods)
        self.requests += 1
        self.items += len(methods)
        self.units += units
        self.methods.update(methods)
        second = self._seconds.setdefault(int(now), [0, 0, 0])
        second[0] += 1
        second[1] += len(methods)
        second[2] += units
        return now

    def ended(self, begun: float, methods: list[str], *, answered: bool) -> None:
        """Record the end of a request, sent or failed."""
        self.answered += answered
        self.exchanges.append(Exchanged(begun, time.monotonic(), methods))

    def summary(self) -> dict[str, Json]:
        """All counts except the exchanges, as JSON."""
        seconds = list(self._seconds.values())
        return {
            "requests": self.requests,
            "answered": self.answered,
            "items": self.items,
            "units": self.units,
            "sent": self.sent,
            "methods": dict(self.methods.most_common()),
            "struck": dict(self.struck.most_common()),
            "seconds": seconds,
            "busiest": {
                name: max((each[at] for each in seconds), default=0)
                for at, name in enumerate(("requests", "items", "units"))
            },
        }
