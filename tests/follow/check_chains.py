"""Checks 12 to 15: real blocks, the published chain behind geth, abuse, and full stores."""

import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from follow.batch_client import BatchClient
from follow.check_live import judged
from follow.check_options import CheckOptions, Outcome, Scene, scene
from follow.follower import CannotRun, FollowerPlan, follower
from follow.freshness import Freshness, share
from follow.upstreams import ask, geth_upstream
from follow.witness_files import CHECKOUT, real_blocks, witnesses
from follow.witness_upstream import witness_upstream
from support.servers.dev_processes import Network, RpcError, package_environment
from support.servers.waiting import until

ABUSERS = 64
# Per second: less than the abusers would spend. The share reserved for flashblocks is twice their
# need at 200 transactions a second, so none may wait.
ABUSED_UNITS = 4_000
SPENT = -32005
ANCHOR = 20  # block of the published chain
NO_STAND_IN = "a stand-in learns no state from an upstream"
CORE = ("eth_getBlockByNumber", "eth_call", "eth_simulateV1", "eth_getBalance")


def real(options: CheckOptions) -> Outcome:
    """Check 12: real blocks end in their published hashes, from an empty store."""
    outcome, folder = Outcome(), real_blocks()
    files = [str(each) for each in sorted(folder.glob("*.json.gz"))]
    command = [sys.executable, "-m", "foreblock", "execute", *files]
    done = subprocess.run(command, env=package_environment(), check=False)
    outcome.must(done.returncode == 0, f"foreblock execute runs {len(files)} blocks")
    if options.stand_in:
        raise CannotRun(NO_STAND_IN)
    known = witnesses(folder)
    targets = sorted(int(known.headers[each]["number"], 16) for each in known.bodies)
    for first in (each for each in targets if each - 1 not in targets):
        with tempfile.TemporaryDirectory() as name, witness_upstream(folder, first - 1) as url:
            anchor = "0x" + known.numbers[first - 1].hex()
            plan = FollowerPlan(
                "op-sepolia", url, "", Path(name) / "store", anchor,
                options=(
                    "--sealed=computed", "--beyond=refuse", f"--upstream-units={options.units}",
                ),
            )  # fmt: skip
            with follower(plan, is_ready=False) as found:  # its blocks are old
                number = first
                while number in targets:
                    ask(url, "witness_setHead", number)
                    wanted = "0x" + known.numbers[number].hex()
                    until(
                        lambda wanted=wanted: _latest(found.network) == wanted,  # type: ignore[misc]
                        f"block {number} is there",
                    )
                    outcome.must(True, f"block {number} is {wanted}")
                    number += 1
                _judge_roots(outcome, found.network, first - 1, number - first)
    return outcome


def _judge_roots(outcome: Outcome, network: Network, anchor: int, count: int) -> None:
    """Check that all blocks since the anchor were executed here, with computed roots."""
    said = until(lambda: _told(network, f"RootComputed {count}"), "it reports the computed roots")
    outcome.must(f"base: block {anchor}," in said, f"its base is still block {anchor}")
    outcome.must("anchored again" not in said, "it kept its base")
    outcome.must("SealedByName" not in said, f"{count} state roots were computed here")


def _told(network: Network, words: str) -> str:
    """Return the text of /readyz, once it contains this part."""
    _, said = network.probe("/readyz?verbose")
    return said if words in said else ""


def _latest(network: Network) -> str:
    """The hash of the latest block; empty if only its header is known."""
    try:
        return str(network.ask("eth_getBlockByNumber", "latest", False)["hash"])
    except RpcError:
        return ""


def published(options: CheckOptions) -> Outcome:
    """Check 13: the published cases on a store that began empty, with geth as upstream."""
    outcome = Outcome()
    named = os.environ.get("FOREBLOCK_CONFORMANCE")
    files = Path(named) if named else CHECKOUT.parent / "shared" / "conformance"
    if options.stand_in:
        raise CannotRun(NO_STAND_IN)
    with tempfile.TemporaryDirectory() as name, geth_upstream(files, Path(name) / "geth") as url:
        plan = FollowerPlan(
            files / "genesis.json", url, "", Path(name) / "store", hex(ANCHOR),
            options=(
                "--dialect=ethereum", "--lag-blocks=1000", "--beyond=pass", f"--send={url}",
                f"--upstream-units={options.units}",
            ),
        )  # fmt: skip
        with follower(plan, is_ready=False) as found:  # its blocks are old
            head = int(ask(url, "eth_blockNumber"), 16)
            until(lambda: found.network.latest() == head, "it has come along")
            safe = ("eth_getBlockByNumber", "safe", False)
            until(lambda: ask(found.url, *safe) == ask(url, *safe), "it knows the safe block")
            base = f"base: block {ANCHOR},"
            outcome.must(base in found.network.probe("/readyz?verbose")[1], f"it began at {ANCHOR}")
            _judge_cases(outcome, files, found.url, CORE)
            if options.is_whole:
                _judge_cases(outcome, files, found.url, ())
    return outcome


