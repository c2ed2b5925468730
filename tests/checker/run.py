"""Send many requests to a dev chain under load, and judge every response.

    make check NAME=consistency
    python tests/checker/run.py --seconds 60 --tps 500
    python tests/checker/run.py --replay FOLDER

Starts `foreblock dev` with two workers, sends transfers and token transfers, records the feed, and
sends requests from several processes about pending, latest and pinned blocks. If an error is found,
the journal is kept in the folder printed at the end, and can be judged again. Exits with 1 on any
contradiction.
"""

import argparse
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from multiprocessing.context import SpawnContext
from multiprocessing.process import BaseProcess
from pathlib import Path

import click

from checker.chain import Chain
from checker.gate import Gate
from checker.hammer import HammerPlan, hammer
from checker.journal import JournalWriter, read_journal
from checker.judge import Verdict, judge_journal
from checker.recording import Recorder
from checker.sending import PAYEES, LoadPlan, send_load
from checker.table import table
from foreblock.sequencer.dev_genesis import TOKENS_EACH
from foreblock.sequencer.mnemonic import dev_accounts
from foreblock.sequencer.predeploys import TOKEN
from foreblock.settings import ChainSettings
from support.servers.dev_processes import dev_chain
from support.servers.waiting import PATIENCE

BLOCK_TIME = 2  # seconds, the default of `foreblock dev`
ACCOUNTS = 40
SENDERS = 4
OPTIONS = ("--pending-nonce=state", "--test-listen=", f"--accounts={ACCOUNTS}")

GENESIS = ChainSettings(accounts=ACCOUNTS)
OWNERS = dev_accounts(GENESIS.mnemonic, ACCOUNTS)


def run(folder: Path, options: argparse.Namespace) -> None:
    """Record a journal."""
    context = multiprocessing.get_context("spawn")
    with JournalWriter(folder, "chain") as journal:
        journal.chain(chain(BLOCK_TIME))
    with dev_chain(*OPTIONS) as dev, Recorder(dev.main.feed, folder) as recorder:
        recorder.wait_for_blocks(1, PATIENCE)
        gate = Gate(context.Barrier(options.clients + 2), context.Event())
        processes = [
            *hammers(context, dev.main.url, folder, options, gate),
            load(context, dev.main.url, folder, options, gate),
        ]
        for process in processes:
            process.start()
        gate.start.wait(PATIENCE)
        time.sleep(options.seconds)
        gate.stop.set()
        for process in processes:
            process.join()
            if process.exitcode:
                raise SystemExit(f"{process.name} ended with {process.exitcode}")
        click.echo(f"workers took {_cpu_seconds(dev.pids('worker'))} s of CPU")
        # Every block that a response has called latest is announced by the next one.
        recorder.wait_for_blocks(2, PATIENCE)


def _cpu_seconds(pids: list[int]) -> str:
    """The CPU time of each process, to check the distribution of load."""
    found = []
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
        found.append((int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"))
    return " and ".join(f"{seconds:.1f}" for seconds in found)


def chain(block_time: int, *, followed: bool = False) -> Chain:
    """The dev chain before the load begins."""
    return Chain(
        chain_id=GENESIS.chain_id,
        block_time=block_time,
        token=TOKEN,
        balances={each.address: GENESIS.balance * 10**18 for each in OWNERS},
        tokens={each.address: TOKENS_EACH for each in OWNERS},
        followed=followed,
    )


def hammers(
    context: SpawnContext, url: str, folder: Path, options: argparse.Namespace, gate: Gate
) -> list[BaseProcess]:
    """The processes that send requests."""
    payers = [each.address for each in OWNERS]
    plans = [
        HammerPlan(url, folder, f"client-{at}", payers, PAYEES, TOKEN, options.rate, seed=at)
        for at in range(options.clients)
    ]
    return [context.Process(target=hammer, args=(plan, gate), name=plan.name) for plan in plans]


def load(
    context: SpawnContext, url: str, folder: Path, options: argparse.Namespace, gate: Gate
) -> BaseProcess:
    """The process that sends transactions."""
    plans = [
        LoadPlan(
            url=url,
            folder=folder,
            name=f"sender-{at}",
            accounts=OWNERS[at::SENDERS],
            chain_id=GENESIS.chain_id,
            tps=options.tps / SENDERS,
            seed=at,
        )
        for at in range(SENDERS)
    ]
    return context.Process(target=send_load, args=(plans, gate), name="load")


def judge(folder: Path) -> Verdict:
    """Judge a journal and print the outcome."""
    begun = time.monotonic()
    journal = read_journal(folder)
    verdict = judge_journal(journal)
    click.echo(f"{len(journal.senders):>9,} transactions signed")
    for line in table(verdict):
        click.echo(line)
    click.echo(f"judged in {time.monotonic() - begun:.0f} s")
    return verdict


def main() -> None:
    parser = argparse.ArgumentParser(description="Judge a dev chain's responses under load.")
    parser.add_argument("--seconds", type=float, default=60, help="duration of the load")
    parser.add_argument("--tps", type=float, default=500, help="transactions a second")
    parser.add_argument("--clients", type=int, default=4, help="client processes")
    parser.add_argument("--rate", type=float, default=20, help="batches a second of each")
    parser.add_argument("--journal", type=Path, help="keep the journal in this folder")
    parser.add_argument("--replay", type=Path, help="judge the journal in this folder again")
    options = parser.parse_args()
    folder = (
        options.replay or options.journal or Path(tempfile.mkdtemp(prefix="foreblock-journal-"))
    )
    if not options.replay:
        run(folder, options)
    verdict = judge(folder)
    good = not verdict.contradictions and verdict.judged.total() > 0
    if good and not options.replay and not options.journal:
        shutil.rmtree(folder)
    else:
        click.echo(f"the journal is in {folder}")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
