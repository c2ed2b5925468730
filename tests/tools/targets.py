"""The chains that flows run against, restarted for each flow.

`like-anvil` is the replacement for anvil, `eth` the ordinary node's view of a chain with a clock,
and `anvil` the reference for both.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

from foreblock.bench.rpc.peers import find
from foreblock.service.running import HOST, free_port, started

CHAIN_ID = 31337
CHECKOUT = Path(__file__).resolve().parents[2]
# The path of anvil: from `bench/peers.sh`, or from the packages of this folder.
PLACES = (CHECKOUT / "build" / "peers", CHECKOUT / "tests" / "tools")
# Hardhat's network helpers, ape and wake request the client version first.
NAMED = "--client-version=anvil/v1.7.1"
ONE_CHAIN = ("--test-listen=", "--feed-listen=", f"--chain-id={CHAIN_ID}", NAMED)


@dataclass(frozen=True)
class Running:
    """A responding chain."""

    target: str
    url: str
    upstream: str = ""

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables of a program."""
        return {
            "RPC_URL": self.url,
            "WS_URL": self.url.replace("http", "ws", 1),
            "CHAIN_ID": str(CHAIN_ID),
            "TARGET": self.target,
            "UPSTREAM_URL": self.upstream,
        }


class NotInstalled(Exception):
    """A missing program."""


def like_anvil(port: int) -> Sequence[str]:
    """The command of a chain that behaves like anvil."""
    return [sys.executable, "-m", "foreblock", "dev", "--like", "anvil", f"--port={port}"]


def clocked(port: int) -> Sequence[str]:
    """The command of a plain chain with a block every second."""
    return [
        sys.executable, "-m", "foreblock", "dev", *ONE_CHAIN, f"--listen={HOST}:{port}",
        "--block-time=1",
    ]  # fmt: skip


def anvil(port: int) -> Sequence[str]:
    """The command of anvil."""
    program = next(filter(None, (find("anvil", place) for place in PLACES)), None)
    if program is None:
        raise NotInstalled("anvil: bench/peers.sh installs it")
    return [str(program), f"--port={port}"]


@dataclass(frozen=True)
class Target:
    """A chain to start: its name, its command and its URL path."""

    name: str
    command: Callable[[int], Sequence[str]]
    path: str = ""
    uncached: str = "--no-storage-caching"  # the option of a fork that keeps nothing on disk


TARGETS = (
    Target("anvil", anvil),
    Target("like-anvil", like_anvil),
    Target("eth", clocked, "/eth", "--fork-cache=false"),
)
NAMES = tuple(each.name for each in TARGETS)
OURS = tuple(name for name in NAMES if name != "anvil")


@contextmanager
def running(target: Target, upstream: Running | None = None) -> Iterator[Running]:
    """A new chain, or a fork of another, from its first response to its end."""
    port = free_port()
    url = f"http://{HOST}:{port}{target.path}"
    command, forked = [*target.command(port)], "" if upstream is None else upstream.url
    if forked:
        command += [f"--fork-url={forked}", target.uncached]
    with TemporaryFile() as log:
        try:
            with started(command, url, log):
                yield Running(target.name, url, forked)
        finally:
            if os.environ.get("TOOLS_SHOW_CHAIN"):  # the chain's output, for diagnosis
                log.seek(0)
                sys.stderr.buffer.write(log.read())
