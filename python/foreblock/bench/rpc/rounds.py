"""One round: a server under load on its own core, and whether the round is valid."""

import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from foreblock.bench.rpc import load
from foreblock.bench.rpc.peers import Server
from foreblock.bench.rpc.processes import cpu_seconds, family, idle_seconds, resident_bytes

SHARE: Final = 0.9  # of its core; with less, other load distorts the figure


@dataclass(frozen=True)
class Bench:
    """The setup of all rounds."""

    wrk: Path
    server_core: int
    client_core: int
    seconds: float
    warm_up: float = 1.0
    narrow: bool = False  # restrict servers to one core from their start


@dataclass(frozen=True)
class BenchRound:
    """The result of a round."""

    cpu_us: float  # of the server, per request
    per_second: float
    share: float  # of its core that the server got
    idle: float  # of its core: the generator could not send faster
    p50_us: int
    p99_us: int
    failed: int
    requests: int = 0  # answered, with those of the warm-up
    resident: int = 0  # bytes of the server's own memory afterwards
    ended: float = 0.0  # seconds, to tell which round came first

    @property
    def counts(self) -> bool:
        """Whether the server had its core, and answered everything."""
        return self.share >= SHARE and not self.failed


def measure(bench: Bench, server: Server, url: str, lua: Path, connections: int) -> BenchRound:
    """Warm up, then load the server and divide its CPU time by the requests answered."""
    warm = load.run(bench.wrk, url, lua, connections, bench.warm_up, bench.client_core)
    processes = family(server.pid)
    before, idle = cpu_seconds(processes), idle_seconds(bench.server_core)
    seen = load.run(bench.wrk, url, lua, connections, bench.seconds, bench.client_core)
    used, idle = cpu_seconds(processes) - before, idle_seconds(bench.server_core) - idle
    requests = max(1, seen.requests)
    return BenchRound(
        cpu_us=used / requests * 1e6,
        per_second=seen.requests / seen.seconds,
        share=used / seen.seconds,
        idle=idle / seen.seconds,
        p50_us=seen.p50_us,
        p99_us=seen.p99_us,
        failed=seen.failed if seen.requests else 1,
        requests=warm.requests + seen.requests,
        resident=resident_bytes(processes),
        ended=time.monotonic(),
    )


@contextmanager
def alone(server: Server, servers: Sequence[Server]) -> Iterator[None]:
    """Stop all other servers with SIGSTOP meanwhile."""
    with ExitStack() as stack:
        for other in servers:
            if other is not server:
                stack.callback(os.killpg, other.pid, signal.SIGCONT)
                os.killpg(other.pid, signal.SIGSTOP)
        yield
