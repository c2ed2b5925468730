"""A weather proxy in a process of its own, and the client of its control."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.servers.dev_processes import exchange, package_environment

PROGRAM = Path(__file__).with_name("weather_proxy.py")


class Proxy:
    """A running proxy."""

    def __init__(self, url: str, control: str) -> None:
        self.url = url
        self._control = control

    def tell(self, **command: object) -> dict[str, Any]:
        """Give a command; gives all counts."""
        found: dict[str, Any] = json.loads(exchange(self._control, "/", json.dumps(command)).body)
        return found

    def faults(self, words: str) -> None:
        """From now on these faults; none for an empty text."""
        self.tell(faults=words)

    def silent(self, seconds: float) -> None:
        """Answer nothing for so long; 0 speaks again."""
        self.tell(silent=seconds)

    def lie(self, *slots: tuple[str, str, str]) -> None:
        """From now on these slots (address, slot, value) have other values in single reads,
        `eth_getStorageValues` and proofs; none ends it."""
        self.tell(lies=slots)

    def now(self) -> float:
        """The proxy's clock, by which exchanges are timed."""
        found: float = self.tell()["now"]
        return found

    def exchanges(self, since: float) -> list[tuple[float, float, list[str]]]:
        """Requests that have come since then: from, to, methods."""
        return [(a, b, names) for a, b, names in self.tell(exchanges=since)["exchanges"]]

    def journal(self) -> list[dict[str, Any]]:
        """What was damaged and how."""
        found: list[dict[str, Any]] = self.tell(journal=True)["journal"]
        return found


@contextmanager
def weather_proxy(
    upstream: str, faults: str = "", *, seed: int = 0, journal: Path | None = None
) -> Iterator[Proxy]:
    """A proxy in front of an endpoint, from its first answer to its end."""
    command = [
        sys.executable, str(PROGRAM), f"--upstream={upstream}", f"--faults={faults}",
        f"--seed={seed}", *([f"--journal={journal}"] if journal else []),
    ]  # fmt: skip
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=package_environment()
    )
    assert process.stdout is not None
    with process:
        try:
            _, url, _, control = process.stdout.readline().split()
            yield Proxy(url, control)
        finally:
            process.terminate()
