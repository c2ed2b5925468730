"""Compare `foreblock.DevChain` with the other chains that Python tests use.

    bench/peers.sh
    .venv/bin/python bench/python_chains.py

eth-tester with py-evm, anvil over HTTP, titanoboa and pyrevm do the same work, each in a process of
its own; `chain_work.py` has it. A chain that is not installed is named below the table.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import msgspec
from rich.console import Console
from rich.table import Table

import foreblock
from foreblock.bench.measure import describe
from foreblock.bench.rpc.peers import find

HERE: Final = Path(__file__).resolve().parent
PEERS: Final = HERE.parent / "build" / "peers"
WORK: Final = HERE / "chain_work.py"
CHAINS: Final = ("foreblock", "eth-tester on foreblock", "eth-tester", "anvil", "titanoboa",
                 "pyrevm")  # fmt: skip
# What is measured, and the most milliseconds that it may take on a DevChain.
MEASURES: Final[Mapping[str, float | None]] = {
    "import": 300,
    "first chain": None,
    "another chain": 20,
    "transfer, receipt, balance": 1.5,
    "the same by web3.py": 12,
    "snapshot, revert": 1,
    "snapshot, transfer, revert": None,
    "call of 10,000 rounds": None,
    "tests with a fresh chain": 10_000,
}
NONE: Final = "-"
NO_BYTECODE: Final = "PYTHONDONTWRITEBYTECODE"  # would make imports slow
IMPORTED: Final = "import time; b = time.perf_counter(); {}; print(1e3 * (time.perf_counter() - b))"


class Peers:
    """An interpreter that may have the other chains, and the program anvil."""

    def __init__(self, python: Path, folder: Path) -> None:
        self.python: Final = python
        self.folder: Final = folder

    @cached_property
    def _environment(self) -> dict[str, str]:
        anvil = find("anvil", self.folder)
        there = {name: each for name, each in os.environ.items() if name != NO_BYTECODE}
        return {**there, "ANVIL": str(anvil or ""), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}

    def run(self, chain: str, *arguments: str, **variables: str) -> str:
        """The output of this interpreter; foreblock and what it needs are those of this one."""
        there = self._environment | variables
        if "foreblock" in chain:
            ours = [str(Path(each.__file__ or "").parents[1]) for each in (foreblock, msgspec)]
            there["PYTHONPATH"] = os.pathsep.join(ours)
        done = subprocess.run(
            [str(self.python), *arguments], env=there, capture_output=True, text=True, check=False
        )
        if done.returncode:
            sys.exit(f"{chain}: {done.stderr or done.stdout}")
        return done.stdout


def measured(peers: Peers, chain: str, seconds: float, tests: int) -> dict[str, Any]:
    """The times of a chain in milliseconds, or what is `missing`."""
    found: dict[str, Any] = json.loads(peers.run(chain, str(WORK), chain, str(seconds)))
    if "missing" in found:
        return found
    times = found["times"]
    if found["statement"]:
        statement = IMPORTED.format(found["statement"])
        times["import"] = [float(peers.run(chain, "-c", statement)) for _ in range(3)]
    plugin = ["-p", "foreblock.pytest_plugin"] if chain == "foreblock" else []
    alone = ["-q", "-c", os.devnull, f"--rootdir={HERE}", "-p", "no:cacheprovider"]
    begun = time.perf_counter()
    peers.run(chain, "-m", "pytest", *alone, *plugin, str(WORK), CHAIN=chain, TESTS=str(tests))
    times["tests with a fresh chain"] = [1e3 * (time.perf_counter() - begun)]
    return found


def table(found: Mapping[str, dict[str, Any]], tests: int) -> Table:
    """The medians, with the least in brackets."""
    title = "milliseconds, median (least)"
    made = Table("", *found, "most for DevChain", title=title, box=None, pad_edge=False)
    for name, most in MEASURES.items():
        label = f"{tests:,} {name}" if name.startswith("tests") else name
        cells = [_cell(each["times"].get(name)) for each in found.values()]
        made.add_row(label, *cells, _verdict(found["foreblock"]["times"].get(name), most))
    return made


def _cell(times: list[float] | None) -> str:
    if not times:
        return NONE
    least = f" ({_number(min(times))})" if len(times) > 1 else ""
    return _number(statistics.median(times)) + least


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _verdict(times: list[float] | None, most: float | None) -> str:
    if most is None or not times:
        return ""
    return f"{most:,g}: {'met' if statistics.median(times) <= most else 'missed'}"


def main() -> None:
    """Print the machine, the table, versions and what is missing."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--peers", type=Path, default=PEERS, help="folder of peers.sh")
    parser.add_argument("--python", type=Path, help="interpreter with the other chains")
    parser.add_argument("--seconds", type=float, default=2, help="time for each figure")
    parser.add_argument("--tests", type=int, default=1_000, help="tests with a fresh chain")
    given = parser.parse_args()
    installed = given.peers / "python" / "bin" / "python"
    python = given.python or (installed if installed.exists() else Path(sys.executable))
    machine = describe(HERE)
    peers = Peers(python.absolute(), given.peers)
    done = {each: measured(peers, each, given.seconds, given.tests) for each in CHAINS}
    found = {each: result for each, result in done.items() if "missing" not in result}
    console = Console(width=170)
    for name, value in machine.items():
        console.print(f"{name:<10} {value}", highlight=False)
    console.print(table(found, given.tests))
    for name, result in done.items():
        missing = result.get("missing") or result["without"]
        if missing:
            console.print(f"{name}: {missing} is not installed", highlight=False)
    versions = (f"{name} {each['version']}" for name, each in found.items())
    console.print(", ".join(versions), highlight=False)


if __name__ == "__main__":
    main()
