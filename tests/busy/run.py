"""Run all tests again and again while something else burns every core, and once on one core.

    make check NAME=busy COUNT=20
    python tests/busy/run.py --runs 3 -- tests/crash tests/system

What passes here does not depend on how fast the machine is. The Rust tests run once under
the same load. Stops at the first failure, whose output it prints, and exits with 1.
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
# It looks whether it is still wanted, so that it ends however this process does.
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
    """So many processes that take all the time they get."""
    burners = [
        # In a session of its own, so that Ctrl-C is told to this process alone.
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
    """What is started meanwhile has one core."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def passes(name: str, command: Sequence[str]) -> bool:
    """Run it and say how it ended; all that it printed, if it failed."""
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
    """Whether everything passes."""
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
