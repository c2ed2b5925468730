"""Checks that no view mixes two commits: one writer without pause, and preempted readers.

    python -m abuse.snapshots read STORE CORE

is a reader; `race` starts six of them beside a writer and returns the number of their views, and of
those that had heads of one commit and a row of another.
"""

import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import NamedTuple

import click

from foreblock._engine import Store

READERS = 6
STAMP = b"stamp"


class Race(NamedTuple):
    """The observations."""

    commits: int
    views: int
    mixed: int


def race(seconds: float, readers: int = READERS) -> Race:
    """Run both for this long."""
    memory = Path("/dev/shm")  # noqa: S108, where a commit takes microseconds
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        with Store(folder, write=True) as store:
            _stamp(store, 1)
            processes = [_start(folder, core) for core in range(readers)]
            over = threading.Event()
            threading.Timer(seconds, over.set).start()
            commits = 1
            while not over.is_set():
                commits += 1
                _stamp(store, commits)
        told = [process.communicate()[0].split() for process in processes]
    return Race(commits, sum(int(views) for views, _ in told), sum(int(bad) for _, bad in told))


def _stamp(store: Store, number: int) -> None:
    batch = store.batch()
    batch.put(STAMP, number.to_bytes(8))
    batch.note(number.to_bytes(8))
    store.commit(batch)


def _start(folder: str, core: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "abuse.snapshots", "read", folder, str(core)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def read(folder: str, core: int) -> None:
    """Compare both stamps in view after view, until standard input ends."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[core % len(cores)]})
    over = threading.Event()
    threading.Thread(target=_wait_for_end, args=(over,), daemon=True).start()
    views = mixed = 0
    with Store(folder) as store:
        while not over.is_set():
            for _ in range(1000):
                with store.view() as view:
                    views += 1
                    mixed += view.heads.note != view.row(STAMP)
    click.echo(f"{views} {mixed}")


def _wait_for_end(over: threading.Event) -> None:
    sys.stdin.read()
    over.set()


if __name__ == "__main__":
    _, _, path, number = sys.argv
    read(path, int(number))
