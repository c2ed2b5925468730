"""Leave the page open beside two loaded chains, and measure its cost to the service and the
browser.

    PYTHONPATH=tests .venv/bin/python tests/soak/page.py --minutes 10 --load 500

It fails if the tab grows, if the page costs the workers more than 5 % of a core or a growing share,
or if the page falls behind the chain.

The workers' load without a page is measured before it is opened and after it is closed: a longer
chain may cost more by itself. `--alone` opens no page.
"""

import argparse
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from support.browser.chromium import running_chromium
from support.browser.tab import Tab, opened_tab
from support.servers.dev_processes import Dev, dev_chain

MOST_SHARE = 0.05  # of a core, in all workers
MOST_RISE = 0.02  # from the first third of the samples to the last
MOST_GROWTH = 1.25  # of the tab, likewise
MOST_BEHIND = 2  # blocks
ROOM = 4 << 20  # bytes by which a tab may grow in any case
SHOWN = """
[...document.querySelectorAll('.places .latest')].map(each => +each.textContent.replace(/,/g, ''))
"""


@dataclass(frozen=True)
class Sample:
    """One set of measurements."""

    seconds: float
    heap: int  # bytes of the tab's objects
    nodes: int  # elements of the page
    share: float  # of a core, in all workers since the last sample
    behind: int  # blocks


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--load", type=int, default=500, help="transactions a second per network")
    parser.add_argument("--every", type=float, default=10.0, help="seconds between two looks")
    parser.add_argument("--alone", action="store_true", help="without a page")
    options = parser.parse_args()
    seconds = options.minutes * 60
    with dev_chain(f"--load={options.load}") as dev:
        if options.alone:
            measure_alone(dev, seconds, options.every)
            return
        before = measure_alone(dev, 2 * options.every, options.every)
        with running_chromium() as browser, opened_tab(browser, dev.main.url) as tab:
            tab.wait("document.querySelectorAll('.slot.sealed').length > 8", "both chains")
            asked = requests(dev)
            samples = list(watch(dev, tab, seconds, options.every))
            tell_requests(requests(dev) - asked, samples)
            problems = [*tab.problems]
        after = measure_alone(dev, 2 * options.every, options.every)
    tell(f"workers without the page: {before:.2%} of a core before, {after:.2%} after")
    wrong = [*findings(samples, (before + after) / 2), *problems]
    for each in wrong:
        tell(f"wrong: {each}")
    sys.exit(1 if wrong else 0)


def measure_alone(dev: Dev, seconds: float, every: float) -> float:
    """The share of a core that the workers use without a page."""
    begun = last = time.monotonic()
    first = used = cpu(dev.pids("worker"))
    while last - begun < seconds:
        time.sleep(every)
        now, total = time.monotonic(), cpu(dev.pids("worker"))
        share = (total - used) / (now - last)
        tell(f"{now - begun:6.0f} s  workers {share:6.2%}  without the page")
        last, used = now, total
    return (used - first) / (last - begun)


def requests(dev: Dev) -> Counter[str]:
    """Requests of all networks by method, since the chains began."""
    _, text = dev.main.probe("/metrics")
    found: Counter[str] = Counter()
    for labels, value in re.findall(r"(?m)^foreblock_requests_total\{(.*)\} (\S+)$", text):
        (method,) = re.findall(r'method="([^"]*)"', labels)
        found[method] += int(float(value))
    return found


def tell_requests(asked: Counter[str], samples: Sequence[Sample]) -> None:
    """Print the requests of the page; a sample itself sends two for blocks."""
    asked["eth_getBlockByNumber"] -= 2 * len(samples)
    for method, count in (+asked).most_common():
        tell(f"{count / samples[-1].seconds:6.2f} a second  {method}")


def watch(dev: Dev, tab: Tab, seconds: float, every: float) -> Iterator[Sample]:
    assert dev.test is not None
    begun = last = time.monotonic()
    used = cpu(dev.pids("worker"))
    while last - begun < seconds:
        time.sleep(every)
        now, total = time.monotonic(), cpu(dev.pids("worker"))
        share = (total - used) / (now - last)
        shown = tab.evaluate(SHOWN)
        behind = max(dev.main.latest() - shown[0], dev.test.latest() - shown[1])
        nodes = tab.evaluate("document.querySelectorAll('*').length")
        yield say(Sample(now - begun, tab.heap_bytes(), nodes, share, behind))
        # The samples' own cost is not counted.
        last, used = time.monotonic(), cpu(dev.pids("worker"))


def say(sample: Sample) -> Sample:
    tell(
        f"{sample.seconds:6.0f} s  tab {sample.heap / 2**20:5.1f} MiB, {sample.nodes} elements"
        f"  workers {sample.share:6.2%}  behind {sample.behind}"
    )
    return sample


def mean_share(samples: Sequence[Sample]) -> float:
    return sum(each.share for each in samples) / len(samples)


def findings(samples: Sequence[Sample], alone: float) -> Iterator[str]:
    third = max(1, len(samples) // 3)
    first, last = samples[:third], samples[-third:]
    grown = max(each.heap for each in last), max(each.heap for each in first)
    if grown[0] > grown[1] * MOST_GROWTH + ROOM:
        yield f"the tab grew from {grown[1]} to {grown[0]} bytes"
    elements = max(each.nodes for each in last), max(each.nodes for each in first)
    if elements[0] > elements[1] * MOST_GROWTH:
        yield f"the page grew from {elements[1]} to {elements[0]} elements"
    share, begun, ended = (mean_share(some) - alone for some in (samples, first, last))
    tell(
        f"the page costs the workers {share:.2%} of a core: {begun:.2%} at first, {ended:.2%} last"
    )
    if share > MOST_SHARE:
        yield f"the page costs {share:.2%} of a core"
    if ended - begun > MOST_RISE:
        yield f"the cost of the page rose by {ended - begun:.2%} of a core"
    if max(each.behind for each in samples) > MOST_BEHIND:
        yield "the page fell behind the chain"


def tell(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def cpu(pids: Sequence[int]) -> float:
    """CPU seconds of processes."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
