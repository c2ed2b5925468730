"""Run the heavy suites: each attacks a guarantee for longer than `make test` can.

    make check                          lists them
    make check NAME=crash COUNT=50      runs one; ARGS="…" goes to its program
    make checks MINUTES=1               runs all of them and writes docs/checked.md

A suite fails if one of its commands exits with a code other than 0. A suite may have a code for
"cannot run on this machine", which the table shows; make and pytest use the same numbers otherwise.
"""

import argparse
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

CHECKOUT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = CHECKOUT / "docs" / "checked.md"
PYTHON: Final = str(CHECKOUT / ".venv" / "bin" / "python")
ENGINE_TESTS: Final = ["cargo", "test", "--locked", "--package", "foreblock-engine", "--lib"]
CELLS: Final = 7  # of a row, with the empty ones at both ends
HEAD: Final = """# Checked guarantees

`make checks` runs every heavy suite and writes this table; `make check NAME=…` runs one suite.
A count or a time says how large the run was.

| Suite | Guarantee | Attack | Result | Commit |
|---|---|---|---|---|
"""


@dataclass(frozen=True)
class Command:
    words: Sequence[str]
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Amount:
    """The size of a run; a suite uses either minutes or a count."""

    minutes: float
    count: int


@dataclass(frozen=True)
class Check:
    guarantee: str
    attack: str
    commands: Callable[[Amount], list[Command]]
    count: int = 0  # the default, if the suite counts
    short: int = 0  # the count of `make checks`
    cannot_run: int | None = None  # the exit code of a suite that cannot run on this machine


def say(*words: str) -> None:
    sys.stdout.write(" ".join(words) + "\n")
    sys.stdout.flush()


def program(path: str, *options: object) -> Command:
    return Command([PYTHON, f"tests/{path}", *map(str, options)], {"PYTHONPATH": "tests"})


def pytest(*words: str, **environment: object) -> Command:
    on_disk = {"TMPDIR": os.environ.get("TMPDIR") or "/tmp"}  # noqa: S108
    values = {name: str(value) for name, value in environment.items()}
    return Command([PYTHON, "-m", "pytest", "-q", *words], on_disk | values)


