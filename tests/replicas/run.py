"""The guarantees of replication, attacked with real NATS servers and processes.

Each check prints its observations, and at the end its failures. All of them:

    PYTHONPATH=tests python tests/replicas/run.py

and one, or some, by name; `--kills` and `--cuts` are those of the storm.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).parent.parent))

from replicas.bootstrap import run_bootstrap
from replicas.clocks import run_clocks
from replicas.damage import (
    run_foreign_message,
    run_large_commit,
    run_lost_end,
    run_lost_stream,
)
from replicas.mutations import run_mutations
from replicas.storm import StormPlan, run_storm
from replicas.timing import run_catching_up, run_cost, run_deaths, run_readable

Check = Callable[[Path, Callable[[str], None]], list[str]]


def checks(plan: StormPlan) -> dict[str, Check]:
    """All checks by name, in order."""
    return {
        "readable": run_readable,
        "deaths": run_deaths,
        "catching-up": run_catching_up,
        "cost": run_cost,
        "lost-end": run_lost_end,
        "lost-stream": run_lost_stream,
        "foreign-message": run_foreign_message,
        "large-commit": run_large_commit,
        "bootstrap": run_bootstrap,
        "clocks": run_clocks,
        "mutations": run_mutations,
        "storm": partial(_storm, plan),
    }


def _storm(plan: StormPlan, folder: Path, say: Callable[[str], None]) -> list[str]:
    return run_storm(folder, plan, say)


def main() -> int:
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("check", nargs="*", help="names of checks; all by default")
    reader.add_argument("--kills", type=int, default=200)
    reader.add_argument("--cuts", type=int, default=50)
    reader.add_argument("--seed", type=int, default=0)
    reader.add_argument("--folder", type=Path, help="folder of the stores, which is kept")
    given = reader.parse_args()
    known = checks(StormPlan(given.kills, given.cuts, given.seed))
    unknown = set(given.check) - known.keys()
    if unknown:
        reader.error(f"no such check: {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    failed = 0
    for name in given.check or known:
        failed += _run(name, known[name], given.folder)
    click.echo(f"== {failed} checks failed" if failed else "== all passed")
    return 1 if failed else 0


def _run(name: str, check: Check, kept: Path | None) -> int:
    click.echo(f"== {name}")
    began = time.monotonic()

    def say(text: str) -> None:
        click.echo(f"   {time.monotonic() - began:6.1f} s  {text}")

    with tempfile.TemporaryDirectory(prefix="foreblock-replicas-") as folder:
        wrong = check(kept / name if kept else Path(folder), say)
    for each in wrong:
        click.echo(f"   WRONG: {each}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
