"""Measure the cost of an index for a writer: commits of flashblocks, and the work behind them.

    PYTHONPATH=tests python tests/measures/index_commits.py [--index addresses] [--blocks 60]
        [--rounds 3] [--transactions 200]

Two chains of the same blocks are written in turn, one with the index and one without. Each block
has three flashblocks with these transactions, each of which logs a unique topic; the work behind
the head is done after each commit, as a sequencer does it between flashblocks. Figures are CPU
time, because the time of a commit depends on the disk and its load. That of commits and of the work
behind them is the writer's; "in all" includes the thread that executes blocks again for the index
of addresses.
"""

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

from foreblock._engine import Heads
from foreblock.ledger.building.commit_builder import CommitBuilder
from foreblock.ledger.storage.commits import TO_STORE, Commits
from foreblock.ledger.storage.section_index import LogIndexing
from support.chains.writing import SCRIBE, Chain

FLASHBLOCKS = 3


def main() -> None:
    """Print both variants of each round, and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--index", choices=("logs", "addresses"), default="logs")
    parser.add_argument("--blocks", type=int, default=60)
    parser.add_argument("--transactions", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    ratios = []
    for number in range(chosen.rounds):
        figures = {}
        for indexed in (number % 2 == 0, number % 2 == 1):
            kept = chosen.index if indexed else None
            figures[indexed] = measure(chosen.blocks, chosen.transactions, chosen.index, kept)
        without, with_index = figures[False], figures[True]
        ratios.append(with_index[0] / without[0] - 1)
        sys.stdout.write(
            f"commit of a flashblock, CPU: {without[0]:.2f} ms without, "
            f"{with_index[0]:.2f} ms with, "
            f"{ratios[-1]:+.1%}; work behind it, CPU per block: "
            f"{without[1]:.2f} ms, {with_index[1]:.2f} ms; in all {without[3]:.2f} ms, "
            f"{with_index[3]:.2f} ms; store {without[2]} kB, {with_index[2]} kB\n"
        )
        sys.stdout.flush()
    sys.stdout.write(f"median of {len(ratios)} rounds: {statistics.median(ratios):+.1%}\n")


def measure(
    blocks: int, transactions: int, index: str, kept: str | None
) -> tuple[float, float, int, float]:
    """The median milliseconds of a commit and of the work behind a block; kB of the store.

    The last value is milliseconds of the whole process per block.
    """
    turn, commit = LogIndexing.turn, CommitBuilder.commit
    if index == "logs" and kept is None:
        LogIndexing.turn = lambda *_: False  # type: ignore[method-assign]
    commits: list[float] = []
    behind = 0.0
    slot = 0

    def timed(builder: CommitBuilder, to: Commits = TO_STORE) -> Heads:
        begun = time.thread_time()
        heads = commit(builder, to)
        commits.append((time.thread_time() - begun) * 1e3)
        return heads

    CommitBuilder.commit = timed  # type: ignore[method-assign,assignment]
    try:
        with tempfile.TemporaryDirectory() as folder:
            chain = Chain(Path(folder) / "store", address_index=kept == "addresses")
            chain.add(chain.deposit())
            first = time.process_time()
            for _ in range(blocks):
                for _ in range(FLASHBLOCKS):
                    for _ in range(transactions):
                        slot += 1
                        chain.block.run([chain.write(SCRIBE, slot, 1)])
                    chain.add()
                    begun = time.thread_time()
                    while chain.writer.follow_up():
                        pass
                    behind += time.thread_time() - begun
                chain.seal(chain.deposit())
            in_all = time.process_time() - first
            used = chain.store.used_bytes >> 10
            chain.store.close()
    finally:
        CommitBuilder.commit = commit  # type: ignore[method-assign]
        LogIndexing.turn = turn  # type: ignore[method-assign]
    return statistics.median(commits), behind / blocks * 1e3, used, in_all / blocks * 1e3


if __name__ == "__main__":
    main()
