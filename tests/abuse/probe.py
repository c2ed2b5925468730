"""An ordinary client: requests a balance repeatedly, and measures the time."""

import json
import time
from dataclasses import dataclass

from abuse.simulations import Excess
from abuse.wire import Address, Closed, Connection, request

BALANCE = request("eth_getBalance", "0x" + "00" * 20, "latest")


@dataclass(frozen=True)
class Latencies:
    """Sorted response times in milliseconds."""

    sorted_ms: tuple[float, ...]

    @property
    def median(self) -> float:
        return self.percentile(50)

    def percentile(self, percent: float) -> float:
        last = len(self.sorted_ms) - 1
        return self.sorted_ms[min(last, int(len(self.sorted_ms) * percent / 100))]


def probe(address: Address, count: int, seconds: float = 60.0, extra: str = "") -> Latencies:
    """Request `count` times on one connection, or for this long; every response must be correct."""
    connection = Connection(address)
    expected = json.loads(connection.exchange(BALANCE, extra).body)["result"]
    times: list[float] = []
    until = time.perf_counter() + seconds
    while len(times) < count and (begun := time.perf_counter()) < until:
        answer = connection.exchange(BALANCE, extra)
        times.append((time.perf_counter() - begun) * 1e3)
        found = json.loads(answer.body)
        assert (answer.status, found["id"], found["result"]) == (200, 1, expected), answer
    connection.close()
    return Latencies(tuple(sorted(times)))


def ask_once(address: Address, excess: Excess) -> tuple[float, str | None]:
    """The response time in seconds, and the error, if any."""
    connection = Connection(address)
    begun = time.perf_counter()
    try:
        answer = connection.exchange(excess.body)
    except (OSError, Closed) as failure:
        return time.perf_counter() - begun, repr(failure)
    finally:
        connection.close()
    seconds = time.perf_counter() - begun
    if answer.status != excess.status:
        return seconds, f"status {answer.status}"
    if excess.status != 200:
        return seconds, None
    code = json.loads(answer.body).get("error", {}).get("code")
    return seconds, None if code in excess.codes else f"code {code}"
