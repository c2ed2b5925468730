"""The clients of a measurement as processes: all ready first, then all begin at once.

A client says `ready`, waits for a line, does its work for the time it was given and prints
what it found, one JSON value a line.
"""

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Final

from foreblock.errors import InvalidArgument

READY: Final = "ready\n"
PATIENCE: Final = 60.0  # seconds beyond its time that a client may take to end


class Part:
    """One client, from the outside."""

    def __init__(self, module: ModuleType, *arguments: object) -> None:
        self._name: Final = module.__name__.rpartition(".")[2]
        self._process: Final = subprocess.Popen(  # noqa: S603, a module of this package
            [sys.executable, "-m", module.__name__, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def wait_until_ready(self) -> None:
        """Return when it could begin."""
        assert self._process.stdout is not None
        if self._process.stdout.readline() != READY:
            self._fail()

    def begin(self) -> None:
        """Let it go."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def found(self, seconds: float) -> list[list[int]]:
        """What it found in so many seconds, once it has ended."""
        said, complaint = self._process.communicate(timeout=seconds + PATIENCE)
        if self._process.returncode:
            self._fail(complaint)
        return [json.loads(line) for line in said.splitlines()]

    def end(self) -> None:
        """Make sure that it is gone."""
        self._process.kill()
        self._process.communicate()

    def _fail(self, complaint: str = "") -> None:
        if not complaint:
            _, complaint = self._process.communicate(timeout=PATIENCE)
        last = complaint.strip().splitlines()[-1:] or ["it said nothing"]
        raise InvalidArgument(f"the {self._name} ended early: {last[0]}")


@contextmanager
def begun(parts: Iterable[Part]) -> Iterator[None]:
    """All of them at work; whatever happens, none outlives the block."""
    parts = list(parts)
    try:
        for part in parts:
            part.wait_until_ready()
        for part in parts:
            part.begin()
        yield
    finally:
        for part in parts:
            part.end()


# --- From the inside -----------------------------------------------------------------


def wait_to_begin() -> None:
    """Say that this client is ready, and return when all are."""
    sys.stdout.write(READY)
    sys.stdout.flush()
    sys.stdin.readline()


def tell(found: Iterable[Iterable[int]]) -> None:
    """Print what was found."""
    for each in found:
        sys.stdout.write(json.dumps(list(each)) + "\n")
