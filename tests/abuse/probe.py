"""An ordinary client: asks for a balance, again and again, and looks at the clock."""

import json
import time
from dataclasses import dataclass

from abuse.wire import Address, Connection, request

BALANCE = request("eth_getBalance", "0x" + "00" * 20, "latest")


@dataclass(frozen=True)
class Latencies:
    """How long answers took, in milliseconds, shortest first."""

    sorted_ms: tuple[float, ...]

    @property
    def median(self) -> float:
        return self.percentile(50)

    def percentile(self, percent: float) -> float:
        last = len(self.sorted_ms) - 1
        return self.sorted_ms[min(last, int(len(self.sorted_ms) * percent / 100))]


def probe(address: Address, count: int) -> Latencies:
    """Ask `count` times on one connection; every answer must be the right one."""
    connection = Connection(address)
    expected = json.loads(connection.exchange(BALANCE).body)["result"]
    times = []
    for _ in range(count):
        begun = time.perf_counter()
        answer = connection.exchange(BALANCE)
        times.append((time.perf_counter() - begun) * 1e3)
        found = json.loads(answer.body)
        assert (answer.status, found["id"], found["result"]) == (200, 1, expected), answer
    connection.close()
    return Latencies(tuple(sorted(times)))
