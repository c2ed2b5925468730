"""Run a dev chain for an hour, faster than real time, and report growth.

`make check NAME=soak` runs it; `tests/system/test_soak.py` runs a small one.
"""

import argparse
import logging
import sys
import tempfile
import time
from pathlib import Path

import structlog

from soak.findings import findings
from soak.life import VIEWS_AT_ONCE, Sample, live

HOUR = 1_800  # blocks
COLUMNS = "{:>7} {:>7} {:>12} {:>9} {:>7} {:>8} {:>9} {:>9} {:>7} {:>7} {:>7}"
NAMES = (
    "seconds", "block", "transactions", "requests", "MiB", "objects", "store kB", "file kB",
    "oldest", "states", "pages",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, default=HOUR)
    parser.add_argument("--tps", type=int, default=10, help="transactions a second")
    parser.add_argument("--samples", type=int, default=12)
    parser.add_argument("--folder", type=Path, help="folder of the store")
    options = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    say(COLUMNS.format(*NAMES))
    samples, begun = [], time.monotonic()
    every = max(1, options.blocks // options.samples)
    with tempfile.TemporaryDirectory(prefix="foreblock-soak-", dir=options.folder) as folder:
        for sample in live(Path(folder) / "store", options.blocks, options.tps, every):
            samples.append(sample)
            say(row(sample, time.monotonic() - begun))
    wrong = list(findings(samples))
    for each in wrong:
        say(f"wrong: {each}")
    if wrong:
        sys.exit(1)
    say(f"no unexpected growth, and no more than {VIEWS_AT_ONCE} views were open at once")


def row(sample: Sample, seconds: float) -> str:
    return COLUMNS.format(
        f"{seconds:.0f}",
        sample.block,
        sample.transactions,
        sample.requests,
        f"{sample.memory_mib:.1f}",
        sample.objects,
        sample.store_bytes // 1024,
        sample.file_bytes // 1024,
        sample.oldest_partial,
        sample.earliest,
        sample.pages_of_past,
    )


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
