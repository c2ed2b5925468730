"""Let Prometheus scrape a loaded instance whose processes are killed, and check the results.

    PYTHONPATH=tests .venv/bin/python tests/soak/scraped.py --minutes 5 --load 200

A dev chain with two networks and two workers, and an instance that follows one of them, are scraped
every second. It fails if a scrape failed that was not served by a killed worker, if a counter
decreased, if the number of series grew after the first third, or if a panel of the dashboard is
empty. Needs Debian's package prometheus.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any, NamedTuple
from urllib.parse import quote
from urllib.request import urlopen

from support.servers.dev_processes import Dev, Network, RpcError, dev_chain, following
from support.servers.waiting import PATIENCE, until

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = "{__name__=~'foreblock_.*(_total|_count|_bucket|_sum)'}"
KILL_SECONDS = 10.0
# Metrics of a log and of a follower over RPC, neither of which runs here.
ELSEWHERE = re.compile(r"foreblock_(log|state|upstream|learned|anchorings|audit)_")
AFTER_KILL = 1.5  # seconds, in which one scrape begins
CONFIG = """
global: {{scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 5s}}
rule_files: [{rules}]
scrape_configs: [{{job_name: foreblock, static_configs: [{{targets: [{targets}]}}]}}]
"""


class Seen(NamedTuple):
    """The events during the run."""

    kills: list[float]  # times of kills, in Prometheus time
    series: list[float]  # number of series, sampled


class Prometheus:
    """A running Prometheus."""

    def __init__(self, url: str) -> None:
        self.url = url

    def ask(self, path: str) -> Any:  # noqa: ANN401, JSON
        with urlopen(f"{self.url}/api/v1/{path}", timeout=PATIENCE) as answer:  # noqa: S310, ours
            return json.load(answer)["data"]

    def samples(self, query: str) -> list[dict[str, Any]]:
        """All samples of a query over a period, by series."""
        found: list[dict[str, Any]] = self.ask(f"query?query={quote(query)}")["result"]
        return found

    def values(self, query: str) -> dict[str, float]:
        """The result of a query, by labels."""
        found = self.ask(f"query?query={quote(query)}")["result"]
        return {
            json.dumps(each["metric"], sort_keys=True): float(each["value"][1]) for each in found
        }

    def is_ready(self) -> bool:
        try:
            with urlopen(f"{self.url}/-/ready", timeout=PATIENCE):  # noqa: S310, ours
                return True
        except OSError:
            return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--load", type=int, default=200, help="transactions a second per network")
    options = parser.parse_args()
    if shutil.which("prometheus") is None:
        sys.exit("prometheus is not installed; it is in Debian's package prometheus")
    with TemporaryDirectory() as folder, ExitStack() as running:
        seconds, data = options.minutes * 60, Path(folder)
        dev = running.enter_context(
            dev_chain("--workers=2", f"--load={options.load}", f"--data={data / 'dev'}")
        )
        genesis = data / "dev" / "main" / "genesis.json"
        other = running.enter_context(
            following(genesis, data / "other", dev.main.feed, canonical=dev.main.url)
        )
        urls = {"dev": dev.main.url, "other": other.network.url}
        prometheus = running.enter_context(scraping(data, list(urls.values())))
        running.enter_context(asking(dev, other.network))
        seen = live(dev, prometheus, seconds)
        wrong = [*findings(prometheus, int(seconds), seen), *empty_panels(prometheus)]
    tell(f"{len(seen.kills)} processes were killed; {seen.series[-1]:.0f} series at the end")
    for each in wrong:
        tell(f"wrong: {each}")
    sys.exit(1 if wrong else 0)


@contextmanager
def scraping(folder: Path, urls: list[str]) -> Iterator[Prometheus]:
    """A Prometheus that scrapes these addresses, from its first response to its end."""
    targets = ", ".join(f"'{url.removeprefix('http://')}'" for url in urls)
    config = folder / "prometheus.yml"
    config.write_text(CONFIG.format(rules=ROOT / "deploy" / "alerts.yml", targets=targets), "utf-8")
    command = [
        "prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder / 'tsdb'}",
        "--web.listen-address=127.0.0.1:19099", "--log.level=error",
    ]  # fmt: skip
    with subprocess.Popen(command) as process:
        found = Prometheus("http://127.0.0.1:19099")
        try:
            until(found.is_ready, "Prometheus is ready")
            yield found
        finally:
            process.terminate()


@contextmanager
def asking(dev: Dev, other: Network) -> Iterator[None]:
    """Clients that send valid and invalid requests, including unknown methods."""
    assert dev.test is not None
    stop = Event()
    threads = [
        Thread(target=_ask, args=(Network(each.url, each.feed), stop))
        for each in (dev.main, dev.test, other)
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _ask(network: Network, stop: Event) -> None:
    random, somebody = Random(1), "0x" + "00" * 20
    while not stop.wait(0.01):
        unknown = f"no_{random.getrandbits(64):x}"
        for method, params in (
            ("eth_getBalance", (somebody, "pending")),
            ("eth_getBlockByNumber", ("latest", True)),
            ("eth_call", ({"to": somebody}, "pending")),
            ("eth_getLogs", ({"fromBlock": "earliest"},)),
            ("eth_getBalance", ("nobody", "latest")),
            (unknown, ()),
        ):
            try:
                network.ask(method, *params)
            except (RpcError, OSError, AssertionError):
                continue  # its own error, or a killed worker


def live(dev: Dev, prometheus: Prometheus, seconds: float) -> Seen:
    """Kill a process periodically."""
    seen, begun = Seen([], []), time.monotonic()
    while (passed := time.monotonic() - begun) < seconds:
        time.sleep(min(KILL_SECONDS, seconds - passed))
        seen.series.append(sum(prometheus.values("scrape_samples_scraped").values()))
        if seconds - passed > 3 * KILL_SECONDS:  # not shortly before the end
            seen.kills.append(time.time())
            dev.kill("writer" if len(seen.kills) % 4 == 0 else "worker")
    return seen


def findings(prometheus: Prometheus, seconds: int, seen: Seen) -> Iterator[str]:
    """Return the violations: failed scrapes, decreased counters, additional series.

    A scrape fails if its worker is killed; the next one succeeds.
    """
    for each in prometheus.samples(f"up[{seconds - 10}s]"):
        failed = [float(at) for at, value in each["values"] if value != "1"]
        for at in failed:
            if not any(0 <= at - kill < AFTER_KILL for kill in seen.kills):
                yield f"a scrape of {each['metric']['instance']} failed"
    for counter in prometheus.samples(f"{SAMPLES}[{seconds}s]"):
        samples = [float(value) for _, value in counter["values"]]
        fell = [(a, b) for a, b in pairwise(samples) if b < a]
        if fell:
            yield f"fell {len(fell)} times, first from and to {fell[0]}: {counter['metric']}"
    steady = seen.series[len(seen.series) // 3]
    if seen.series[-1] > steady:
        yield f"{seen.series[-1]:.0f} series after {steady:.0f}"


def empty_panels(prometheus: Prometheus) -> Iterator[str]:
    """The panels of the dashboard with an expression without series."""
    board = json.loads((ROOT / "deploy" / "grafana.json").read_text("utf-8"))
    for panel in board["panels"]:
        for target in panel.get("targets", ()):
            if ELSEWHERE.search(target["expr"]):
                continue
            query = re.sub(r"\$(instance|network)", ".*", target["expr"])
            if not prometheus.values(query.replace("$__rate_interval", "1m")):
                yield f"the panel {panel['title']!r} shows nothing for {target['expr']}"


def tell(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
