"""Run all tests repeatedly while other processes occupy every core, and once on one core.

    make check NAME=busy COUNT=20
    python tests/busy/run.py --runs 3 -- tests/crash tests/system

Tests that pass here do not depend on the speed of the machine. The Rust tests run once under the
same load. Stops at the first failure, prints its output, and exits with 1.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

CHECKOUT = Path(__file__).resolve().parent.parent.parent
# It checks its parent, so that it ends however this process ends.
BURN = """
import os
parent = os.getppid()
while os.getppid() == parent:
    sum(range(100_000))
"""
PYTEST = (
    sys.executable, "-m", "pytest", "--quiet", "-m", "not heavy", "--numprocesses=auto",
    "--dist=loadfile",
)  # fmt: skip
RUST = ("cargo", "test", "--locked", "--package", "foreblock-engine")


@contextmanager
def burning(count: int) -> Iterator[None]:
    """Run this many processes that use all available CPU time."""
    burners = [
        # In a separate session, so that Ctrl-C reaches this process alone.
        subprocess.Popen([sys.executable, "-c", BURN], start_new_session=True)
        for _ in range(count)
    ]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
        for burner in burners:
            burner.wait()


@contextmanager
def on_one_core() -> Iterator[None]:
    """Restrict child processes to one core."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def passes(name: str, command: Sequence[str]) -> bool:
    """Run a command and print the result, with its whole output on failure."""
    begun, said = time.monotonic(), []
    process = subprocess.Popen(
        command, cwd=CHECKOUT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert process.stdout is not None
    try:
        said = list(process.stdout)
        process.wait()
    finally:
        process.terminate()
        process.wait()
    lines = [line for line in said if line.startswith("test result:")] or said[-1:]
    closing = " ".join(line.strip() for line in lines[-1:])
    click.echo(f"{name}: {time.monotonic() - begun:.0f} s: {closing}")
    if process.returncode:
        click.echo("".join(said))
    return process.returncode == 0


def run(options: argparse.Namespace) -> bool:
    """Return whether everything passes."""
    command = (*PYTEST, *options.tests)
    with burning(options.burners):
        if not options.tests and not passes("Rust, busy", RUST):
            return False
        for number in range(1, options.runs + 1):
            if not passes(f"busy, {number} of {options.runs}", command):
                return False
    with on_one_core():
        return passes("one core", command)


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Run all tests while something else burns every core, and once on one core."
    )
    parser.add_argument("--runs", type=int, default=20, help="under load; 20 if not given")
    parser.add_argument(
        "--burners", type=int, default=os.cpu_count(), help="processes; as many as cores"
    )
    parser.add_argument("tests", nargs="*", help="arguments for pytest instead of all tests")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sys.exit(0 if run(options) else 1)
    except KeyboardInterrupt:
        click.echo("stopped before its end")
        sys.exit(130)


if __name__ == "__main__":
    main()
