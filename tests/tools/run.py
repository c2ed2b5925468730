"""Run everyday flows of tools against foreblock and against anvil, and compare.

    make tools
    PYTHONPATH=tests python tests/tools/run.py --only viem --target like-anvil --verbose

Prints a table of passes and times. Exits with 1 if a step passes on anvil and not here, and
`exceptions.py` has no reason for it; or if packages of a flow could not be installed.
"""

import argparse
import signal
import sys
from contextlib import ExitStack
from pathlib import Path

from tools.environments import install
from tools.exceptions import EXEMPTIONS
from tools.flows import FLOWS, Flow
from tools.outcome import Outcome, play
from tools.report import exceptions, excuse, regressions, table, write
from tools.targets import CHECKOUT, NAMES, TARGETS, NotInstalled, Target, running

PAGE = CHECKOUT / "docs" / "clients.md"


def say(line: str = "") -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def choose(only: list[str], flows: list[str]) -> list[Flow]:
    """The flows of some families, or with some names."""
    return [
        each
        for each in FLOWS
        if (not only or each.family in only) and (not flows or each.name in flows)
    ]


def prepared(flows: list[Flow]) -> tuple[list[Flow], dict[str, str]]:
    """The flows with installed packages, and the reasons for missing ones."""
    missing: dict[str, str] = {}
    for need in dict.fromkeys(need for flow in flows for need in flow.needs):
        try:
            install(need)
        except NotInstalled as error:
            missing[need] = str(error)
    return [each for each in flows if not missing.keys() & set(each.needs)], missing


def tried(flow: Flow, target: Target, *, verbose: bool) -> Outcome:
    """Run a flow on a new chain; print and return the outcome."""
    with ExitStack() as chains:
        upstream = chains.enter_context(running(target)) if flow.is_forked else None
        outcome, output = play(flow, chains.enter_context(running(target, upstream)))
    if verbose:
        say(output)
    say(
        f"{flow.family:10} {flow.name:22} {target.name:11} {len(outcome.passed):3} passed"
        f" {outcome.seconds:6.1f} s"
    )
    for step, reason in outcome.failed.items():
        say(f"    {step}: {reason}")
    return outcome


def judged(results: dict[tuple[Flow, str], Outcome]) -> int:
    """Print steps that are worse than on anvil; return the number of those without an exemption."""
    bad, used = 0, set()
    for target, flow, step, reason in regressions(results):
        if row := excuse(target, flow, step):
            used.add(row)
        else:
            bad += 1
            say(f"FAILED {target}: {flow.family}, {flow.name}, {step}: {reason}")
    seen = {(target, flow.family, flow.name) for flow, target in results}
    for row in set(EXEMPTIONS) - used:
        if any(row.covers(*each, row.step) for each in seen):
            say(f"unused exemption: {row}")
    return bad


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", action="append", default=[], help="a family")
    parser.add_argument("--flow", action="append", default=[], help="a flow by its name")
    parser.add_argument("--target", action="append", choices=NAMES, help="a target chain")
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.name}")
    parser.add_argument("--verbose", action="store_true", help="show the output of programs")
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # chains end with it
    flows, missing = prepared(choose(chosen.only, chosen.flow))
    targets = [each for each in TARGETS if each.name in (chosen.target or NAMES)]
    results = {
        (flow, target.name): tried(flow, target, verbose=chosen.verbose)
        for flow in flows
        for target in targets
    }
    shown = f"{table(results, [each.name for each in targets])}\n\n{exceptions(results)}"
    say(f"\n{shown}\n")
    if chosen.write:
        write(Path(PAGE), shown)
    bad = judged(results)
    for need, why in missing.items():
        say(f"NOT RUN: flows that need tests/tools/{need}: {why}")
    sys.exit(1 if bad or missing else 0)


if __name__ == "__main__":
    main()
