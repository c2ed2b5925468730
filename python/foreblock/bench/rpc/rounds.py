"""One round: a server under load on its own core, and whether the round is valid.

wrk generates the load; `wrk_script` writes the Lua that it runs. Where instructions are counted,
`ClientsInStep` sends the load instead: a request on each connection, then it reads all answers.
The worker is paused while requests are sent, so it finds them all at once however slow it or the
machine is, and every round has the same number of event-loop iterations.
"""

import http.client  # blocking sockets: requests are written while the worker is stopped
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from foreblock.bench.rpc.peers import Server, cpu_seconds, family, idle_seconds, resident_bytes
from foreblock.errors import InvalidArgument, NotAnAnswer

# --- wrk -----------------------------------------------------------------------------------

# Printed by wrk at the end as one line of JSON; times are in microseconds.
_DONE: Final = """
done = function(summary, latency, requests)
  local e = summary.errors
  io.write(string.format(
    '\\n{"requests":%d,"duration":%d,"failed":%d,"p50":%d,"p99":%d}\\n',
    summary.requests, summary.duration,
    e.connect + e.read + e.write + e.status + e.timeout,
    latency:percentile(50), latency:percentile(99)))
end
"""
_HEAD: Final = """
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
"""
_IN_TURN: Final = """
local requests, at = {}, 0
init = function(args)
  for i, body in ipairs(bodies) do requests[i] = wrk.format(nil, nil, nil, body) end
end
request = function()
  at = at % #requests + 1
  return requests[at]
end
"""


@dataclass(frozen=True)
class LoadResult:
    """The result of a run of wrk."""

    requests: int
    seconds: float
    failed: int
    p50_us: int
    p99_us: int


def wrk_script(bodies: Sequence[bytes]) -> str:
    """A Lua script that sends these bodies in turn; a single body is repeated at no cost."""
    if len(bodies) == 1:
        return f"{_HEAD}wrk.body = {_quoted(bodies[0])}\n{_DONE}"
    listed = ",\n".join(map(_quoted, bodies))
    return f"{_HEAD}local bodies = {{\n{listed}\n}}\n{_IN_TURN}{_DONE}"


def run_wrk(
    wrk: Path, url: str, lua: Path, connections: int, seconds: float, core: int
) -> LoadResult:
    """One run of the generator on its own core."""
    command = ["taskset", "-c", str(core), str(wrk), "-t1", f"-c{connections}",
               f"-d{max(1, round(seconds))}s", "-s", str(lua), url]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise InvalidArgument(f"wrk failed: {(done.stderr or done.stdout).strip()}")
    return parse_wrk(done.stdout)


def parse_wrk(output: str) -> LoadResult:
    """The line that the script printed."""
    line = next(line for line in output.splitlines() if line.startswith("{"))
    parsed = json.loads(line)
    return LoadResult(
        parsed["requests"], parsed["duration"] / 1e6, parsed["failed"], parsed["p50"], parsed["p99"]
    )


def _quoted(body: bytes) -> str:
    """Quote JSON, which is ASCII here and has no closing long bracket."""
    text = body.decode("ascii")
    assert "]==]" not in text
    return f"[==[{text}]==]"


# --- Rounds --------------------------------------------------------------------------------

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
    ended: float = 0.0  # seconds, to find which round came first

    @property
    def counts(self) -> bool:
        """True if the server had its core and answered every request."""
        return self.share >= SHARE and not self.failed


def measure(bench: Bench, server: Server, url: str, lua: Path, connections: int) -> BenchRound:
    """Warm up, then load the server and divide its CPU time by the requests answered."""
    warm = run_wrk(bench.wrk, url, lua, connections, bench.warm_up, bench.client_core)
    processes = family(server.pid)
    before, idle = cpu_seconds(processes), idle_seconds(bench.server_core)
    seen = run_wrk(bench.wrk, url, lua, connections, bench.seconds, bench.client_core)
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
    """Pause all other servers with SIGSTOP."""
    with ExitStack() as stack:
        for other in servers:
            if other is not server:
                stack.callback(os.killpg, other.pid, signal.SIGCONT)
                os.killpg(other.pid, signal.SIGSTOP)
        yield


# --- Clients in step -----------------------------------------------------------------------

TIMEOUT_SECONDS: Final = 300.0
SEND_BYTES: Final = 1 << 20  # a request stays in the socket until the worker resumes

_HEADERS: Final = {"Content-Type": "application/json"}


class ClientsInStep:
    """Open connections to a server, and the requests that they send in turn."""

    def __init__(
        self,
        connections: Sequence[http.client.HTTPConnection],
        bodies: Sequence[bytes],
        worker: int,
    ) -> None:
        """`worker` is the process that reads from all the connections."""
        self._connections: Final = connections
        self._bodies: Final = cycle(bodies)
        self._worker: Final = worker

    def rounds(self, number: int) -> int:
        """Run the given number of rounds; returns how many requests they had."""
        for _ in range(number):
            self._round()
        return number * len(self._connections)

    def _round(self) -> None:
        os.kill(self._worker, signal.SIGSTOP)
        try:
            for connection in self._connections:
                connection.request("POST", "/", next(self._bodies), _HEADERS)
        finally:
            os.kill(self._worker, signal.SIGCONT)
        for connection in self._connections:
            answer = connection.getresponse()
            answer.read()
            if answer.status != http.HTTPStatus.OK:
                raise NotAnAnswer(connection.host, f"HTTP {answer.status}")


@contextmanager
def clients_in_step(
    url: str, connections: int, bodies: Sequence[bytes], worker: int
) -> Iterator[ClientsInStep]:
    """Connect; close all connections at the end."""
    with ExitStack() as stack:
        opened = [_connect(url) for _ in range(connections)]
        for each in opened:
            stack.callback(each.close)
        yield ClientsInStep(opened, bodies, worker)


def _connect(url: str) -> http.client.HTTPConnection:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=TIMEOUT_SECONDS)
    connection.connect()
    connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BYTES)
    return connection
