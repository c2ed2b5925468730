"""Different clocks (8): a replica with another monotonic clock, and one with another date.

`pending` ends at a replica when it ends at the writer's own workers, and never later.
"""

import os
import shutil
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from replicas.fleet import fleet, writing
from replicas.node import Node
from replicas.other_date import with_other_date
from replicas.places import Place
from support.servers.waiting import PATIENCE

Say = Callable[[str], None]
HERE = [Place(0, is_apart=False)] * 3
LOOK = 0.01
EARLY = 0.5

AHEAD = ["unshare", "--fork", "--time", "--monotonic", "100000"]


def clocks(folder: Path) -> dict[str, list[str] | None]:
    """The command prefixes of replicas, by their clocks; None if unavailable."""
    may_unshare = os.geteuid() == 0 and shutil.which(AHEAD[0]) is not None
    return {
        "as here": [],
        "100,000 s ahead": AHEAD if may_unshare else None,
        "with a date one hour ahead": with_other_date(folder, 3600),
        "with a date one hour behind": with_other_date(folder, -3600),
    }


def run_clocks(folder: Path, say: Say) -> list[str]:
    """Halt the writer's process and measure when `pending` ends on each node."""
    wrong = []
    with (
        fleet(folder, HERE, "--load=20", "--takeover=0", copies=1, replicas=0) as made,
        ExitStack() as opened,
    ):
        standby = made.writers[1]
        standby.stop()
        names = []
        for name, before in clocks(folder).items():
            if before is None:
                say(f"NOT TRIED: a clock {name} needs root and unshare, or a C compiler")
                continue
            node = made.add_replica(HERE[0], folder, before=before)
            opened.callback(node.kill)
            node.start()
            names.append(name)
        made.level()
        writer = writing(made)
        os.kill(writer.writer_pid, signal.SIGSTOP)
        with ThreadPoolExecutor() as threads:
            first, *others = threads.map(_end, [writer, *made.replicas])
        os.kill(writer.writer_pid, signal.SIGCONT)
        for name, end in zip(names, others, strict=True):
            late, early = end.there - first.gone, first.there - end.gone
            say(f"clock {name}: pending ends {_ms(early)} early at most, {_ms(late)} late at least")
            if late > 0 or early > EARLY:
                wrong.append(f"clock {name}: {_ms(late)} late or {_ms(early)} early")
    return wrong


class End(NamedTuple):
    """The end of a pending block as observed by a client."""

    there: float  # when the last request with the block in its response was sent
    gone: float  # when the first response without it came


def _end(node: Node) -> End:
    there, until = 0.0, time.monotonic() + PATIENCE
    while time.monotonic() < until:
        sent = time.monotonic()
        if _has_pending(node):
            there = sent
        elif there:
            return End(there, time.monotonic())
        time.sleep(LOOK)
    raise AssertionError(f"the pending block of {node.name} has no beginning or no end")


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.0f} ms"


def _has_pending(node: Node) -> bool:
    pending, _ = node.ask("eth_getBlockByNumber", "pending", False)
    latest, _ = node.ask("eth_getBlockByNumber", "latest", False)
    return int(pending["number"], 16) > int(latest["number"], 16)
