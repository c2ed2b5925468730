"""The follower under test: `foreblock follow`, or a stand-in.

This module builds its whole command line. The stand-in is a full follower of the feed from block 0
on, whose canonical source is the upstream: rigs can be tried with it, but it learns no state from
the upstream.
"""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.servers.dev_processes import (
    Network,
    RpcError,
    children,
    following,
    package_environment,
)
from support.servers.waiting import PATIENCE, until

HEADER_ONLY = 4444


class CannotRun(Exception):
    """A check cannot be run here."""


ERROR = re.compile(r'"level": "(error|critical)"|\[(error|critical) *\]')


@dataclass(frozen=True)
class FollowerPlan:
    """The followed chain and the follower's options."""

    chain: Path | str  # its configuration, as in a genesis; or the name of a known chain
    upstream: str
    feed: str
    data: Path
    anchor: str = "latest"
    trust: str = "proven"
    options: Sequence[str] = ()

    def command(self) -> list[str]:
        """The command line of `foreblock follow`."""
        feed = [f"--feed={self.feed}"] if self.feed else []
        chain = self.chain if isinstance(self.chain, str) else f"--chain={self.chain}"
        return [
            sys.executable, "-m", "foreblock", "follow", chain,
            f"--upstream={self.upstream}", *feed, f"--data={self.data}",
            f"--anchor={self.anchor}", f"--trust={self.trust}", "--listen=127.0.0.1:0",
            "--workers=1", *self.options,
        ]  # fmt: skip


class Follower:
    """A running follower."""

    def __init__(self, pid: int, network: Network, *, is_live: bool = True) -> None:
        self.pid = pid
        self.network = network
        self.url = network.url
        self.is_live = is_live  # blocks arrive during its start
        self.first = 0.0  # seconds from its start to its first pending block, if it waited

    def kill(self) -> None:
        """Kill all its processes at once: each has its own group."""
        found = [pid for pids in children(self.pid).values() for pid in pids]
        for pid in (self.pid, *found):
            os.kill(pid, signal.SIGKILL)


@contextmanager
def follower(
    plan: FollowerPlan, *, stand_in: bool = False, is_ready: bool = True
) -> Iterator[Follower]:
    """A ready follower."""
    wait = _ready if is_ready else _as_it_is
    begun = time.monotonic()
    if stand_in:
        assert isinstance(plan.chain, Path)
        with following(plan.chain, plan.data, plan.feed, canonical=plan.upstream) as service:
            yield wait(Follower(service.process.pid, service.network), begun)
        return
    process = subprocess.Popen(
        plan.command(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env=package_environment(), start_new_session=True,
    )  # fmt: skip
    draining = threading.Thread(target=_drain, args=(process,))
    try:
        network = Network(_address(process), "")
        draining.start()
        yield wait(Follower(process.pid, network, is_live=bool(plan.feed)), begun)
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
        if draining.ident is not None:
            draining.join()
        assert process.stdout is not None
        process.stdout.close()


def _drain(process: subprocess.Popen[str]) -> None:
    """Read its log, and print its errors: a full pipe would block it."""
    assert process.stdout is not None
    for line in process.stdout:
        if ERROR.search(line):
            sys.stderr.write(line)


def _address(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    said = []
    for line in process.stdout:
        said.append(line)
        if found := re.search(r"listening on (http://\S+)", line):
            return found[1]
    raise SystemExit("foreblock follow ended at its start:\n" + "".join(said[-5:]))


def _as_it_is(found: Follower, _: float) -> Follower:
    return found


def _ready(found: Follower, begun: float) -> Follower:
    until(lambda: found.network.probe("/readyz")[0] == 200, "the follower is ready")
    if found.is_live:
        until(lambda: _can_read(found.network), "a pending block can be read")
    found.first = time.monotonic() - begun
    return found


def _can_read(network: Network) -> bool:
    """Return whether the pending block is available: of the anchor there is only the header."""
    try:
        return bool(network.pending())
    except RpcError as why:
        return why.code != HEADER_ONLY
