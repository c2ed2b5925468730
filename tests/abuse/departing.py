"""Clients that send expensive requests and disconnect early, beside cheap requests.

The work for the first must stop when its client is gone: the second would wait for it to end.
"""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from abuse.hogs import ADDRESS, hog
from abuse.probe import Latencies
from abuse.wire import Address, Connection, post, request

# JUMPDEST PUSH3 256,000 GAS GT PUSH0 JUMPI: until this much gas remains, of two million.
MODERATE = request(
    "eth_call",
    {"to": ADDRESS, "gas": hex(2_000_000)},
    "latest",
    {ADDRESS: {"code": "0x5b6203e8005a11600057"}},
)


def moderate_calls(address: Address, count: int) -> Latencies:
    """The times of consecutive calls of some milliseconds."""
    connection = Connection(address)
    times = []
    for _ in range(count):
        begun = time.perf_counter()
        answer = connection.exchange(MODERATE)
        times.append((time.perf_counter() - begun) * 1e3)
        assert answer.status == 200, answer
        assert b'"result"' in answer.body, answer
    connection.close()
    return Latencies(tuple(sorted(times)))


@contextmanager
def departing(address: Address, per_second: float) -> Iterator[list[int]]:
    """Clients that send a call of half a second and close immediately; returns their number."""
    sent, over = [0], threading.Event()

    def depart() -> None:
        while not over.wait(1 / per_second):
            with socket.create_connection(address) as client:
                client.sendall(post(hog("keccak_loop")))
            sent[0] += 1

    thread = threading.Thread(target=depart)
    thread.start()
    try:
        yield sent
    finally:
        over.set()
        thread.join()
