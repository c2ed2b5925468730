"""Kills the process that writes a followed chain, at random times and around its commits."""

import time
from random import Random

from support.servers.dev_processes import Following, children
from support.servers.waiting import until

SLOT = 0.2  # seconds between flashblocks of the followed chain
AROUND = 0.03  # seconds after one in which it is probably being committed
LONGEST = 2.0  # maximum lifetime in seconds


def kill_again_and_again(service: Following, times: int, seed: int) -> None:
    """Kill each writer a random time after it has begun to follow."""
    random, killed = Random(seed), 0
    for _ in range(times):
        until(lambda: children(service.process.pid)["writer"] not in ([], [killed]), "another")  # noqa: B023
        until(lambda: service.network.probe("/readyz")[0] == 200, "it follows")
        at = time.time() + random.random() * LONGEST
        if random.random() < 0.5:
            at += SLOT - at % SLOT + random.random() * AROUND
        time.sleep(max(at - time.time(), 0))
        (killed,) = children(service.process.pid)["writer"]
        service.kill_writer()
    until(lambda: service.network.probe("/readyz")[0] == 200, "the last one follows")
