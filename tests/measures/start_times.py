"""Measure the time until `foreblock dev --like anvil` listens, beside anvil.

    PYTHONPATH=tests python tests/measures/start_times.py [--rounds 10]

Rounds alternate, from the start of the command to the line with its address. The CPU time is that
of all processes until they have ended.
"""

import argparse
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from statistics import median

from support.servers.dev_processes import package_environment
from support.servers.like_anvil import LISTENING, NO_ANVIL, anvil, anvil_program, like_anvil
from support.servers.waiting import PATIENCE


def main() -> None:
    """Print the medians and the minimum."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=10)
    if anvil_program() is None:
        sys.exit(NO_ANVIL)
    commands = {"foreblock": like_anvil(), "anvil": anvil()}
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for _ in range(parser.parse_args().rounds):
        for name, command in commands.items():
            found[name].append(started(command))
    for name, times in found.items():
        waits, works = zip(*times, strict=True)
        sys.stdout.write(
            f"{name:9} listens after {median(waits):.3f} s (least {min(waits):.3f}), "
            f"CPU {median(works):.3f} s (least {min(works):.3f})\n"
        )


def started(command: Sequence[str]) -> tuple[float, float]:
    """Seconds until a command listens, and CPU seconds until it has ended."""
    before, begun = _cpu(), time.monotonic()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env=package_environment(),
    )  # fmt: skip
    assert process.stdout is not None
    with process.stdout as said:
        for line in said:
            if line.startswith(LISTENING):
                break
        took = time.monotonic() - begun
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE)
    return took, _cpu() - before


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
