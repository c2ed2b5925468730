"""Clients as processes: all get ready, then all start at once.

A client prints `ready`, waits for a line of input, works for a given time and prints its
results, one JSON value per line.
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
PATIENCE: Final = 60.0  # seconds beyond its time for a client to end


class ClientProcess:
    """A client process."""

    def __init__(self, module: ModuleType, *arguments: object) -> None:
        self._name: Final = module.__name__.rpartition(".")[2]
        self._process: Final = subprocess.Popen(  # noqa: S603, a module of this package
            [sys.executable, "-m", module.__name__, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_until_ready(self) -> None:
        assert self._process.stdout is not None
        if self._process.stdout.readline() != READY:
            self._fail()

    def begin(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def found(self, seconds: float) -> list[list[int]]:
        """Its results, after it has worked for `seconds` and ended."""
        said, complaint = self._process.communicate(timeout=seconds + PATIENCE)
        if self._process.returncode:
            self._fail(complaint)
        return [json.loads(line) for line in said.splitlines()]

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()

    def _fail(self, complaint: str = "") -> None:
        if not complaint:
            _, complaint = self._process.communicate(timeout=PATIENCE)
        last = complaint.strip().splitlines()[-1:] or ["it said nothing"]
        raise InvalidArgument(f"the {self._name} ended early: {last[0]}")


@contextmanager
def begun(parts: Iterable[ClientProcess]) -> Iterator[None]:
    """Run all of them; none outlives the block."""
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


# In the client process.


def wait_to_begin() -> None:
    """Report that this client is ready, and wait for the start."""
    sys.stdout.write(READY)
    sys.stdout.flush()
    sys.stdin.readline()


def tell(found: Iterable[Iterable[int]]) -> None:
    """Print results."""
    for each in found:
        sys.stdout.write(json.dumps(list(each)) + "\n")
