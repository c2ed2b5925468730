"""The checks of following a chain, by name.

    python tests/follow/run.py equality --minutes 10
    python tests/follow/run.py lies weather --minutes 1 --tps 50 --anchor 5
    python tests/follow/run.py equality --stand-in --minutes 0.2 --anchor 5

Exits with 0 if all requirements hold, with 1 if one fails, and with 2 if a check cannot run here.
`--stand-in` tries the rigs on a full follower of the feed. The specification's numbers are required
from ten minutes on.
"""

import argparse
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import click
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from follow import (
    check_calls,
    check_chains,
    check_economy,
    check_kills,
    check_live,
    check_outages,
    check_trust,
    check_weather,
)
from follow.check_options import CheckOptions, Outcome
from follow.follower import CannotRun
from follow.witness_files import CHECKOUT
from support.run_faster import keep_bytecode


class Check(NamedTuple):
    """One of the fifteen checks."""

    number: int
    must: str
    run: Callable[[CheckOptions], Outcome]


CHECKS = {
    "equality": Check(1, "0 differences in 200,000 responses, none missing", check_live.equality),
    "freshness": Check(2, "median 150 ms, 99 % 500 ms after the feed", check_live.freshness),
    "round-trips": Check(3, "3, 4, 4 and 6, the second time 0", check_calls.round_trips),
    "economy": Check(4, "2 requests per flashblock, 99 % 6, within budget", check_economy.economy),
    "lies": Check(5, "0 wrong responses for every kind of damage", check_weather.lies),
    "audit": Check(6, "false state is dropped within 10 s", check_trust.audit),
    "weather": Check(7, "well again one block and 2 s after it", check_weather.weather),
    "silence": Check(8, "60 s: warm reads continue, cold ones fail in time", check_outages.silence),
    "lacking": Check(9, "endpoints without this or that are followed", check_weather.lacking),
    "reorgs": Check(10, "above the anchor as now, below it a new epoch", check_outages.reorgs),
    "kills": Check(11, "nothing learned is lost, warm after 3 s", check_kills.kills),
    "real-blocks": Check(12, "published hashes, roots computed", check_chains.real),
    "published": Check(13, "every case behind geth", check_chains.published),
    "abuse": Check(14, "64 clients of random accounts do not affect others", check_chains.abuse),
    "speed": Check(15, "whole stores within 3 %", check_chains.speed),
}
HOLDS, FAILS, CANNOT = 0, 1, 2


def run(name: str, options: CheckOptions) -> int:
    """Run one check and print its results; return its exit code."""
    check, begun = CHECKS[name], time.monotonic()
    click.echo(f"check {check.number}, {name}: {check.must}")
    try:
        outcome = check.run(options)
    except (CannotRun, pytest.skip.Exception) as why:
        click.echo(str(why))
        return CANNOT
    for line in outcome.lines:
        click.echo(f"  {line}")
    seconds = time.monotonic() - begun
    click.echo(f"{name}: {'FAILS' if outcome.complaints else 'holds'} after {seconds:.0f} s")
    return FAILS if outcome.complaints else HOLDS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("checks", nargs="+", choices=[*CHECKS, "all"], metavar="CHECK")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--tps", type=float, default=200, help="transactions a second")
    parser.add_argument("--clients", type=int, default=4, help="client threads")
    parser.add_argument("--rate", type=float, default=20, help="batches a second of each")
    parser.add_argument("--delay", type=float, default=0.05, help="seconds to the upstream")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--anchor", type=int, default=50, help="block to begin at")
    parser.add_argument("--units", type=int, default=200_000, help="budget of a second")
    parser.add_argument("--stand-in", action="store_true", help="try it on a full follower")
    parser.add_argument("--at-any-speed", action="store_true", help="do not judge times")
    parser.add_argument("--before", type=Path, help="another checkout's foreblock")
    told = vars(parser.parse_args())
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(FAILS))  # child processes end with it
    keep_bytecode(CHECKOUT / ".pytest_cache" / "bytecode")  # as in an installation
    names = told.pop("checks")
    options = CheckOptions(**told)
    codes = [run(name, options) for name in (CHECKS if "all" in names else names)]
    sys.exit(FAILS if FAILS in codes else max(codes))


if __name__ == "__main__":
    main()
