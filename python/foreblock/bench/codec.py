"""What it costs to decode transactions and recover their senders."""

import os
import time

from foreblock.bench.measure import Figure
from foreblock.types import decode_transactions

COUNT = 500
ROUNDS = 7

# A signed transfer, from the public chain of the execution-apis test suite.
TRANSFER = bytes.fromhex(
    "f8664901825208940c2c51a0990aee1d73c1228de15868834155750801808718e5bb3abd109fa031c82ffa1eb4a48e"
    "fbdbc324f5a248c3708b7a83df0ccf954c57bf5c84de7767a0018c2c95d517af9bdf5af3693fba7d54f87d665a7159"
    "12f416646c2318418d98"
)


def sender_recoveries() -> list[Figure]:
    """Transactions decoded a second, on one thread and on all cores (wall time)."""
    threads = os.cpu_count() or 1
    return [
        Figure("sender recoveries on one thread", "/s", _rates(1)),
        Figure(f"sender recoveries on {threads} threads", "/s", _rates(threads)),
    ]


def _rates(threads: int) -> list[float]:
    raws = [TRANSFER] * COUNT
    rates = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        decode_transactions(raws, threads)
        rates.append(COUNT / (time.perf_counter() - begun))
    return rates
