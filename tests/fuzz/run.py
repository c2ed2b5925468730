"""Run each fuzz target for a share of the given minutes, and report findings.

`make check NAME=fuzz` runs it. A target continues from the inputs of earlier runs, which are kept
below `target/fuzz/corpus`; useful inputs are copied into `fuzz/corpus` by hand.
"""

import argparse
import os
import re
import subprocess
import sys
import time
from pathlib import Path

from fuzz import building

TESTS = building.ROOT / "tests"
PROGRAMS = ("commits", "decoders", "readers", "rows", "store")
GUIDED = ("fast_path", "requests", "websocket")  # by atheris
TARGETS = (*PROGRAMS, *GUIDED)
SHOWN_EVERY = 10  # seconds

# An input may be slow on a busy machine; after this time it counts as endless.
LIBFUZZER = ("-timeout=60", "-rss_limit_mb=2048", "-print_final_stats=1")
STATE = re.compile(r"#(\d+)\s.*?cov: (\d+) ft: (\d+) corp: (\d+)")
WRITTEN = re.compile(r"Test unit written to (.+)")
COLUMNS = "{:<10} {:>7} {:>12} {:>9} {:>9} {:>7}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=1, help="for all targets together")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)}")
    options = parser.parse_args()
    targets = options.targets or list(TARGETS)
    if unknown := set(targets) - set(TARGETS):
        parser.error(f"unknown target {', '.join(sorted(unknown))}")
    say("building, which takes minutes the first time")
    try:
        commands = built(targets)
    except building.Missing as missing:
        sys.exit(str(missing))
    except subprocess.CalledProcessError as failed:
        sys.exit(f"the targets cannot be built: {failed}")
    say(COLUMNS.format("target", "seconds", "runs", "branches", "features", "inputs"))
    seconds = options.minutes * 60 / len(targets)
    found = [target for target in targets if not run(target, commands[target], seconds)]
    if found:
        sys.exit(f"found: {', '.join(found)}")
    say("nothing was found")


def built(targets: list[str]) -> dict[str, list[str]]:
    """The command of each target, once all of them are built."""
    wanted = [name for name in targets if name in PROGRAMS]
    programs = building.programs(wanted) if wanted else {}
    commands = {name: [str(path)] for name, path in programs.items()}
    guided = [name for name in targets if name in GUIDED]
    if guided:
        building.atheris()
        script, engine = str(TESTS / "fuzz" / "guided.py"), str(building.engine())
        commands |= {name: [sys.executable, script, name, engine] for name in guided}
    return commands


def run(target: str, command: list[str], seconds: float) -> bool:
    """Run a target for this long; return whether it found nothing."""
    learned = building.MADE / "corpus" / target
    artifacts = building.FUZZ / "artifacts" / target
    for folder in (learned, artifacts):
        folder.mkdir(parents=True, exist_ok=True)
    log = building.MADE / f"{target}.log"
    arguments = [
        *LIBFUZZER,
        f"-max_total_time={max(1, round(seconds))}",
        f"-artifact_prefix={artifacts}{os.sep}",
        str(learned),
        str(building.FUZZ / "corpus" / target),
    ]
    path = os.pathsep.join([str(TESTS), str(building.ATHERIS), os.environ.get("PYTHONPATH", "")])
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*command, *arguments], stdout=out, stderr=out, env=os.environ | {"PYTHONPATH": path}
        )
        watch(target, process, log)
    if process.returncode:
        explain(target, command, log)
    return not process.returncode


def watch(target: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Print the progress, every few seconds and at the end."""
    begun = time.monotonic()
    while True:
        try:
            process.wait(SHOWN_EVERY)
        except subprocess.TimeoutExpired:
            show(target, time.monotonic() - begun, log)
        else:
            show(target, time.monotonic() - begun, log)
            return


def show(target: str, seconds: float, log: Path) -> None:
    states = STATE.findall(log.read_text(errors="replace"))
    figures = [f"{int(figure):,}" for figure in states[-1]] if states else ["-"] * 4
    say(COLUMNS.format(target, f"{seconds:.0f}", *figures))


def explain(target: str, command: list[str], log: Path) -> None:
    """The finding, its input, and the command to reproduce it."""
    text = log.read_text(errors="replace")
    inputs = WRITTEN.findall(text)
    say(f"{target}: a promise is broken, or the program failed; its output is in {log}")
    for line in text.splitlines():
        if "panicked at" in line or "AssertionError" in line or "ERROR: libFuzzer" in line:
            say(f"  {line[:1000]}")
    if inputs:
        say(f"  input: {inputs[-1]}")
        say(f"  again: {' '.join(command)} {inputs[-1]}")


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
