"""Clocks that differ (8): a replica whose monotonic clock is another, and one whose date is.

`pending` ends at a replica when it ends at the writer's own workers, and never later.
"""

import os
import shutil
import signal
import time
from collections.abc import Callable, Sequence
from http.client import HTTPException
from pathlib import Path

from replicas.fleet import fleet, writing
from replicas.node import Node, NotAnswered
from replicas.places import Place

Say = Callable[[str], None]
HERE = [Place(0, is_apart=False)] * 3
LOOK = 0.01
LATE = 0.05  # between two looks, and the time of an answer
EARLY = 0.5

CLOCKS: tuple[tuple[str, Sequence[str]], ...] = (
    ("as here", ()),
    ("100,000 s ahead", ("unshare", "--fork", "--time", "--monotonic", "100000")),
    ("a date one hour ahead", ("faketime", "--exclude-monotonic", "-f", "+1h")),
    ("a date one hour behind", ("faketime", "--exclude-monotonic", "-f", "-1h")),
)


def run_clocks(folder: Path, say: Say) -> list[str]:
    """Halt the writer's process and see when `pending` ends where."""
    wrong = []
    with fleet(folder, HERE, "--load=20", "--takeover=0", copies=1, replicas=0) as made:
        standby = made.writers[1]
        standby.stop()
        names = []
        for name, before in CLOCKS:
            if before and shutil.which(before[0]) is None:
                say(f"NOT TRIED, {before[0]} is missing: a clock {name}")
                continue
            node = made.add_replica(HERE[0], folder, before=before)
            node.start()
            names.append(name)
        made.level()
        writer = writing(made)
        os.kill(writer.writer_pid, signal.SIGSTOP)
        ends = _ends([writer, *made.replicas])
        os.kill(writer.writer_pid, signal.SIGCONT)
        for name, end in zip(names, ends[1:], strict=True):
            late = end - ends[0]
            say(f"clock {name}: pending ends {1e3 * late:+.0f} ms after that of the writer")
            if not -EARLY <= late <= LATE:
                wrong.append(f"clock {name}: {1e3 * late:+.0f} ms")
        for node in made.replicas:
            node.kill()
    return wrong


def _ends(nodes: Sequence[Node]) -> list[float]:
    """When each node last showed a pending block above its latest."""
    last = [0.0] * len(nodes)
    until = time.monotonic() + 15
    while time.monotonic() < until:
        for number, node in enumerate(nodes):
            if _has_pending(node):
                last[number] = time.monotonic()
        time.sleep(LOOK)
    assert all(last), "there was no pending block"
    return last


def _has_pending(node: Node) -> bool:
    try:
        pending, _ = node.ask("eth_getBlockByNumber", "pending", False)
        latest, _ = node.ask("eth_getBlockByNumber", "latest", False)
    except (OSError, HTTPException, NotAnswered):
        return False
    return int(pending["number"], 16) > int(latest["number"], 16)
