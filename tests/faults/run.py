"""Disk failures under a whole service, at full scale: `make check NAME=disk`.

A development chain with a second one beside it, and a service that follows the first, each with two
workers. One after the other, the disk of the first chain and that of the follower fail: once at
each of the first calls from a moment on, by being full, and by being read only. Each time the
network must be ready within `BOUND` seconds of the fault's end with every block unchanged; the
chain beside must be ready throughout.
"""

import argparse
import errno
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from faults.disk import ALL, Disk, Fault
from support.servers.dev_processes import Network, dev_chain, following, sealed

BOUND = 6.0  # seconds
LASTS = 8.0  # seconds of a lasting fault: longer than the longest delay between two tries
ROUNDS = 5
WORKERS = 2


class Healed(NamedTuple):
    """The outcome of one fault."""

    fault: Fault
    seconds: float  # from its end until there was a commit, and all workers were ready
    shown: str  # the reason in the readiness report


def is_ready(network: Network) -> bool:
    """Return whether several connections, which reach all workers, report it ready."""
    return all(network.probe("/readyz")[0] == 200 for _ in range(2 * WORKERS))


def shown(network: Network) -> str:
    """The reason why it is not ready."""
    _, text = network.probe("/readyz?verbose")
    return next(
        (line for line in text.splitlines() if line.startswith(("failed: ", "restarted: "))), ""
    )


def await_ready(network: Network) -> None:
    end = time.monotonic() + 60
    while not is_ready(network):
        assert time.monotonic() < end, network.probe("/readyz?verbose")
        time.sleep(0.01)


def strike(disk: Disk, fault: Fault, network: Network) -> Healed:
    """Inject a fault, and measure the time until recovery."""
    await_ready(network)
    last = network.latest()
    before = [sealed(network, number) for number in range(max(0, last - 2), last + 1)]
    disk.fail(fault)
    end = time.monotonic() + 60
    due = 1 if fault.between < 0 else 2
    while disk.hits < due:
        assert time.monotonic() < end, f"{fault} does not occur"
        time.sleep(0.001)
    reason = ""
    if fault.failing == ALL:
        time.sleep(LASTS)
        reason = shown(network)
    disk.mend()
    begun, commit = time.monotonic(), _commit(network)
    while not is_ready(network) or _commit(network) <= commit:
        assert time.monotonic() < begun + 60, network.probe("/readyz?verbose")
        time.sleep(0.01)
    seconds = time.monotonic() - begun
    now = [sealed(network, number) for number in range(max(0, last - 2), last + 1)]
    assert now == before, f"{fault} has changed blocks"
    return Healed(fault, seconds, reason or shown(network))


def _commit(network: Network) -> int:
    network.latest()
    return network.commit


class Beside(threading.Thread):
    """Continuously checks the readiness of the chain beside."""

    def __init__(self, network: Network) -> None:
        super().__init__(daemon=True)
        self._network = network
        self._over = threading.Event()
        self.asked = 0
        self.not_ready = 0

    def run(self) -> None:
        while not self._over.wait(0.2):
            self.asked += 1
            self.not_ready += self._network.probe("/readyz")[0] != 200

    def end(self) -> None:
        self._over.set()
        self.join()


def faults_of(calls: int) -> list[Fault]:
    """Each of this many calls once, and lasting faults this many times."""
    lasting = [Fault(error, failing=ALL) for error in (errno.ENOSPC, errno.EROFS)]
    short = [Fault(0, before=before) for before in range(min(calls, ROUNDS))]
    return [*(Fault(before=before) for before in range(calls)), *short, *lasting * ROUNDS]


@contextmanager
def services(folder: Path) -> Iterator[dict[str, tuple[Disk, Network]]]:
    """The failing networks, and the one beside, by name."""
    with ExitStack() as opened:
        sequenced = Disk(folder / "dev" / "main", folder / "sequenced.page")
        followed = Disk(folder / "followed", folder / "followed.page")
        dev = opened.enter_context(
            dev_chain("--block-time=1", "--load=20", f"--data={folder / 'dev'}",
                      environment=sequenced.environment)
        )  # fmt: skip
        assert dev.test is not None
        follower = opened.enter_context(
            following(folder / "dev" / "test" / "genesis.json", folder / "followed", dev.test.feed,
                      canonical=dev.test.url, workers=WORKERS, environment=followed.environment)
        )  # fmt: skip
        for process in (dev.process, follower.process):
            threading.Thread(target=_read_all, args=(process,), daemon=True).start()
        yield {
            "sequenced": (sequenced, dev.main),
            "followed": (followed, follower.network),
            "beside": (sequenced, dev.test),
        }


def _read_all(process: subprocess.Popen[str]) -> None:
    """Read a service's log, so that it never blocks."""
    assert process.stdout is not None
    with suppress(ValueError):  # it is closed at the end
        for _ in process.stdout:
            pass


def run(calls: int) -> bool:
    """Return whether all faults were healed in time."""
    is_well = True
    with tempfile.TemporaryDirectory() as name, services(Path(name)) as networks:
        beside = Beside(networks["beside"][1])
        beside.start()
        for failing in ("sequenced", "followed"):
            disk, network = networks[failing]
            healed = [strike(disk, fault, network) for fault in faults_of(calls)]
            is_well &= _report(failing, healed)
        beside.end()
        _say(f"beside: not ready {beside.not_ready} times of {beside.asked}")
        is_well &= not beside.not_ready
    return is_well


def _report(name: str, healed: Sequence[Healed]) -> bool:
    kinds: dict[str, list[Healed]] = {}
    for each in healed:
        kinds.setdefault(_kind(each.fault), []).append(each)
    for kind, found in kinds.items():
        times = sorted(each.seconds for each in found)
        middle, most = times[len(times) // 2], times[-1]
        in_time = sum(each <= BOUND for each in times)
        _say(f"{name}: {kind}: ready within {BOUND:g} s {in_time} of {len(times)} times, "
             f"median {middle:.2f} s, most {most:.2f} s; {found[-1].shown}")  # fmt: skip
    return all(each.seconds <= BOUND for each in healed)


def _kind(fault: Fault) -> str:
    if fault.cut_short:
        return "a write cut short"
    lasts = "until it is mended" if fault.failing == ALL else "once"
    return f"{errno.errorcode[fault.error]} {lasts}"


def _say(line: Any) -> None:  # noqa: ANN401, anything that has a text
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--calls", type=int, default=200, help="number of calls that fail once each"
    )
    sys.exit(not run(parser.parse_args().calls))