def _crash(amount: Amount) -> list[Command]:
    kills = amount.count
    return [
        Command([*ENGINE_TESTS, "store::tests"], {"FOREBLOCK_CASES": str(kills * 50)}),
        pytest(
            "tests/crash",
            "tests/sequencer/dev/test_everything.py",
            FOREBLOCK_DEV_KILLS=kills,
            FOREBLOCK_BLOCK_KILLS=kills,
            FOREBLOCK_INDEX_KILLS=max(kills // 4, 4),
            FOREBLOCK_SOAK=kills,
            FOREBLOCK_FOLLOWER_KILLS=max(kills // 4, 1),
            FOREBLOCK_DEV_EXAMPLES=kills,
            FOREBLOCK_DEV_STEPS=kills * 4,
        ),
    ]


def _fault_injection(amount: Amount) -> list[Command]:
    reorgs = ("tests/ledger/following/test_deep_reorgs.py", "tests/sources/test_deep_reorg.py")
    return [
        pytest(*reorgs, FOREBLOCK_REORG=500),
        program("weather/run.py", "--minutes", amount.minutes),
    ]


CHECKS: Final[dict[str, Check]] = {
    "thorough": Check(
        "every property test holds for random examples",
        "400 random examples per property, 600 histories of a store, and the tests marked heavy",
        lambda _: [
            Command(ENGINE_TESTS),
            pytest(
                "tests",
                "--hypothesis-profile=thorough",
                "-m",
                "",
                "--numprocesses=auto",
                "--dist=loadfile",
                "--ignore=tests/clients",
            ),
        ],
    ),
    "busy": Check(
        "tests do not depend on the speed of the machine",
        "repeat all tests while other processes load every core, and once on one core",
        lambda amount: [program("busy/run.py", "--runs", amount.count)],
        count=20,
        short=1,
    ),
    "consistency": Check(
        "every response matches the snapshot that it names",
        "500 transactions per second, two workers, four client processes; an independent checker "
        "judges each response",
        lambda amount: [program("checker/run.py", "--seconds", amount.minutes * 60)],
    ),
    "abuse": Check(
        "one client cannot degrade the others, and memory is bounded",
        "slow and silent clients, 10,000 idle connections, floods, endless calls, 100,000 fuzzed "
        "requests",
        lambda amount: [program("abuse/run.py", "--race", amount.minutes * 60)],
    ),
    "keys": Check(
        "a key that sends 10,000 requests a second at most doubles the times of another, or "
        "adds half to what the same load on another service costs it",
        "a paced load over 100 connections, nine of ten requests over its budget, beside a client "
        "of another key",
        lambda _: [program("abuse/keys.py")],
    ),
    "crash": Check(
        "a committed block survives any kill, and readers see whole commits only",
        "random store histories beside a model; kill writers and followers at random moments",
        _crash,
        count=200,
        short=10,
    ),
    "disk": Check(
        "a network recovers within 6 s after its disk does",
        "the disk fails at each of COUNT system calls, is full, is read-only, cuts writes short",
        lambda amount: [
            pytest("tests/faults", FOREBLOCK_FAULTS=amount.count),
            program("faults/run.py", "--calls", amount.count),
        ],
        count=200,
        short=10,
    ),
    "fault-injection": Check(
        "a follower of a feed never contradicts the chain",
        "each fault of a feed alone, all together, a killed writer, no canonical source, a "
        "poisoned network, a reorg of 500 blocks",
        _fault_injection,
    ),
    "follow": Check(
        "a follower over RPC returns proven values or an error",
        "fifteen checks: false data, silence, rate limits, reorgs, kills, abuse",
        lambda amount: [program("follow/run.py", "--minutes", amount.minutes, "all")],
        cannot_run=2,
    ),
    "replicas": Check(
        "all nodes of a log hold the same bytes, and a client never goes backwards",
        "kill and partition nodes and NATS servers; truncate the log; insert foreign messages",
        lambda amount: [
            program("replicas/run.py", "--kills", amount.count, "--cuts", max(amount.count // 4, 1))
        ],
        count=200,
        short=20,
    ),
    "fuzz": Check(
        "no input breaks a decoder, a request reader or the store",
        "coverage-guided fuzzing of eight targets",
        lambda amount: [program("fuzz/run.py", "--minutes", amount.minutes)],
    ),
    "soak": Check(
        "memory and store size are bounded",
        "a dev chain runs for COUNT blocks, faster than real time",
        lambda amount: [program("soak/run.py", "--blocks", amount.count)],
        count=1800,
        short=300,
    ),
    "page": Check(
        "an open page and a scraping Prometheus cost little and miss nothing",
        "chromium beside two loaded chains; Prometheus while processes are killed",
        lambda amount: [
            program("page/pictures.py", "build/pictures"),
            program("soak/page.py", "--minutes", amount.minutes),
            program("soak/scraped.py", "--minutes", amount.minutes),
        ],
    ),
    "clients": Check(
        "client libraries work",
        "viem, ethers, web3.js, web3.py, ethclient, cast, forge and ponder",
        lambda _: [Command(["make", "clients"])],
    ),
    "tools": Check(
        "what passes on anvil passes here",
        "everyday flows of 15 tools on dev chains and on anvil",
        lambda _: [Command(["make", "tools"])],
    ),
    "mirror": Check(
        "a mirror has the real state, loses no local transaction, and is soon where the chain is",
        "200 transactions a second on the chain, 20 on the mirror, which is killed in the middle",
        lambda amount: [program("measures/mirrors.py", "--minutes", amount.minutes)],
    ),
    "dev-times": Check(
        "a dev chain is not slower than anvil",
        "the same requests on both, in turn; single commands may take twice as long",
        lambda _: [program("measures/dev_times.py", "--transactions", 1000, "--blocks", 720)],
    ),
    "logs": Check(
        "log searches and their index are cheap",
        "eth_getLogs over a million blocks, beside geth and anvil; the index per commit",
        lambda _: [program("measures/index_commits.py"), program("measures/logs.py")],
    ),
    "subscribers": Check(
        "a thousand subscribers delay pending by less than 20 ms",
        "1,000 active and 10,000 idle subscribers at 500 transactions per second",
        lambda _: [program("abuse/subscribers.py")],
    ),
}


def run(check: Check, amount: Amount, extra: Sequence[str] = ()) -> int:
    """Run the commands of a suite until one fails; return its exit code."""
    *first, last = check.commands(amount)
    for command in [*first, Command([*last.words, *extra], last.environment)]:
        say("$", shlex.join(command.words))
        environment = os.environ | command.environment
        code = subprocess.run(command.words, cwd=CHECKOUT, env=environment, check=False).returncode
        if code:
            return code
    return 0


def outcome(check: Check, code: int, seconds: float, size: str) -> str:
    if code == 0:
        word = "held"
    elif code == check.cannot_run:
        word = "cannot run here"
    else:
        word = f"**failed** (exit code {code})"
    return f"{word}; {size}, {seconds / 60:.1f} min in all"


def recorded(text: str) -> dict[str, tuple[str, str]]:
    """Return the result and the commit of each suite on the page."""
    rows = [[cell.strip() for cell in line.split("|")] for line in text.splitlines()]
    named = {f"`{name}`" for name in CHECKS}
    return {
        row[1].strip("`"): (row[4], row[5]) for row in rows if len(row) == CELLS and row[1] in named
    }


def page(results: Mapping[str, tuple[str, str]]) -> str:
    rows = [
        f"| `{name}` | {check.guarantee} | {check.attack} | {' | '.join(results[name])} |"
        for name, check in CHECKS.items()
    ]
    return HEAD + "\n".join(rows) + "\n"


def run_all(minutes: float, only: Sequence[str]) -> bool:
    """Run suites in order; update the page after each, so that an interrupted run has results."""
    words = ["git", "show", "--no-patch", "--format=`%h`, %cs", "HEAD"]
    commit = subprocess.run(words, cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout
    failed = []
    for name in only or CHECKS:
        check = CHECKS[name]
        say(f"\n== {name}: {check.guarantee}")
        began = time.monotonic()
        code = run(check, Amount(minutes, check.short))
        size = f"{check.short} times" if check.short else f"{minutes:g} min"
        result = outcome(check, code, time.monotonic() - began, size)
        say(f"{name}: {result}")
        failed += [name] if code not in {0, check.cannot_run} else []
        before = recorded(PAGE.read_text("utf-8")) if PAGE.exists() else {}
        results = (
            dict.fromkeys(CHECKS, ("not run", "-")) | before | {name: (result, commit.strip())}
        )
        PAGE.write_text(page(results), "utf-8")
    say(PAGE.read_text("utf-8"))
    return not failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("name", nargs="?", choices=CHECKS, help="the suite to run")
    parser.add_argument("--all", action="store_true", help="run every suite, write docs/checked.md")
    parser.add_argument("--only", action="append", choices=CHECKS, help="with --all: these suites")
    parser.add_argument("--minutes", type=float, default=1.0, help="of suites that take time")
    parser.add_argument("--count", type=int, help="of suites that count; each has a default")
    parser.add_argument("--args", default="", help="more arguments for the suite's program")
    options = parser.parse_args()
    if options.all:
        return 0 if run_all(options.minutes, options.only or ()) else 1
    if options.name is None:
        for name, check in CHECKS.items():
            say(f"{name:16} {check.guarantee}: {check.attack}")
        return 0
    check = CHECKS[options.name]
    amount = Amount(options.minutes, options.count or check.count)
    return run(check, amount, shlex.split(options.args))


if __name__ == "__main__":
    sys.exit(main())