def _judge_cases(outcome: Outcome, files: Path, url: str, methods: Sequence[str]) -> None:
    """Replay published cases: those of some methods must pass, all of them are counted."""
    command = [sys.executable, "-m", "foreblock", "conformance", str(files), f"--url={url}"]
    command += [f"--method={each}" for each in methods]
    done = subprocess.run(
        command, env=package_environment(), check=False, capture_output=True, text=True
    )
    if methods:
        told = [line for line in done.stdout.splitlines() if line.startswith(("failed", "all"))]
        outcome.lines += told
        outcome.must(done.returncode == 0, f"every case of {', '.join(methods)} passes")
    else:
        outcome.lines += done.stdout.splitlines()


def abuse(options: CheckOptions) -> Outcome:
    """Check 14: many clients request random accounts; others are not affected."""
    outcome = Outcome()
    with scene(options, units=ABUSED_UNITS) as found:
        judged(options, found, min(options.minutes * 60 / 4, 60))
        judge_abuse(outcome, options, found, options.minutes * 60 / 2)
        busiest = found.proxy.tell()["busiest"]["units"]
    outcome.must(busiest <= ABUSED_UNITS, f"{busiest} units in the busiest second")
    return outcome


def judge_abuse(
    outcome: Outcome, options: CheckOptions, found: Scene, seconds: float, count: int = ABUSERS
) -> None:
    """Let abusers send requests for this many seconds, and until clients have no units left."""
    address = "0x" + found.load.senders[0].address.hex()
    idle, before = _times(found.follower.url, address), _resident(found.follower.pid)
    _, said = found.follower.network.probe("/readyz?verbose")
    waited = _waited(said)  # while nearly the whole chain was new
    with (
        Freshness(found.upstream.main.feed, found.follower.url) as fresh,
        _abusers(found.follower.url, count) as refused,
    ):
        time.sleep(seconds)
        until(lambda: refused[SPENT], "the units for clients are spent")
        busy = _times(found.follower.url, address)
    after = _resident(found.follower.pid)
    _, said = found.follower.network.probe("/readyz?verbose")
    waited, late = _waited(said) - waited, fresh.lateness()
    outcome.say(f"of the abusers: {dict(refused)} responses by error code, 0 for none")
    outcome.must(not waited, f"flashblocks that waited for units: {waited}")
    outcome.must("anchored again" not in said, "it has kept its base")
    most, usual = share(busy, 0.99), share(idle, 0.99)
    is_soon = most <= 5 * usual or options.at_any_speed
    outcome.must(is_soon, f"99 % of warm reads {most * 1e3:.1f} ms, idle {usual * 1e3:.1f} ms")
    outcome.must(bool(late), "flashblocks were shown")
    outcome.say(f"flashblocks: median {share(late, 0.5) * 1e3:.0f} ms late" if late else "none")
    outcome.must(after < 2 * before, f"memory: {before >> 20} MiB, then {after >> 20} MiB")


@contextmanager
def _abusers(url: str, count: int) -> Iterator[Counter[int]]:
    """Clients that request random accounts; returns their errors by kind."""
    stop, codes = threading.Event(), Counter[int]()
    threads = [
        threading.Thread(target=_ask_for_anybody, args=(url, seed, stop, codes))
        for seed in range(count)
    ]
    for thread in threads:
        thread.start()
    try:
        yield codes
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _waited(said: str) -> int:
    """The number of flashblocks that were delayed because the budget was spent."""
    found = re.search(r"^state: .*UnitsSpent (\d+)", said, re.MULTILINE)
    return int(found[1]) if found else 0


def _times(url: str, address: str) -> list[float]:
    with BatchClient(url) as client:
        asked = [client.ask([("eth_getBalance", [address, "latest"])]) for _ in range(300)]
    return sorted(each.seconds for each in asked)


def _ask_for_anybody(url: str, seed: int, stop: threading.Event, codes: Counter[int]) -> None:
    pick = random.Random(seed)
    with BatchClient(url) as client:
        while not stop.is_set():
            asked = client.ask([("eth_getBalance", ["0x" + pick.randbytes(20).hex(), "latest"])])
            for each in asked.answers or ():
                codes[(each.get("error") or {"code": 0})["code"]] += 1


def _resident(pid: int) -> int:
    """Resident memory of a process and its children, without pages of mapped files.

    The kernel keeps those until the memory is needed elsewhere.
    """
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()
    pages = 0
    for each in (str(pid), *children):
        _, resident, of_files, *_ = Path(f"/proc/{each}/statm").read_text("ascii").split()
        pages += int(resident) - int(of_files)
    return pages * os.sysconf("SC_PAGE_SIZE")


def speed(options: CheckOptions) -> Outcome:
    """Check 15: networks with complete state are not slower than in another build."""
    outcome = Outcome()
    if options.before is None:
        raise CannotRun("name the foreblock command of another checkout with --before")
    command = [sys.executable, "-m", "foreblock", "bench", "rpc", f"--before={options.before}"]
    done = subprocess.run(command, env=package_environment(), check=False)
    outcome.must(done.returncode == 0, "no request costs more than 1.03 times as much")
    return outcome
