"""Inject faults for minutes, follow a chain under them, and judge every response.

    make check NAME=fault-injection MINUTES=1
    python tests/weather/run.py --minutes 0.2 --only drop --only together

Each fault switch alone at a high rate, then all together, also with a writer that is killed
repeatedly, then without a canonical source, and one network beside a poisoned one: `foreblock dev
--faults …` runs the chain, `foreblock serve --source feed` with two workers follows it, and clients
send requests to the follower. The truth is read from the store of the chain. Exits with 1 if a
response contradicts it, a request fails, or the recovery takes too long; the journal is then kept.
"""

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

import click

from checker.table import table
from weather import beside
from weather.faults import (
    BOUNDS,
    HARMLESS,
    RATES,
    RESTARTED,
    THROUGH_CANONICAL,
    TOGETHER,
    WITHOUT_CANONICAL,
)
from weather.phase import Outcome, Phase, counted, fetched, run

KILLS = 8
WITHOUT_RESTART = {kind: rate for kind, rate in HARMLESS.items() if kind != "restart"}
PHASES = (
    *(Phase(kind, {kind: rate}, BOUNDS[kind]) for kind, rate in RATES.items()),
    Phase("together", TOGETHER, THROUGH_CANONICAL),
    Phase("killed", TOGETHER, RESTARTED, kills=KILLS),
    # A follower without a canonical source must receive the first block whole, which is long enough
    # for that. It is replayed to late clients, unless it was restarted.
    Phase("alone", WITHOUT_RESTART, WITHOUT_CANONICAL, canonical=False, block_time=10),
    Phase("frozen", {"drop": 0.03}, None, canonical=False, block_time=10),
)
POISONED = "poisoned"
CHOICES = [*(each.name for each in PHASES), POISONED]
COLUMNS = "{:>10} {:>8} {:>7} {:>7} {:>8} {:>8} {:>8} {:>8} {:>8} {:>7} {:>9}"
NAMES = (
    "faults", "seconds", "applied", "made", "answers", "median", "99 %", "worst", "allowed",
    "unready", "fetched",
)  # fmt: skip


def row(outcome: Outcome, seconds: float) -> str:
    """A table row; times in seconds."""
    late, phase = outcome.late, outcome.phase
    return COLUMNS.format(
        phase.name,
        f"{seconds:.0f}",
        counted(outcome.said, "Applied"),
        outcome.verdict.flashblocks,
        outcome.verdict.judged.total(),
        f"{late.share(0.5) / 1e9:.3f}",
        f"{late.share(0.99) / 1e9:.3f}",
        f"{late.worst_ns / 1e9:.3f}",
        f"{phase.allowed_ns / 1e9:.2f}" if phase.bound else "-",
        f"{outcome.unready:.0%}",
        fetched(outcome.said),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Follow a chain under injected faults.")
    parser.add_argument("--minutes", type=float, default=1, help="of each kind of fault")
    parser.add_argument("--seed", type=int, default=0, help="of the random faults")
    parser.add_argument("--tps", type=float, default=50, help="transactions a second")
    parser.add_argument("--clients", type=int, default=2, help="client processes")
    parser.add_argument("--rate", type=float, default=10, help="batches a second of each")
    parser.add_argument("--only", action="append", choices=CHOICES)
    parser.add_argument("--at-any-speed", action="store_true", help="do not check delays")
    parser.add_argument("--folder", type=Path, help="folder of stores and journals")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="foreblock-weather-", dir=options.folder))
    is_good = True
    click.echo(COLUMNS.format(*NAMES))
    for phase in PHASES:
        if options.only and phase.name not in options.only:
            continue
        begun = time.monotonic()
        outcome = run(phase, folder / phase.name, options)
        click.echo(row(outcome, time.monotonic() - begun))
        complaints = outcome.complaints(at_any_speed=options.at_any_speed)
        for each in complaints:
            click.echo(f"wrong: {phase.name}: {each}")
        if complaints:
            is_good = False
            click.echo("\n".join([*table(outcome.verdict), outcome.said]))
            click.echo(f"the journal is in {folder / phase.name}")
        else:
            shutil.rmtree(folder / phase.name)
    if not options.only or POISONED in options.only:
        click.echo("one network beside another whose feeds are poison:")
        is_good = beside.run(folder / POISONED, options.minutes * 60) and is_good
    if is_good:
        shutil.rmtree(folder)
    sys.exit(0 if is_good else 1)


if __name__ == "__main__":
    main()
