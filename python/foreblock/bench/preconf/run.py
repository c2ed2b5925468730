"""One run of a dev chain with clients around it."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from foreblock.bench.measure import probing
from foreblock.bench.preconf import clients
from foreblock.bench.preconf.client_process import ClientProcess, begun
from foreblock.bench.preconf.report import Closed, PreconfRun, closed, first_seen
from foreblock.bench.rpc.peers import cpu_seconds, family
from foreblock.bench.rpc.rounds import LoadResult, parse_wrk, wrk_script
from foreblock.clock import SECOND_NS
from foreblock.errors import InvalidArgument
from foreblock.primitives import format_data
from foreblock.sequencer.predeploys import TOKEN
from foreblock.service.running import HOST, free_port, started

ACCOUNTS: Final = 20  # dev accounts; the first is the payer's, the others send the load
NICE: Final = 5  # of the readers, as of the workers: clients would be on other machines
BLOCK_OF: Final = 16  # one of this many requests of readers is for the pending block
_BALANCE_OF: Final = "0x70a08231"  # balanceOf(address)


@dataclass(frozen=True)
class PreconfOptions:
    """Options of a run."""

    wrk: Path
    tps: int = 1_000
    seconds: int = 30
    connections: int = 32  # of the readers
    workers: int = 0  # one for each core
    folder: Path | None = None  # on the disk that counts
    warm_up: int = 4  # seconds before those that count: pages, caches and queues fill

    @property
    def in_all(self) -> int:
        """Seconds for which the clients run."""
        return self.warm_up + self.seconds


def run(options: PreconfOptions) -> PreconfRun:
    """Run, and return the results after the warm-up."""
    with tempfile.TemporaryDirectory(prefix="foreblock-bench-", dir=options.folder) as path:
        folder = Path(path)
        log = folder / "log"
        with _dev(options, folder, log) as (pid, url, feed):
            seconds = options.in_all
            parts = [
                ClientProcess(clients, "poller", url, seconds),
                ClientProcess(clients, "listener", feed, seconds),
                ClientProcess(clients, "payer", url, seconds),
                ClientProcess(clients, "sender", url, seconds, options.tps, ACCOUNTS),
            ]
            with begun(parts), probing(folder) as probes:
                since_ns = time.monotonic_ns() + options.warm_up * SECOND_NS
                readers, cpu = read(options, url, folder, pid)
                polled, heard, paid, sent = (part.found(seconds) for part in parts)
        counted = _counted(log, since_ns, since_ns + options.seconds * SECOND_NS)
    (counts,) = sent
    return PreconfRun(
        closed=counted,
        polled=first_seen(polled),
        heard=first_seen(heard),
        paid=[(a, b, c) for a, b, c in paid if a >= since_ns],
        sent=(counts[0], counts[1], counts[2]),
        readers=readers,
        probes=probes,
        writer_cpu=cpu,
        tps=options.tps,
    )


@contextmanager
def _dev(options: PreconfOptions, folder: Path, log: Path) -> Iterator[tuple[int, str, str]]:
    """A dev chain that logs the times of its sequencer."""
    address, feed = (f"{HOST}:{free_port()}" for _ in range(2))
    command = [
        sys.executable, "-m", "foreblock", "dev", f"--data={folder / 'data'}",
        f"--listen={address}", f"--feed-listen={feed}", "--test-listen=", "--test-feed-listen=",
        f"--workers={options.workers}", f"--accounts={ACCOUNTS}", "--log-level=debug",
    ]  # fmt: skip
    url = f"http://{address}"
    with log.open("w+b") as output, started(command, url, output) as process:
        yield process.pid, url, f"ws://{feed}/ws"


def read(options: PreconfOptions, url: str, folder: Path, pid: int) -> tuple[LoadResult, float]:
    """Run readers at full load; return their result and the writer's share of a core."""
    lua = folder / "readers.lua"
    lua.write_text(wrk_script(_questions()), "ascii")
    writer = [each for each in family(pid) if b"foreblock.service.writer" in _command(each)]
    before, at = cpu_seconds(writer), time.monotonic()
    command = ["nice", f"-n{NICE}", str(options.wrk), "-t1", f"-c{options.connections}",
               f"-d{options.in_all}s", "-s", str(lua), url]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise InvalidArgument(f"wrk failed: {(done.stderr or done.stdout).strip()}")
    cpu = (cpu_seconds(writer) - before) / (time.monotonic() - at)
    return parse_wrk(done.stdout), cpu


def _questions() -> list[bytes]:
    """Balances, token balances, nonces, and now and then the block, all at `pending`."""
    bodies = []
    for number in range(BLOCK_OF - 1):
        address = format_data(number.to_bytes(20))
        called = {"to": format_data(TOKEN), "data": _BALANCE_OF + address[2:].rjust(64, "0")}
        method, params = (
            ("eth_getBalance", f'"{address}"'),
            ("eth_call", str(called).replace("'", '"')),
            ("eth_getTransactionCount", f'"{address}"'),
        )[number % 3]
        bodies.append(_body(method, f'{params},"pending"'))
    return [*bodies, _body("eth_getBlockByNumber", '"pending",false')]


def _body(method: str, params: str) -> bytes:
    return f'{{"jsonrpc":"2.0","id":1,"method":"{method}","params":[{params}]}}'.encode()


def _counted(log: Path, since_ns: int, until_ns: int) -> list[Closed]:
    with log.open(encoding="utf-8", errors="replace") as lines:
        found = [each for each in closed(lines) if since_ns <= each.due_ns < until_ns]
    if not found:
        raise InvalidArgument("the sequencer closed no flashblock while it was measured")
    return found


def _command(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""
